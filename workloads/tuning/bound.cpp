#include "workloads/tuning/bound.hpp"

#include <algorithm>
#include <cassert>

#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

constexpr Seconds none{};

/// An all-gather of so many bytes per device, or a reduce-scatter to them: a lower bound, as if halves of any size could be cut.
Seconds ring_time(const Machine& machine, const AxisRings::Ring& ring, double bytes, double efficiency, Seconds per_step) {
  const CollectiveAxis axis{ring.size, ring.wraps ? AxisLinks::ring : AxisLinks::line};
  const auto steps = closed_form_of(usual_algorithm(CollectiveKind::all_gather, ring.wraps), {axis}, {CollectiveKind::all_gather, bytes});
  assert(steps && "of any size");
  const StepCost cost{machine.software.per_message + per_step, ring.link.latency, efficiency * ring.link.bandwidth};
  Seconds time;
  for (const CollectiveStep& step : *steps) time += time_of(step, cost);
  return time;
}

/// An all-gather or reduce-scatter of blocks of so many elements. Over several dimensions both orders at once, half of the data each, of an odd
/// number of rows up to two thirds, or everything in one order: whichever is least.
Seconds collective_time(const Machine& machine, CollectiveKind kind, const std::vector<AxisRings::Ring>& rings, std::int64_t elements, DType dtype) {
  if (rings.empty()) return none;
  const auto cost_kind = static_cast<std::size_t>(cost_kind_of(kind));
  const std::int64_t block = elements * size_of(dtype).count();
  std::int64_t devices = 1;
  for (const AxisRings::Ring& ring : rings) devices *= ring.size;
  const Bytes input{kind == CollectiveKind::reduce_scatter ? block * devices : block};
  const double efficiency = efficiency_at(machine.software.efficiency[cost_kind], input);
  const auto in_order = [&](const std::vector<AxisRings::Ring>& order, double bytes) {
    Seconds time;
    for (const AxisRings::Ring& ring : order) {
      time += ring_time(machine, ring, bytes, efficiency, none);
      bytes *= ring.size;
    }
    return time;
  };
  const Seconds launch = machine.software.launch[cost_kind];
  const auto bytes = static_cast<double>(block);
  if (rings.size() == 1) return launch + in_order(rings, bytes);
  const std::vector<AxisRings::Ring> backwards{rings.rbegin(), rings.rend()};
  // Both times grow in a line with their part of the data: the longer one is least where they meet.
  const Seconds forth = in_order(rings, bytes), back = in_order(backwards, bytes), forth_empty = in_order(rings, 0),
                back_empty = in_order(backwards, 0);
  const double slopes = (forth - forth_empty + back - back_empty).count();
  const double part = slopes > 0 ? std::clamp((back - forth_empty).count() / slopes, 1.0 / 3, 2.0 / 3) : 0.5;
  return launch + std::min({forth, back, std::max(in_order(rings, part * bytes), in_order(backwards, (1 - part) * bytes))});
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
  Seconds first_matmul, matmuls;      // one; all of them
  Seconds cut_left, cut_right, join;  // where they are copies
  Seconds gather_row, gather_col, scatter_row, scatter_col;
  Seconds permute_row, permute_col;  // wang: all hops

  [[nodiscard]] Seconds cuts() const { return cut_left + cut_right; }
  [[nodiscard]] Seconds scatter() const { return std::max(scatter_row, scatter_col); }
};

