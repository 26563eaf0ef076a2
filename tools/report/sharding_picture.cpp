#include "tools/report/sharding_picture.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tools/report/picture.hpp"

namespace podsim {
namespace {

constexpr double long_side = 720, most_aspect = 4, margin_left = 70, margin_top = 70, margin_end = 30;
constexpr double largest_letters = 16, smallest_letters = 7;
constexpr std::size_t most_labels = 4096, most_ticks = 16;

/// The label as it fits into a box: whole, without the platform, the first and last device, or empty.
PictureText label_in(const PictureBox& box, const std::string& platform, const ShownBlock& block) {
  PictureText text{box.x + box.width / 2, box.y + box.height / 2, 0, 0.5, letters_on(box.fill), ""};
  for (std::string& label : std::array{block_label(platform, block), fmt::format("{}", fmt::join(block.devices, ",")),
                                       fmt::format("{}..{}", block.devices.front(), block.devices.back())}) {
    text.size = std::min({largest_letters, 0.9 * box.width / (letter_width * static_cast<double>(label.size())), 0.7 * box.height});
    if (text.size < smallest_letters) continue;
    text.text = std::move(label);
    break;
  }
  return text;
}

BoxPicture picture_of(const BlockGrid& grid, const std::string& platform, const std::string& title) {
  const double aspect =
      grid.row_dimension ? std::clamp(static_cast<double>(grid.width) / static_cast<double>(grid.height), 1 / most_aspect, most_aspect) : 10;
  const double width = aspect >= 1 ? long_side : long_side * aspect, height = aspect >= 1 ? long_side / aspect : long_side;
  BoxPicture picture{margin_left + width + margin_end, margin_top + height + margin_end};
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

}  // namespace

std::string sharding_svg(const BlockGrid& grid, const std::string& platform, const std::string& title) {
  return svg_of(picture_of(grid, platform, title));
}

Expected<std::string> sharding_png(const BlockGrid& grid, const std::string& platform, const std::string& title) {
  return png_of(picture_of(grid, platform, title));
}

}  // namespace podsim
