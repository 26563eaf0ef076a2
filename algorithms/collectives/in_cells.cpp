#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "algorithms/collectives/axis_cells.hpp"
#include "algorithms/collectives/builder.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

/// What an expansion on the folded axis is on one coordinate of the axis as it lies.
class Renaming {
 public:
  /// `folded`: the mesh whose axis is folded row-major.
  Renaming(const Mesh& folded, int axis, const AxisCells& cells) : folded_{folded}, whole_{folded.whole(axis)}, cell_{cells.cell}, at_cell_(cells.cell.size()) {
    for (std::size_t c = 0; c < cell_.size(); ++c) at_cell_[static_cast<std::size_t>(cell_[c])] = static_cast<int>(c);
  }

  [[nodiscard]] int coordinates() const { return whole_.size; }

  /// The tasks that a task becomes.
  [[nodiscard]] std::vector<Task> of(const Task& task) const {
    std::vector<Task> made;
    bool alike = true;
    for (int c = 0; c < whole_.size; ++c) {
      auto one = on(task, c);
      alike = alike && one && (made.empty() || *one == made.front());
      if (one) made.push_back(*std::move(one));
    }
    if (alike && !std::holds_alternative<Shift>(task.op)) {
      made.resize(1);
      return made;
    }
    std::size_t next = 0;
    for (int c = 0; c < whole_.size; ++c) {
      if (!on(task, c)) continue;
      const Guard here = coordinate_in(whole_, c, c + 1);
      made[next].where.insert(made[next].where.end(), here.begin(), here.end());
      ++next;
    }
    return made;
  }

 private:
  [[nodiscard]] int cell(int coordinate) const { return cell_[static_cast<std::size_t>(coordinate)]; }

  /// A function of the coordinates on one cell: that of the other axes.
  [[nodiscard]] Affine on_cell(const Affine& affine, int cell) const {
    Affine made{{}, affine.constant, affine.modulus};
    for (const AxisTerm& term : affine.terms) {
      if (term.axis.axis != whole_.axis)
        made.terms.push_back(term);
      else
        made.constant += term.coefficient * (((cell / term.axis.stride % term.axis.size + term.add) % term.axis.size + term.axis.size) % term.axis.size);
    }
    if (!made.terms.empty() || made.modulus == 0) return made;
    return Affine{(made.constant % made.modulus + made.modulus) % made.modulus};
  }

  [[nodiscard]] Region on_cell(Region region, int cell) const {
    for (Range& range : region.dims) range.index = on_cell(range.index, cell);
    return region;
  }

  /// nullopt: the task is not on this coordinate, or moves nothing there.
  [[nodiscard]] std::optional<Task> on(const Task& task, int coordinate) const {
    const int here = cell(coordinate);
    Task made = task;
    made.after.clear();  // by the caller
    made.where.clear();
    for (const Condition& condition : task.where) {
      const Affine value = on_cell(condition.value, here);
      if (!value.terms.empty())
        made.where.push_back({value, condition.low, condition.high});
      else if (value.constant < condition.low || value.constant >= condition.high)
        return std::nullopt;
    }
    if (Shift* const shift = std::get_if<Shift>(&made.op); shift != nullptr && shift->axis.axis == whole_.axis) {
      const Affine by = on_cell(shift->by, here);
      PODSIM_ASSERT(by.terms.empty());  // no algorithm of collectives has a distance that depends on other axes
      shift->by = by;
      Coordinates at(folded_.axes().size());
      at[static_cast<std::size_t>(whole_.axis)] = here;
      const int there = folded_.coordinate(receiver_of(folded_, *shift, folded_.device(at)), whole_);
      if (there == here) return std::nullopt;
      shift->by = at_cell_[static_cast<std::size_t>(there)] - coordinate;
      shift->axis = whole_;
      shift->by_dimension = false;
      shift->source = on_cell(std::move(shift->source), here), shift->target = on_cell(std::move(shift->target), there);
      return made;
    }
    for (Region* const region : regions_of(made.op)) *region = on_cell(std::move(*region), here);
    if (Send* const send = std::get_if<Send>(&made.op)) send->to = peer(send->to, here);
    if (Recv* const recv = std::get_if<Recv>(&made.op)) recv->from = peer(recv->from, here);
    return made;
  }

