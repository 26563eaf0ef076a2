#include "workloads/tuning/bound.hpp"

#include <algorithm>

#include "algorithms/collectives/collectives.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

constexpr Seconds none{};

/// An all-gather of so many bytes per device, or a reduce-scatter to them: a lower bound, as if halves of any size could be cut.
Seconds ring_time(const Machine& machine, const AxisRings::Ring& ring, double bytes, double efficiency, Seconds per_step) {
  const CollectiveAxis axis{ring.size, ring.wraps ? AxisLinks::ring : AxisLinks::line};
  const auto steps = closed_form_of(usual_algorithm(CollectiveKind::all_gather, ring.wraps), {axis}, {CollectiveKind::all_gather, bytes});
  PODSIM_ASSERT(steps && "of any size");
  const StepCost cost{machine.software.per_message + per_step, ring.link.latency, efficiency * ring.link.bandwidth};
  Seconds time;
  for (const CollectiveStep& step : *steps) time += time_of(step, cost);
  return time;
}

/// An all-gather or reduce-scatter of blocks of so many elements. Over several dimensions by rotations(): what all links into a device take together,
/// and the steps of all dimensions. Where these are alike, no part is smaller than the average, and each does its steps one after the other;
/// otherwise steps of one chunk may hide behind another. By any algorithm: one message, and the wires of the device that has the fewest.
Seconds collective_time(const Machine& machine, CollectiveKind kind, const std::vector<AxisRings::Ring>& rings, std::int64_t elements, DType dtype, bool by_any) {
  if (rings.empty()) return none;
  const auto cost_kind = static_cast<std::size_t>(cost_kind_of(kind));
  const std::int64_t block = elements * size_of(dtype).count();
  std::int64_t devices = 1;
  for (const AxisRings::Ring& ring : rings) devices *= ring.size;
  const Bytes input{kind == CollectiveKind::reduce_scatter ? block * devices : block};
  const double efficiency = efficiency_at(machine.software.efficiency[cost_kind], input);
  const Seconds launch = machine.software.launch[cost_kind];
  const auto bytes = static_cast<double>(block);
  if (rings.size() == 1 && !by_any) return launch + ring_time(machine, rings.front(), bytes, efficiency, none);
  Seconds steps, message = machine.software.per_message + rings.front().link.latency;
  BytesPerSecond into_device;
  bool alike = true;
  for (const AxisRings::Ring& ring : rings) {
    steps += (ring.size - 1) * (machine.software.per_message + ring.link.latency);
    message = std::min(message, machine.software.per_message + ring.link.latency);
    into_device = into_device + (ring.wraps && ring.size > 2 ? 2.0 : 1.0) * ring.link.bandwidth;
    alike = alike && ring.size == rings.front().size && ring.wraps == rings.front().wraps && ring.link == rings.front().link;
  }
  const Seconds wires{bytes * static_cast<double>(devices - 1) / (efficiency * into_device.count())};
  if (by_any) return launch + message + wires;
  return launch + (alike ? steps + wires : std::max(steps, wires));
}

/// Of m x n x k on one device.
Seconds matmul(const Machine& machine, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate, DType dtype) {
  const auto region = [](std::int64_t rows, std::int64_t columns) { return Region{BufferId{0}, {all(rows), all(columns)}}; };
  return matmul_time(machine, Matmul{region(m, k), region(k, n), region(m, n), 1, 1, 1, false, false, accumulate}, dtype);
}

/// A copy of so many elements, with so many adjacent in the rows of what is read and written.
Seconds copy(const Machine& machine, std::int64_t elements, std::int64_t read_row, std::int64_t written_row, DType dtype) {
  Program program;
  Local local{LocalKind::copy, {}, {}};
  for (const std::int64_t row : {read_row, written_row}) {
    const Region region{BufferId{program.buffers.size()}, {all(elements / row), all(row)}};
    program.buffers.push_back({"", {elements / row, row}, dtype, Role::scratch, {}, {}});
    (local.reads.empty() ? local.reads : local.writes).push_back(region);
  }
  return local_time(machine, program, Task{"", std::move(local), {}, {}, {}});
}

