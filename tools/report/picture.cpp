#include "tools/report/picture.hpp"

#include <cmath>
#include <memory>

#include <cairo.h>
#include <fmt/format.h>

#include "tools/report/json.hpp"
#include "tools/report/table.hpp"

namespace podsim {
namespace {

constexpr double png_scale = 2;

std::string hex(Colour c) { return fmt::format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue); }

struct CairoEnd {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};

void fill_with(cairo_t* context, Colour c) { cairo_set_source_rgb(context, c.red / 255.0, c.green / 255.0, c.blue / 255.0); }

void paint(const BoxPicture& picture, cairo_t* context) {
  cairo_scale(context, png_scale, png_scale);
  fill_with(context, {255, 255, 255});
  cairo_paint(context);
  for (const PictureBox& box : picture.boxes) {
    cairo_rectangle(context, box.x, box.y, box.width, box.height);
    fill_with(context, box.fill);
    cairo_fill(context);
    if (!box.framed) continue;
    cairo_rectangle(context, box.x, box.y, box.width, box.height);
    fill_with(context, {255, 255, 255});
    cairo_set_line_width(context, 1);
    cairo_stroke(context);
  }
  cairo_select_font_face(context, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  for (const PictureText& text : picture.texts) {
    const std::string utf8 = as_utf8(text.text);
    cairo_set_font_size(context, text.size);
    cairo_text_extents_t extents;
    cairo_text_extents(context, utf8.c_str(), &extents);
    fill_with(context, text.colour);
    cairo_move_to(context, text.x - text.anchor * extents.x_advance, text.y + 0.36 * text.size);
    cairo_show_text(context, utf8.c_str());
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
  const std::unique_ptr<cairo_surface_t, CairoEnd> surface{cairo_image_surface_create(
      CAIRO_FORMAT_RGB24, static_cast<int>(std::ceil(picture.width * png_scale)), static_cast<int>(std::ceil(picture.height * png_scale)))};
  const std::unique_ptr<cairo_t, CairoEnd> context{cairo_create(surface.get())};
  paint(picture, context.get());
  std::string png;
  const auto append = [](void* bytes, const unsigned char* data, unsigned int size) {
    static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), size);
    return CAIRO_STATUS_SUCCESS;
  };
  cairo_status_t status = cairo_status(context.get());
  if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_write_to_png_stream(surface.get(), append, &png);
  if (status != CAIRO_STATUS_SUCCESS)
    return Diagnostic{{}, fmt::format("the picture cannot be made: {}", cairo_status_to_string(status)), Cause::environment};
  return png;
}

}  // namespace podsim
