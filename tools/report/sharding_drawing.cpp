#include "tools/report/sharding_drawing.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/invariant.hpp"
#include "tools/report/text_width.hpp"

namespace podsim {
namespace {

// matplotlib 3, lib/matplotlib/_cm.py, _tab20b_data.
constexpr std::array<Colour, 20> tab20b{{{0x39, 0x3b, 0x79}, {0x52, 0x54, 0xa3}, {0x6b, 0x6e, 0xcf}, {0x9c, 0x9e, 0xde}, {0x63, 0x79, 0x39},
                                         {0x8c, 0xa2, 0x52}, {0xb5, 0xcf, 0x6b}, {0xce, 0xdb, 0x9c}, {0x8c, 0x6d, 0x31}, {0xbd, 0x9e, 0x39},
                                         {0xe7, 0xba, 0x52}, {0xe7, 0xcb, 0x94}, {0x84, 0x3c, 0x39}, {0xad, 0x49, 0x4a}, {0xd6, 0x61, 0x6b},
                                         {0xe7, 0x96, 0x9c}, {0x7b, 0x41, 0x73}, {0xa5, 0x51, 0x94}, {0xce, 0x6d, 0xbd}, {0xde, 0x9e, 0xd6}}};

// visualize_array_sharding: an array is 10 lines high, a character is 2.5 times as high as wide, and cells are 9 to 80 characters wide.
constexpr double lines_of_array = 10, height_to_width = 2.5, least_width = 9, most_width = 80;

/// The spaces around a label, and the widths of columns and heights of rows that follow.
struct CellSpace {
  std::size_t left = 0, right = 0, top = 0, bottom = 0;
};

/// floor(space / 2), and the same with what is left over: 0 where there is less than no space.
std::pair<std::size_t, std::size_t> halves(std::int64_t space) {
  const std::int64_t rest = ((space % 2) + 2) % 2, half = (space - rest) / 2;
  return {static_cast<std::size_t>(std::max<std::int64_t>(half, 0)), static_cast<std::size_t>(std::max<std::int64_t>(half + rest, 0))};
}

std::int64_t length(const std::pair<std::int64_t, std::int64_t>& range) { return range.second - range.first; }

/// A table of labels, line by line, never more of a line than is shown.
class LabelTable {
 public:
  LabelTable(const BlockGrid& grid, const std::string& platform, bool coloured, std::size_t most)
      : grid_{grid}, coloured_{coloured}, most_{most}, widths_(grid.columns), heights_(grid.rows), colours_{cell_colours(grid.blocks.size())} {
    for (std::size_t i = 0; i < grid.blocks.size(); ++i) {
      labels_.push_back(block_label(platform, grid.blocks[i]));
      label_widths_.push_back(width_of(labels_.back()));
      const CellSpace& space = spaces_.emplace_back(space_around(grid.blocks[i], label_widths_.back()));
      std::size_t& width = widths_[i % grid.columns];
      std::size_t& height = heights_[i / grid.columns];
      width = std::max(width, space.left + label_widths_.back() + space.right);
      height = std::max(height, space.top + 1 + space.bottom);
    }
  }

  TextDrawing draw() {
    TextDrawing result;
    if (!coloured_) result.text += rule("┌", "┬", "┐");
    for (std::size_t row = 0; row < grid_.rows; ++row) {
      if (!coloured_ && row > 0) result.text += rule("├", "┼", "┤");
      // Only the line of the label differs from the others.
      const std::size_t top = spaces_[row * grid_.columns].top;
      const std::string blank = cells(row, false), labelled = cells(row, true);
      for (std::size_t line = 0; line < heights_[row]; ++line) result.text += line == top ? labelled : blank;
    }
    if (!coloured_) result.text += rule("└", "┴", "┘");
    for (const std::size_t width : widths_) result.width += width;
    if (!coloured_) result.width += grid_.columns + 1;
    return result;
  }

 private:
  [[nodiscard]] CellSpace space_around(const ShownBlock& block, std::size_t label) const {
    // An array of rank 1 has one column and as many rows as elements there, so that its cells are as narrow as they may be.
    const std::int64_t wide_extent = grid_.row_dimension ? grid_.width : 1, high_extent = grid_.row_dimension ? grid_.height : grid_.width;
    const double base = std::floor(lines_of_array * (static_cast<double>(wide_extent) / static_cast<double>(high_extent)));
    const auto share = [&](std::size_t dimension, std::int64_t extent) {
      return static_cast<double>(length(block.ranges[dimension])) / static_cast<double>(extent);
    };
    const double wide = std::floor(share(grid_.column_dimension, grid_.width) * base * height_to_width);
    const auto width = static_cast<std::int64_t>(std::clamp(wide, least_width, most_width));
    const auto height = grid_.row_dimension ? static_cast<std::int64_t>(share(*grid_.row_dimension, grid_.height) * lines_of_array) : 1;
    CellSpace space;
    std::tie(space.left, space.right) = halves(width - static_cast<std::int64_t>(label) - 2);
    std::tie(space.top, space.bottom) = halves(height - 2);
    const std::size_t more = coloured_ ? 1 : 0;
    return {space.left + more, space.right + more, space.top + more, space.bottom + more};
  }

