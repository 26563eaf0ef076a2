#include "tools/report/picture.hpp"

#include <cmath>
#include <memory>

#include <cairo.h>
#include <fmt/format.h>

#include "sim/base/shared_library.hpp"
#include "tools/report/json.hpp"
#include "tools/report/table.hpp"

namespace podsim {
namespace {

constexpr double png_scale = 2;

/// The functions of cairo, which is loaded for the first PNG: with fonts and X it takes longer to load than most commands take. Names without "cairo_".
struct Cairo {
  decltype(::cairo_create)* create;
  decltype(::cairo_destroy)* destroy;
  decltype(::cairo_image_surface_create)* image_surface_create;
  decltype(::cairo_surface_destroy)* surface_destroy;
  decltype(::cairo_surface_write_to_png_stream)* surface_write_to_png_stream;
  decltype(::cairo_status)* status;
  decltype(::cairo_status_to_string)* status_to_string;
  decltype(::cairo_scale)* scale;
  decltype(::cairo_set_source_rgb)* set_source_rgb;
  decltype(::cairo_paint)* paint;
  decltype(::cairo_rectangle)* rectangle;
  decltype(::cairo_fill)* fill;
  decltype(::cairo_set_line_width)* set_line_width;
  decltype(::cairo_stroke)* stroke;
  decltype(::cairo_select_font_face)* select_font_face;
  decltype(::cairo_set_font_size)* set_font_size;
  decltype(::cairo_text_extents)* text_extents;
  decltype(::cairo_move_to)* move_to;
  decltype(::cairo_show_text)* show_text;
};

Expected<Cairo> load_cairo() {
  Cairo cairo{};
  FunctionFinder find{"libcairo.so.2", "cairo (Debian: libcairo2)"};
  find("cairo_create", cairo.create);
  find("cairo_destroy", cairo.destroy);
  find("cairo_image_surface_create", cairo.image_surface_create);
  find("cairo_surface_destroy", cairo.surface_destroy);
  find("cairo_surface_write_to_png_stream", cairo.surface_write_to_png_stream);
  find("cairo_status", cairo.status);
  find("cairo_status_to_string", cairo.status_to_string);
  find("cairo_scale", cairo.scale);
  find("cairo_set_source_rgb", cairo.set_source_rgb);
  find("cairo_paint", cairo.paint);
  find("cairo_rectangle", cairo.rectangle);
  find("cairo_fill", cairo.fill);
  find("cairo_set_line_width", cairo.set_line_width);
  find("cairo_stroke", cairo.stroke);
  find("cairo_select_font_face", cairo.select_font_face);
  find("cairo_set_font_size", cairo.set_font_size);
  find("cairo_text_extents", cairo.text_extents);
  find("cairo_move_to", cairo.move_to);
  find("cairo_show_text", cairo.show_text);
  if (!find.status()) return find.status().error();
  return cairo;
}

void fill_with(const Cairo& cairo, cairo_t* context, Colour c) { cairo.set_source_rgb(context, c.red / 255.0, c.green / 255.0, c.blue / 255.0); }

void paint(const Cairo& cairo, const BoxPicture& picture, cairo_t* context) {
  cairo.scale(context, png_scale, png_scale);
  fill_with(cairo, context, {255, 255, 255});
  cairo.paint(context);
  for (const PictureBox& box : picture.boxes) {
    cairo.rectangle(context, box.x, box.y, box.width, box.height);
    fill_with(cairo, context, box.fill);
    cairo.fill(context);
    if (!box.framed) continue;
    cairo.rectangle(context, box.x, box.y, box.width, box.height);
    fill_with(cairo, context, {255, 255, 255});
    cairo.set_line_width(context, 1);
    cairo.stroke(context);
  }
  cairo.select_font_face(context, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  for (const PictureText& text : picture.texts) {
    const std::string utf8 = as_utf8(text.text);
    cairo.set_font_size(context, text.size);
    cairo_text_extents_t extents;
    cairo.text_extents(context, utf8.c_str(), &extents);
    fill_with(cairo, context, text.colour);
    cairo.move_to(context, text.x - text.anchor * extents.x_advance, text.y + 0.36 * text.size);
    cairo.show_text(context, utf8.c_str());
  }
}

}  // namespace

std::string svg_of(const BoxPicture& picture) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"DejaVu Sans, sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      picture.width, picture.height);
  for (const PictureBox& box : picture.boxes)
    svg += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"{}/>\n", box.x, box.y, box.width, box.height,
                       hex(box.fill), box.framed ? " stroke=\"white\"" : "");
  for (const PictureText& text : picture.texts)
    svg += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", text.x,
                       text.y + 0.36 * text.size, text.size,
                       text.anchor == 0   ? "start"
                       : text.anchor == 1 ? "end"
                                          : "middle",
                       hex(text.colour), xml_text(as_utf8(text.text)));
  return svg + "</svg>\n";
}

Expected<std::string> png_of(const BoxPicture& picture) {
  static const Expected<Cairo> loaded = load_cairo();
  if (!loaded) return loaded.error();
  const Cairo& cairo = *loaded;
  const std::unique_ptr<cairo_surface_t, decltype(cairo.surface_destroy)> surface{
      cairo.image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(std::ceil(picture.width * png_scale)),
                                 static_cast<int>(std::ceil(picture.height * png_scale))),
      cairo.surface_destroy};
  const std::unique_ptr<cairo_t, decltype(cairo.destroy)> context{cairo.create(surface.get()), cairo.destroy};
  paint(cairo, picture, context.get());
  std::string png;
  const auto append = [](void* bytes, const unsigned char* data, unsigned int size) {
    static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), size);
    return CAIRO_STATUS_SUCCESS;
  };
  cairo_status_t status = cairo.status(context.get());
  if (status == CAIRO_STATUS_SUCCESS) status = cairo.surface_write_to_png_stream(surface.get(), append, &png);
  if (status != CAIRO_STATUS_SUCCESS)
    return Diagnostic{{}, fmt::format("the picture cannot be made: {}", cairo.status_to_string(status)), Cause::environment};
  return png;
}

}  // namespace podsim