/// One GEMM in slices: how long each thing takes, once per slice.
struct SlicedGemm {
  double slices = 1;
  bool copies = false;                // slices are cut and joined by copies
  Seconds first_matmul, matmuls;      // one; all of them
  Seconds cut_left, cut_right, join;  // where they are copies
  Seconds gather_row, gather_col, scatter_row, scatter_col;
  Seconds permute_row, permute_col;  // wang: all hops

  [[nodiscard]] Seconds cuts() const { return cut_left + cut_right; }
  [[nodiscard]] Seconds scatter() const { return std::max(scatter_row, scatter_col); }
};

/// The elements of a matrix of a problem on one device.
std::int64_t local_elements(const GemmProblem& problem, Operand operand, int R, int C) {
  const OperandShape shape = shape_of(problem.dataflow, operand);
  return problem.*shape.rows / R * (problem.*shape.columns / C);
}

SlicedGemm sliced(const GemmProblem& problem, std::int64_t S, const PartOptions& options, const Machine& machine, const AxisRings& rings, int R, int C, bool by_any) {
  const DataflowTraits& flow = traits_of(problem.dataflow);
  const bool copies = options.slice_copies && S > 1;
  SlicedGemm gemm;
  gemm.slices = static_cast<double>(S);
  gemm.copies = copies;
  GemmProblem slice = problem;
  slice.*flow.moving /= S;
  for (const Move& move : flow.moves) {
    const bool along_rows = move.dim == 0;
    const DType dtype = dtype_of(problem.dtype, move.operand);
    const std::vector<AxisRings::Ring>& axis = along_rows ? rings.row : rings.col;
    const std::int64_t elements = local_elements(slice, move.operand, R, C);
    // Elements that lie together: in the slice, and where the matrix has it.
    const std::int64_t row = slice.*shape_of(problem.dataflow, move.operand).columns / C, row_in_matrix = along_rows ? row : options.block;
    if (move.operand == Operand::out) {
      (along_rows ? gemm.scatter_row : gemm.scatter_col) = collective_time(machine, CollectiveKind::reduce_scatter, axis, elements, dtype, by_any);
      if (copies) gemm.join = copy(machine, elements, row, row_in_matrix, dtype);
    } else {
      (along_rows ? gemm.gather_row : gemm.gather_col) = collective_time(machine, CollectiveKind::all_gather, axis, elements, dtype, by_any);
      if (copies) (move.operand == Operand::left ? gemm.cut_left : gemm.cut_right) = copy(machine, elements, row_in_matrix, row, dtype);
    }
  }
  slice.*flow.by_rows /= R;
  slice.*flow.by_columns /= C;
  gemm.first_matmul = matmul(machine, slice.m, slice.n, slice.k, false, problem.dtype);
  gemm.matmuls = gemm.first_matmul + static_cast<double>(S - 1) * matmul(machine, slice.m, slice.n, slice.k, !flow.reduces, problem.dtype);
  return gemm;
}

/// How long the core is idle before the first matmul: cuts of the slices that run ahead fill the time of the first gathers.
Seconds idle_before(const SlicedGemm& g, double prefetch) {
  const Seconds ahead = std::min(prefetch, g.slices - 1) * g.cuts();
  return std::max({none, g.gather_col - g.cut_right - ahead, g.gather_row - ahead});
}

/// How long it is idle after the last matmul: joins of slices before the last fill the time of the last reduce-scatter.
Seconds idle_after(const SlicedGemm& g, double prefetch) { return std::max(none, g.scatter() - std::min(prefetch, g.slices - 1) * g.join); }

/// How long it is idle between the last matmul of one GEMM and the first of the next. The core works in program order, so the first cut follows
/// the last join; without copies only a gather on the axis of the reduce-scatter waits for that.
Seconds idle_between(const SlicedGemm& one, const SlicedGemm& next, double prefetch) {
  if (one.copies && next.copies && one.scatter() > none) return idle_after(one, prefetch) + idle_before(next, prefetch);
  if (one.copies || next.copies) return none;
  const auto on_axis = [](Seconds scatter, Seconds gather) { return scatter > none && gather > none ? scatter + gather : none; };
  return std::max(on_axis(one.scatter_row, next.gather_row), on_axis(one.scatter_col, next.gather_col));
}

