#include "topologies/drawing.hpp"

#include <fmt/format.h>

namespace podsim {
namespace {

constexpr int most_across = 16;

bool leaves(const GridDimension& dimension) { return dimension.wraps && dimension.extent > 2; }

/// The line between two rows: one bar under the last digit of each chip.
std::string bars(int columns, std::size_t width) {
  std::string line = "  ";
  for (int column = 0; column < columns; ++column) line += fmt::format("{}{:>{}}", column == 0 ? "" : "   ", "|", width);
  return line + '\n';
}

/// The chips from `first` on in rows and columns.
std::string plane(const GridDimension& down, const GridDimension& across, int first, std::size_t width) {
  const std::string between = bars(across.extent, width);
  std::string text;
  if (leaves(down)) text += between;
  for (int row = 0; row < down.extent; ++row) {
    if (row > 0) text += between;
    text += leaves(across) ? "- " : "  ";
    for (int column = 0; column < across.extent; ++column)
      text += fmt::format("{}{:>{}}", column == 0 ? "" : " - ", first + row * across.extent + column, width);
    text += leaves(across) ? " -\n" : "\n";
  }
  if (leaves(down)) text += between;
  return text;
}

}  // namespace

std::optional<std::string> draw(const Grid& grid) {
  std::vector<GridDimension> dimensions = grid.dimensions();
  while (dimensions.size() < 2) dimensions.insert(dimensions.begin(), GridDimension{});
  const GridDimension& down = dimensions[dimensions.size() - 2];
  const GridDimension& across = dimensions.back();
  const int in_plane = down.extent * across.extent, planes = grid.chips() / in_plane;
  if (down.extent > most_across || across.extent > most_across || planes > most_across) return std::nullopt;

  const std::size_t width = fmt::formatted_size("{}", grid.chips() - 1);
  std::string text;
  for (int i = 0; i < planes; ++i) {
    if (dimensions.size() > 2) {
      const std::vector<int> at = grid.coordinates(ChipId{i * in_plane});
      for (std::size_t d = 0; d + 2 < at.size(); ++d) text += fmt::format("{}{}={}", d == 0 ? "" : ",", dimension_name(static_cast<int>(d)), at[d]);
      text += '\n';
    }
    text += plane(down, across, i * in_plane, width);
  }
  // Lines between planes cannot be drawn, so they are said.
  for (std::size_t d = 0; d + 2 < dimensions.size(); ++d) {
    if (dimensions[d].extent == 1) continue;
    text += fmt::format("{0}: each chip is linked to those at {0}+1 and {0}-1{1}\n", dimension_name(static_cast<int>(d)),
                        leaves(dimensions[d]) ? fmt::format(", {} to 0", dimensions[d].extent - 1) : "");
  }
  return text;
}

}  // namespace podsim