SlicedGemm sliced(const GemmProblem& problem, std::int64_t S, const PartOptions& options, const Machine& machine, const AxisRings& rings, int R,
                  int C) {
  const std::int64_t m = problem.m, n = problem.n, k = problem.k, B = options.block;
  const DType dtype = problem.dtype;
  const bool copies = options.slice_copies && S > 1;
  SlicedGemm gemm;
  gemm.slices = static_cast<double>(S);
  const auto gather = [&](const std::vector<AxisRings::Ring>& axis, std::int64_t elements) {
    return collective_time(machine, CollectiveKind::all_gather, axis, elements, dtype);
  };
  const auto scatter = [&](const std::vector<AxisRings::Ring>& axis, std::int64_t elements) {
    return collective_time(machine, CollectiveKind::reduce_scatter, axis, elements, dtype);
  };
  const auto matmuls = [&](std::int64_t rows, std::int64_t columns, std::int64_t contraction, bool accumulate) {
    gemm.first_matmul = matmul(machine, rows, columns, contraction, false, dtype);
    gemm.matmuls = gemm.first_matmul + static_cast<double>(S - 1) * matmul(machine, rows, columns, contraction, accumulate, dtype);
  };
  switch (problem.dataflow) {
    case Dataflow::os: {
      const std::int64_t x = m / R * (k / (C * S)), w = k / (R * S) * (n / C);
      gemm.gather_col = gather(rings.col, x);
      gemm.gather_row = gather(rings.row, w);
      if (copies) gemm.cut_left = copy(machine, x, B, k / (C * S), dtype), gemm.cut_right = copy(machine, w, n / C, n / C, dtype);
      matmuls(m / R, n / C, k / S, true);
      break;
    }
    case Dataflow::ls: {
      const std::int64_t w = n / (R * S) * (k / C), y = m / R * (n / (C * S));
      gemm.gather_row = gather(rings.row, w);
      gemm.scatter_col = scatter(rings.col, y);
      if (copies) gemm.cut_right = copy(machine, w, k / C, k / C, dtype), gemm.join = copy(machine, y, n / (C * S), B, dtype);
      matmuls(m / R, n / S, k / C, false);
      break;
    }
    case Dataflow::rs: {
      const std::int64_t x = k / R * (m / (C * S)), y = m / (R * S) * (n / C);
      gemm.gather_col = gather(rings.col, x);
      gemm.scatter_row = scatter(rings.row, y);
      if (copies) gemm.cut_left = copy(machine, x, B, m / (C * S), dtype), gemm.join = copy(machine, y, n / C, n / C, dtype);
      matmuls(m / S, n / C, k / R, false);
      break;
    }
  }
  return gemm;
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
  // Cuts of the slices that run ahead fill the time of the first gathers; joins of slices before the last fill that of the last reduce-scatter.
  const Seconds ahead = std::min(prefetch, first.slices - 1) * first.cuts();
  const Seconds start = std::max({none, first.gather_col - first.cut_right - ahead, first.gather_row - ahead});
  const Seconds end = std::max(none, last.scatter() - std::min(prefetch, last.slices - 1) * last.join);
  core += start + end;
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

/// Wang: an exposed gather, then hops and matmuls.
Seconds wang_bound(const GemmProblem& problem, const Machine& machine, const AxisRings& rings, int R, int C) {
  const std::int64_t m = problem.m, n = problem.n, k = problem.k, element = size_of(problem.dtype).count();
  const DType dtype = problem.dtype;
  const auto gather = [&](const std::vector<AxisRings::Ring>& axis, std::int64_t elements) {
    return collective_time(machine, CollectiveKind::all_gather, axis, elements, dtype);
  };
  const auto hop = [&](const std::vector<AxisRings::Ring>& axis, std::int64_t elements) {
    const Seconds launch = machine.software.launch[static_cast<std::size_t>(CostKind::permute)];
    if (axis.size() != 1) return none;  // folded: neighbours are not always next to each other
    return ring_time(machine, axis.front(), static_cast<double>(elements * element), 1, launch) / static_cast<double>(axis.front().size - 1);
  };
  const auto steps = [](Seconds exposed, Seconds product, Seconds step, int devices) {
    return exposed + product + static_cast<double>(devices - 1) * std::max(product, step);
  };
  switch (problem.dataflow) {
    case Dataflow::os: {
      const std::int64_t x = m / R * (k / C), w = k / R * (n / C);
      const bool x_travels = x * (C - 1) >= w * (R - 1);
      const int P = x_travels ? C : R;
      const Seconds product = matmul(machine, m / R, n / C, k / P, false, dtype);
      const Seconds exposed = x_travels ? gather(rings.row, w) : gather(rings.col, x);
      // The first hops run beside the gather.
      return std::max(exposed + static_cast<double>(P) * product,
                      static_cast<double>(P - 1) * (x_travels ? hop(rings.col, x) : hop(rings.row, w)) + product);
    }
    case Dataflow::ls:
      return steps(gather(rings.row, n / R * (k / C)), matmul(machine, m / R, n / C, k / C, false, dtype), hop(rings.col, m / R * (n / C)), C);
    case Dataflow::rs:
      return steps(gather(rings.col, k / R * (m / C)), matmul(machine, m / R, n / C, k / R, false, dtype), hop(rings.row, m / R * (n / C)), R);
  }
  return none;
}

}  // namespace

std::optional<AxisRings> axis_rings(const Pod& pod) {
  const Grid* grid = pod.topology->plain_grid();
  if (grid == nullptr || pod.machine.chip.devices != 1 || pod.mesh.axes().size() != 2 || grid->chips() != pod.mesh.devices()) return std::nullopt;
  for (std::size_t d = 0; d < pod.placement.chip_of.size(); ++d)
    if (pod.placement.chip_of[d].index() != d) return std::nullopt;
  AxisRings rings;
  std::size_t next = 0;
  const auto& dimensions = grid->dimensions();
  for (int axis = 0; axis < 2; ++axis)
    for (const AxisView& factor : pod.mesh.factors(axis)) {
      if (factor.size == 1) continue;
      while (next < dimensions.size() && dimensions[next].extent == 1) ++next;
      if (next == dimensions.size() || dimensions[next].extent != factor.size) return std::nullopt;
      (axis == 0 ? rings.row : rings.col).push_back({factor.size, dimensions[next].wraps, dimensions[next].link});
      ++next;
    }
  return rings;
}

Seconds product_bound(const WorkloadPart& part, const PartOptions& options, const Pod& pod, const std::optional<AxisRings>& rings) {
  const Machine& machine = pod.machine;
  const int R = pod.mesh.axes()[0].size, C = pod.mesh.axes()[1].size;
  std::vector<GemmProblem> problems = layer_problems(gemm_problem_of(part));
  if (part.pass == Pass::forward)
    problems.resize(1);
  else
    problems.erase(problems.begin());
  const std::string& name = part.product.algorithm;
  if (rings && (name == "collective" || name == "meshslice")) {
    std::vector<SlicedGemm> gemms;
    for (const GemmProblem& problem : problems)
      gemms.push_back(sliced(problem, std::max<std::int64_t>(part.product.slice_count, 1), options, machine, *rings, R, C));
    return bound_of(gemms, options.prefetch);
  }
  Seconds arithmetic, longest;  // gathers and hops of one may overlap those of the other
  for (const GemmProblem& problem : problems) {
    arithmetic += Flops{2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k)} /
                  (static_cast<double>(pod.mesh.devices()) * machine.chip.matmul_efficiency * peak_of(machine, problem.dtype));
    if (rings && name == "wang") longest = std::max(longest, wang_bound(problem, machine, *rings, R, C));
  }
  return std::max(arithmetic, longest);
}

}  // namespace podsim