/// The bound on GEMMs that follow each other in one schedule; an axis queue works through all of them, and so does the core.
Seconds bound_of(const std::vector<SlicedGemm>& gemms, double prefetch) {
  const SlicedGemm &first = gemms.front(), &last = gemms.back();
  Seconds core, row, col;
  for (const SlicedGemm& g : gemms) {
    core += g.matmuls + g.slices * (g.cuts() + g.join);
    row += g.slices * (g.gather_row + g.scatter_row);
    col += g.slices * (g.gather_col + g.scatter_col);
  }
  core += idle_before(first, prefetch) + idle_after(last, prefetch);
  for (std::size_t g = 0; g + 1 < gemms.size(); ++g) core += idle_between(gemms[g], gemms[g + 1], prefetch);
  const auto on_axis = [&](Seconds queue, Seconds gather, Seconds other_gather, Seconds last_gather) {
    if (queue == none) return none;
    // A reduce-scatter follows the other axis' gather and a matmul; after a gather come a matmul and the other axis' reduce-scatter.
    const Seconds before = gather > none ? none : other_gather + first.first_matmul;
    const Seconds after = last_gather > none ? last.first_matmul + last.scatter() : none;
    return queue + before + after;
  };
  return std::max(
      {core, on_axis(row, first.gather_row, first.gather_col, last.gather_row), on_axis(col, first.gather_col, first.gather_row, last.gather_col)});
}

/// Whether a gather ends at the same time on all devices of these rings: in a line the middle is done first.
bool ends_together(const std::vector<AxisRings::Ring>& rings) {
  return std::all_of(rings.begin(), rings.end(), [](const AxisRings::Ring& ring) { return ring.wraps || ring.size <= 2; });
}

/// The core of the slowest device, where a product takes 1 / speed as long; of its copies, and of what other devices do for it, as if it were no slower.
/// What follows its last product may be short there: others have sent their sums before.
Seconds core_of_slowest(const std::vector<SlicedGemm>& gemms, double prefetch, double speed, const AxisRings& rings) {
  Seconds core;
  if (ends_together(rings.row) && ends_together(rings.col)) core = idle_before(gemms.front(), prefetch);
  for (const SlicedGemm& g : gemms) core += g.matmuls / speed + g.slices * (g.cuts() + g.join);
  return core;
}

/// Wang: an exposed gather, then hops and matmuls.
Seconds wang_bound(const GemmProblem& problem, const Machine& machine, const AxisRings& rings, int R, int C, bool by_any) {
  const DataflowTraits& flow = traits_of(problem.dataflow);
  const auto ring_of = [&](const Move& move) -> const std::vector<AxisRings::Ring>& { return move.dim == 0 ? rings.row : rings.col; };
  const auto devices_of = [&](const Move& move) { return move.dim == 0 ? R : C; };
  const auto elements_of = [&](const Move& move) { return local_elements(problem, move.operand, R, C); };
  const auto hops = [&](const Move& move) {
    const std::vector<AxisRings::Ring>& axis = ring_of(move);
    if (axis.empty()) return none;
    const Seconds launch = machine.software.launch[static_cast<std::size_t>(CostKind::permute)], overhead = machine.software.per_message + launch;
    const auto bytes = static_cast<double>(elements_of(move) * size_of(dtype_of(problem.dtype, move.operand)).count());
    const double times = devices_of(move) - 1;
    if (axis.size() > 1) {  // neighbours are not always next to each other: half a block, at least over one link
      Seconds latency = axis.front().link.latency;
      BytesPerSecond bandwidth;
      for (const AxisRings::Ring& ring : axis) latency = std::min(latency, ring.link.latency), bandwidth = std::max(bandwidth, ring.link.bandwidth);
      return times * (overhead + latency + Seconds{bytes / 2 / bandwidth.count()});
    }
    const AxisRings::Ring& ring = axis.front();
    if (ring.wraps || ring.size == 2) return ring_time(machine, ring, bytes, 1, launch);
    // The devices at the ends send half-blocks over the whole line, one after the other; every link carries two half-blocks a hop.
    const Seconds half{bytes / 2 / ring.link.bandwidth.count()};
    return std::max(times * (overhead + times * ring.link.latency + half), overhead + ring.link.latency + times * 2 * half);
  };
  const auto cost = [&](const Move& move) { return elements_of(move) * (devices_of(move) - 1); };
  const bool first_travels = !flow.reduces && cost(flow.moves[0]) >= cost(flow.moves[1]);
  const Move &travels = flow.moves[first_travels ? 0 : 1], &gathered = flow.moves[first_travels ? 1 : 0];
  const int P = devices_of(travels);
  GemmProblem local = problem;
  local.*flow.by_rows /= R;
  local.*flow.by_columns /= C;
  local.*flow.moving /= P;
  const Seconds product = matmul(machine, local.m, local.n, local.k, false, problem.dtype);
  const Seconds exposed = collective_time(machine, CollectiveKind::all_gather, ring_of(gathered), elements_of(gathered), dtype_of(problem.dtype, gathered.operand), by_any);
  if (flow.reduces) return exposed + product + std::max(static_cast<double>(P - 1) * product, hops(travels));
  // The first hops run beside the gather.
  return std::max(exposed + static_cast<double>(P) * product, hops(travels) + product);
}

}  // namespace