  std::string rule(std::string_view first, std::string_view between, std::string_view last) const {
    std::string line;
    std::size_t left = most_;
    for (std::size_t column = 0; column < grid_.columns && left > 0; ++column) {
      line += column == 0 ? first : between;
      --left;
      for (std::size_t i = std::min(widths_[column], left); i > 0; --i, --left) line += "─";
    }
    if (left > 0) line += last;
    return line + '\n';
  }

  std::string cells(std::size_t row, bool labelled) const {
    std::string line;
    std::size_t left = most_;
    for (std::size_t column = 0; column < grid_.columns && left > 0; ++column) {
      const std::size_t i = row * grid_.columns + column, width = std::min(widths_[column], left - (coloured_ ? 0 : 1));
      std::string cell;
      if (labelled) {
        // A narrower label stands in the middle of what the widest of its column leaves.
        const CellSpace& space = spaces_[i];
        const std::size_t at = std::min(width, space.left + (widths_[column] - space.left - label_widths_[i] - space.right) / 2);
        cell.append(at, ' ').append(first_columns(labels_[i], width - at));
      }
      cell = left_aligned(cell, width);
      left -= width + (coloured_ ? 0 : 1);
      if (coloured_) {
        line += coloured_text(cell, colours_[i], letters_on(colours_[i]));
      } else {
        line += "│" + cell;
      }
    }
    if (!coloured_ && left > 0) line += "│";
    return line + '\n';
  }

  const BlockGrid& grid_;
  bool coloured_;
  std::size_t most_;
  std::vector<std::string> labels_{};
  std::vector<std::size_t> label_widths_{};
  std::vector<CellSpace> spaces_{};
  std::vector<std::size_t> widths_, heights_;
  std::vector<Colour> colours_;
};

}  // namespace

Expected<BlockGrid> block_grid(const ShownArray& array, const SourceLocation& where) {
  PODSIM_ASSERT(array.at.size() == array.extents.size() && array.numbers.size() == static_cast<std::size_t>(array.mesh.devices()));
  const auto shards = shards_of(array.extents, array.sharding, array.mesh, where);
  if (!shards) return shards.error();
  BlockGrid grid;
  std::size_t shown = 0;
  for (std::size_t d = 0; d < array.extents.size(); ++d) {
    if (array.at[d]) continue;
    if (shown++ > 0) grid.row_dimension = grid.column_dimension;
    grid.column_dimension = d;
  }
  PODSIM_ASSERT((shown == 1 || shown == 2) && "one or two dimensions are shown");
  grid.width = array.extents[grid.column_dimension];
  grid.columns = static_cast<std::size_t>(devices_along(array.mesh, array.sharding.axes_of(grid.column_dimension)));
  if (grid.row_dimension) {
    grid.height = array.extents[*grid.row_dimension];
    grid.rows = static_cast<std::size_t>(devices_along(array.mesh, array.sharding.axes_of(*grid.row_dimension)));
  }
  for (const Shard& shard : *shards) {
    bool cut = true;
    for (std::size_t d = 0; d < array.at.size(); ++d)
      cut = cut && (!array.at[d] || (shard.ranges[d].first <= *array.at[d] && *array.at[d] < shard.ranges[d].second));
    if (!cut) continue;
    ShownBlock& block = grid.blocks.emplace_back(ShownBlock{{}, shard.ranges});
    for (const DeviceId device : shard.devices) block.devices.push_back(array.numbers[device.index()]);
    std::sort(block.devices.begin(), block.devices.end());
  }
  PODSIM_ASSERT(grid.blocks.size() == grid.rows * grid.columns);
  return grid;
}

std::string block_label(const std::string& platform, const ShownBlock& block) {
  return fmt::format("{} {}", platform, fmt::join(block.devices, ","));
}

std::vector<Colour> cell_colours(std::size_t cells) {
  std::vector<Colour> colours;
  const std::size_t step = cells / 2 + (cells % 2 == 0 ? 1 : 0);
  for (std::size_t k = 0, i = 0; k < cells; ++k, i = (i + step) % cells)
    colours.push_back(tab20b.at(cells == 1 ? 0 : std::min<std::size_t>(19, 20 * i / (cells - 1))));
  return colours;
}

Colour letters_on(Colour cell) { return 0.299 * cell.red + 0.587 * cell.green + 0.114 * cell.blue > 186 ? Colour{} : Colour{255, 255, 255}; }

TextDrawing draw_sharding(const BlockGrid& grid, const std::string& platform, bool coloured, std::size_t columns) {
  return LabelTable{grid, platform, coloured, columns}.draw();
}

}  // namespace podsim