  [[nodiscard]] Peer peer(Peer of, int here) const {
    for (Affine& coordinate : of) coordinate = on_cell(coordinate, here);
    Affine& along = of[static_cast<std::size_t>(whole_.axis)];
    PODSIM_ASSERT(along.terms.empty());
    along = at_cell_[static_cast<std::size_t>(along.constant)];
    return of;
  }

  const Mesh& folded_;
  AxisView whole_;
  std::vector<int> cell_, at_cell_;
};

/// The tasks under their new names. An edge becomes one between all tasks that the two became: those that are absent on a device do not count there.
Expansion renamed(const Expansion& expansion, const Renaming& renaming) {
  Expansion made{{}, expansion.scratch};
  std::vector<std::pair<std::size_t, std::size_t>> became;  // first, and behind the last
  for (const Task& task : expansion.tasks) {
    std::vector<Task> tasks = renaming.of(task);
    Edges after;
    for (const Edge& edge : task.after)
      for (std::size_t t = became[edge.task.index()].first; t < became[edge.task.index()].second; ++t) after.push_back({TaskId{t}, edge.done, edge.gates});
    became.emplace_back(made.tasks.size(), made.tasks.size() + tasks.size());
    for (Task& one : tasks) {
      one.after = after;
      made.tasks.push_back(std::move(one));
    }
  }
  return made;
}

/// A copy of a region in scratch whose blocks are in the order of cells; `in`: filled from the region, otherwise the region is filled from it.
Edges reorder(ProgramBuilder& builder, const Blocks& blocks, const Blocks& ordered, const AxisCells& cells, bool in, const Edges& after) {
  Edges placed;
  for (std::size_t c = 0; c < cells.cell.size(); ++c) {
    const Region by_axis = blocks.block(static_cast<std::int64_t>(c)), by_cell = ordered.block(cells.cell[c]);
    placed.push_back(Edge{builder.alias("place", in ? by_axis : by_cell, in ? by_cell : by_axis, after)});
  }
  return placed;
}

}  // namespace

Expected<Expansion> in_cells(const Mesh& mesh, const Program& program, const Collective& collective, const AxisCells& cells, const CollectiveAlgorithm& algorithm) {
  using enum CollectiveKind;
  const bool gathers = collective.kind == all_gather, scatters = collective.kind == reduce_scatter, exchanges = collective.kind == all_to_all;
  if (!gathers && !scatters && !exchanges && collective.kind != all_reduce) return unsupported("an algorithm in cells", "all-gather, reduce-scatter, all-reduce and all-to-all", collective);
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  if (*axis != mesh.whole(axis->axis) || static_cast<int>(cells.cell.size()) != axis->size)
    return Diagnostic{{}, fmt::format("expected the whole of an axis of {} devices, found {}", cells.cell.size(), mesh.name(*axis))};
  std::vector<MeshAxis> axes = mesh.axes();
  axes[static_cast<std::size_t>(axis->axis)].factors = cells.dimensions;
  const auto folded = Mesh::make(std::move(axes));
  if (!folded) return folded.error();

  ProgramBuilder builder{mesh, program};
  Collective ordered = collective;
  Edges start;
  const auto aside = [&](const Region& region) { return builder.scratch("in the order of cells", lengths_of(region), builder.buffer(region.buffer).dtype); };
  if (scatters || exchanges) {
    const int dim = scatters ? collective.dim : collective.split_dim;
    ordered.input = aside(collective.input);
    const auto from = Blocks::make(collective.input, dim, axis->size), to = Blocks::make(ordered.input, dim, axis->size);
    if (!from || !to) return from ? to.error() : from.error();
    start = reorder(builder, *from, *to, cells, true, {});
  }
  if (gathers || exchanges) ordered.output = aside(collective.output);
  const Renaming renaming{*folded, axis->axis, cells};
  const CollectiveAlgorithm on_axis = [&](const Mesh&, const Program& around, const Collective& one) -> Expected<Expansion> {
    const auto expansion = algorithm(*folded, around, one);
    if (!expansion) return expansion.error();
    return renamed(*expansion, renaming);
  };
  auto last = append(builder, on_axis, ordered, start, {});
  if (!last) return last.error();
  const Edges ended = gathered(builder, *std::move(last), static_cast<std::size_t>(axis->size));
  if (gathers || exchanges) {
    const auto from = Blocks::make(ordered.output, collective.dim, axis->size), to = Blocks::make(collective.output, collective.dim, axis->size);
    if (!from || !to) return from ? to.error() : from.error();
    reorder(builder, *to, *from, cells, false, ended);
  }
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
