// Algorithms for several dimensions on a mesh axis whose devices fill these dimensions in another order than row-major.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/schedule/lower.hpp"

namespace podsim {

/// How the devices along a whole mesh axis lie in a box of physical dimensions: JAX lays an axis of 16 on 4x4 chips as a ring of neighbours.
struct AxisCells {
  std::vector<MeshFactor> dimensions;  // two or more, each longer than 1
  std::vector<int> cell;               // of each coordinate of the axis: the row-major position in the dimensions
  friend bool operator==(const AxisCells&, const AxisCells&) = default;
};

/// nullopt: the devices along the axis fill no box of two or more dimensions, or not all groups along it alike.
using CellRule = std::function<std::optional<AxisCells>(const Mesh&, const AxisView&)>;

/// The collective along one whole axis by an algorithm along its dimensions. The algorithm is written on a mesh whose axis is folded row-major; its devices are
/// then renamed: each task becomes one for each coordinate of the axis, with that coordinate's regions and a shift to that coordinate's peer; a task that is the
/// same for all coordinates stays one. Blocks of inputs and outputs are in the order of the axis: aliases, free in time, put them in the order of cells.
///
///   cost    that of the algorithm on the folded axis; P tasks for each of its own
///   errors  several axes, or a part of one; kinds other than all-gather, reduce-scatter, all-reduce, all-to-all; those of the algorithm
///   example an axis of 8 on 2x4 as the ring 0 1 2 3 7 6 5 4 of cells: coordinate 6 is in cell 5. A shift by 1 along the dimension of 2 goes from it to cell 1, coordinate 1
Expected<Expansion> in_cells(const Mesh& mesh, const Program& program, const Collective& collective, const AxisCells& cells, const CollectiveAlgorithm& algorithm);

}  // namespace podsim