std::optional<AxisRings> axis_rings(const System& system) {
  const Grid* grid = system.topology->plain_grid();
  if (grid == nullptr || system.machine.chip.devices != 1 || system.mesh.axes().size() != 2 || grid->chips() != system.mesh.devices()) return std::nullopt;
  for (std::size_t d = 0; d < system.placement.chip_of.size(); ++d)
    if (system.placement.chip_of[d].index() != d) return std::nullopt;
  AxisRings rings;
  std::size_t next = 0;
  const auto& dimensions = grid->dimensions();
  for (int axis = 0; axis < 2; ++axis)
    for (const AxisView& factor : system.mesh.factors(axis)) {
      if (factor.size == 1) continue;
      while (next < dimensions.size() && dimensions[next].extent == 1) ++next;
      if (next == dimensions.size() || dimensions[next].extent != factor.size) return std::nullopt;
      (axis == 0 ? rings.row : rings.col).push_back({factor.size, dimensions[next].wraps, dimensions[next].link});
      ++next;
    }
  return rings;
}

std::vector<GemmProblem> gemms_of(const WorkloadPart& part) {
  std::vector<GemmProblem> problems = layer_problems(gemm_problem_of(part));
  if (part.pass == Pass::forward)
    problems.resize(1);
  else
    problems.erase(problems.begin());
  return problems;
}

Seconds product_bound(const WorkloadPart& part, const PartOptions& options, const System& system, const std::optional<AxisRings>& rings,
                      std::span<const SliceCollectives> known) {
  const Machine& machine = system.machine;
  const int R = system.mesh.axes()[0].size, C = system.mesh.axes()[1].size;
  const std::vector<GemmProblem> problems = gemms_of(part);
  const std::vector<double>& speeds = system.placement.speed;
  const double slowest = speeds.empty() ? 1 : *std::min_element(speeds.begin(), speeds.end());
  const std::string& name = part.product.algorithm;
  const bool by_any = !part.product.collectives.empty();
  if (rings && (name == "collective" || name == "meshslice")) {
    std::vector<SlicedGemm> gemms;
    for (std::size_t g = 0; g < problems.size(); ++g) {
      gemms.push_back(sliced(problems[g], std::max<std::int64_t>(part.product.slice_count, 1), options, machine, *rings, R, C, by_any));
      if (known.empty()) continue;
      for (Seconds* time : {&gemms[g].gather_row, &gemms[g].scatter_row})
        if (*time > none) *time = std::max(*time, known[g].row);
      for (Seconds* time : {&gemms[g].gather_col, &gemms[g].scatter_col})
        if (*time > none) *time = std::max(*time, known[g].col);
    }
    const Seconds bound = bound_of(gemms, options.prefetch);
    return slowest < 1 ? std::max(bound, core_of_slowest(gemms, options.prefetch, slowest, *rings)) : bound;
  }
  Seconds arithmetic, longest;  // gathers and hops of one may overlap those of the other
  for (const GemmProblem& problem : problems) {
    arithmetic += Flops{2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k)} /
                  (slowest * static_cast<double>(system.mesh.devices()) * machine.chip.matmul_efficiency * peak_of(machine, problem.dtype));
    if (rings && name == "wang") longest = std::max(longest, wang_bound(problem, machine, *rings, R, C, by_any));
  }
  return std::max(arithmetic, longest);
}

}  // namespace podsim
