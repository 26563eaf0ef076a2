// Who holds which block of a sharded array, as text: what jax.debug.visualize_array_sharding draws.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/mesh/sharding.hpp"
#include "tools/report/colour.hpp"

namespace podsim {

/// An array and the devices that it lies on.
struct ShownArray {
  Extents extents;      // each at least 1
  Sharding sharding{};  // that divides them
  Mesh mesh{};
  std::vector<std::int64_t> numbers{};            // of each device of the mesh, none twice
  std::string platform = "CPU";                   // printable ASCII
  std::vector<std::optional<std::int64_t>> at{};  // per dimension the index where it is cut; nothing: the dimension is shown. One or two are shown
};

/// A block and the numbers of the devices that hold it, increasing.
struct ShownBlock {
  std::vector<std::int64_t> devices;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // per dimension of the array [first, last)
};

/// The blocks that the cut meets, row-major: the last shown dimension is that of the columns; with one shown dimension there is one row.
struct BlockGrid {
  std::size_t rows = 1, columns = 1;
  std::optional<std::size_t> row_dimension{};
  std::size_t column_dimension = 0;
  std::int64_t height = 1, width = 1;  // extents of the shown dimensions
  std::vector<ShownBlock> blocks{};
};
/// Cost: O(devices of the mesh * rank). Errors: those of shards_of().
Expected<BlockGrid> block_grid(const ShownArray& array, const SourceLocation& where);

/// "CPU 0,2,4,6"
std::string block_label(const std::string& platform, const ShownBlock& block);

/// The backgrounds of `cells` cells, row-major: entries of matplotlib's tab20b, stepping through it by half the number of cells, so that neighbours
/// differ.
std::vector<Colour> cell_colours(std::size_t cells);
/// The letters on one, as visualize_array_sharding chooses: black where the luma is above 186, otherwise white.
Colour letters_on(Colour cell);

struct TextDrawing {
  std::string text;
  std::size_t width = 0;  // before it was clipped
};
/// Lines of at most `columns` columns. Plain: a table with borders. Coloured: cells without borders, one larger on each side, their colours as 24-bit
/// escape sequences. The size of a cell follows from its block's share of the array, as in visualize_array_sharding with scale 1, min_width 9,
/// max_width 80.
TextDrawing draw_sharding(const BlockGrid& grid, const std::string& platform, bool coloured, std::size_t columns);

}  // namespace podsim
