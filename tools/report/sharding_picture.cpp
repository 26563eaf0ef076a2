#include "tools/report/sharding_picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include <cairo.h>
#include <fmt/format.h>

#include "tools/report/json.hpp"
#include "tools/report/table.hpp"

namespace podsim {
namespace {

constexpr double long_side = 720, most_aspect = 4, margin_left = 70, margin_top = 70, margin_end = 30;
constexpr double largest_letters = 16, smallest_letters = 7, letter_width = 0.64;  // of DejaVu Sans digits, of their height
constexpr double png_scale = 2;
constexpr std::size_t most_labels = 4096, most_ticks = 16;

struct PictureBox {
  double x = 0, y = 0, width = 0, height = 0;
  Colour fill;
  bool framed = false;
};

struct PictureText {
  double x = 0, y = 0, size = 0;  // y of the middle of its letters
  double anchor = 0;              // 0: begins at x, 0.5: is centred there, 1: ends there
  Colour colour;
  std::string text;
};

struct ShardingPicture {
  double width = 0, height = 0;
  std::vector<PictureBox> boxes{};
  std::vector<PictureText> texts{};
};

/// The label as it fits into a box: whole, without the platform, the first and last device, or empty.
PictureText label_in(const PictureBox& box, const std::string& platform, const ShownBlock& block) {
  PictureText text{box.x + box.width / 2, box.y + box.height / 2, 0, 0.5, text_colour(box.fill), ""};
  for (std::string& label : std::array{block_label(platform, block), fmt::format("{}", fmt::join(block.devices, ",")),
                                       fmt::format("{}..{}", block.devices.front(), block.devices.back())}) {
    text.size = std::min({largest_letters, 0.9 * box.width / (letter_width * static_cast<double>(label.size())), 0.7 * box.height});
    if (text.size < smallest_letters) continue;
    text.text = std::move(label);
    break;
  }
  return text;
}

ShardingPicture picture_of(const BlockGrid& grid, const std::string& platform, const std::string& title) {
  const double aspect =
      grid.row_dimension ? std::clamp(static_cast<double>(grid.width) / static_cast<double>(grid.height), 1 / most_aspect, most_aspect) : 10;
  const double width = aspect >= 1 ? long_side : long_side * aspect, height = aspect >= 1 ? long_side / aspect : long_side;
  ShardingPicture picture{margin_left + width + margin_end, margin_top + height + margin_end};
  picture.texts.push_back({margin_left, 22,
                           std::min(largest_letters, (picture.width - margin_left - 5) / (letter_width * static_cast<double>(title.size() + 1))), 0,
                           Colour{}, title});
  const std::vector<Colour> colours = cell_colours(grid.blocks.size());
  const double across = width / static_cast<double>(grid.columns), down = height / static_cast<double>(grid.rows);
  for (std::size_t i = 0; i < grid.blocks.size(); ++i) {
    const PictureBox& box = picture.boxes.emplace_back(PictureBox{margin_left + static_cast<double>(i % grid.columns) * across,
                                                                  margin_top + static_cast<double>(i / grid.columns) * down, across, down, colours[i],
                                                                  std::min(across, down) > 4});
    if (grid.blocks.size() > most_labels) continue;
    if (PictureText text = label_in(box, platform, grid.blocks[i]); !text.text.empty()) picture.texts.push_back(std::move(text));
  }
  // All labels in the size of the smallest, but not the title, which is the first text.
  double size_of_labels = largest_letters;
  for (std::size_t i = 1; i < picture.texts.size(); ++i) size_of_labels = std::min(size_of_labels, picture.texts[i].size);
  for (std::size_t i = 1; i < picture.texts.size(); ++i) picture.texts[i].size = size_of_labels;
  constexpr Colour grey{0x44, 0x44, 0x44};
  // The indices where blocks begin; only the ends where there is no room for all.
  const auto ticks = [&](std::size_t blocks, std::int64_t extent, double length, double least_length, const auto& add) {
    const bool all = blocks <= most_ticks && least_length * static_cast<double>(blocks) <= length;
    const std::size_t places = all ? blocks : 1;
    for (std::size_t i = 0; i <= places; ++i)
      add(static_cast<double>(i) / static_cast<double>(places) * length,
          std::to_string(extent / static_cast<std::int64_t>(places) * static_cast<std::int64_t>(i)));
  };
  const auto letters = [](std::int64_t extent) { return static_cast<double>(std::to_string(extent).size() + 1); };
  ticks(grid.columns, grid.width, width, 12 * letter_width * letters(grid.width), [&](double at, std::string index) {
    // The last one may be too long to be centred.
    const double half = 6 * letter_width * static_cast<double>(index.size());
    picture.texts.push_back({std::min(margin_left + at, picture.width - half - 4), margin_top - 12, 12, 0.5, grey, std::move(index)});
  });
  if (!grid.row_dimension) return picture;
  const double size = std::min(12.0, (margin_left - 8) / (letter_width * letters(grid.height)));
  ticks(grid.rows, grid.height, height, 14, [&](double at, std::string index) {
    picture.texts.push_back({margin_left - 8, margin_top + at, size, 1, grey, std::move(index)});
  });
  return picture;
}

std::string hex(Colour c) { return fmt::format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue); }

struct CairoEnd {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};

void fill_with(cairo_t* context, Colour c) { cairo_set_source_rgb(context, c.red / 255.0, c.green / 255.0, c.blue / 255.0); }

void paint(const ShardingPicture& picture, cairo_t* context) {
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

std::string sharding_svg(const BlockGrid& grid, const std::string& platform, const std::string& title) {
  const ShardingPicture picture = picture_of(grid, platform, title);
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

Expected<std::string> sharding_png(const BlockGrid& grid, const std::string& platform, const std::string& title) {
  const ShardingPicture picture = picture_of(grid, platform, title);
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
