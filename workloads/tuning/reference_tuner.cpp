#include "workloads/tuning/reference_tuner.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/invariant.hpp"

namespace podsim {
namespace {

constexpr std::int64_t slice_block = 8;                         // rows or columns
constexpr std::int64_t largest_side = std::int64_t{1} << 30;  // so that the bytes of a matrix fit 64 bits

/// Two bytes per element.
Bytes bytes_of(std::int64_t rows, std::int64_t cols) { return Bytes{2 * rows * cols}; }

/// A matrix that a GEMM moves along a dimension, one slice at a time; its slices are cut along the extent that this dimension shards.
struct MovedMatrix {
  std::int64_t rows = 0, cols = 0;
  CollectiveKind kind = CollectiveKind::all_gather;
  int dimension = 0;
};

std::array<MovedMatrix, 2> moves_of(const GemmProblem& gemm) {
  const auto moved = [&](const Move& move) {
    const OperandShape shape = shape_of(gemm.dataflow, move.operand);
    const bool reduced = move.operand == Operand::out;
    return MovedMatrix{gemm.*shape.rows, gemm.*shape.columns, reduced ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather,
                       static_cast<int>(move.dim)};
  };
  const auto& moves = traits_of(gemm.dataflow).moves;
  return {moved(moves[0]), moved(moves[1])};
}

GemmProblem forward_of(const ReferenceLayer& layer) { return {layer.B, layer.O, layer.I, DType::bf16, reference_dataflow(layer)}; }

/// Forward, data gradient, weight gradient.
std::vector<GemmProblem> gemms_of(const ReferenceLayer& layer) { return layer_problems(forward_of(layer)); }

int devices_along(int dimension, ReferenceShape shape) { return dimension == 0 ? shape.rows : shape.cols; }

const ReferenceCollective& collective_of(const ReferenceParameters& parameters, const MovedMatrix& move) {
  return move.kind == CollectiveKind::all_gather ? parameters.all_gather : parameters.reduce_scatter;
}

/// All of the matrix, as if every device's share went round its ring at full rate.
Seconds transfer(const ReferenceParameters& parameters, const MovedMatrix& move, ReferenceShape shape) {
  const ReferenceRing& ring = collective_of(parameters, move).ring[static_cast<std::size_t>(move.dimension)];
  const double steps = devices_along(move.dimension, shape) - 1, devices = static_cast<double>(shape.rows) * shape.cols;
  return steps * (bytes_of(move.rows, move.cols) / ring.bandwidth) / devices;
}

Seconds latency_of(const ReferenceParameters& parameters, const MovedMatrix& move, ReferenceShape shape) {
  return reference_time(collective_of(parameters, move), move.dimension, devices_along(move.dimension, shape), Bytes{});
}

/// The collective of one slice.
Seconds slice_time(const ReferenceParameters& parameters, const MovedMatrix& move, ReferenceShape shape, int slice_count) {
  std::int64_t rows = move.rows / shape.rows, cols = move.cols / shape.cols;
  (move.dimension == 0 ? rows : cols) /= slice_count;
  return reference_time(collective_of(parameters, move), move.dimension, devices_along(move.dimension, shape), bytes_of(rows, cols));
}

Seconds slice_matmul(const ReferenceParameters& parameters, const GemmProblem& gemm, ReferenceShape shape, int slice_count) {
  const std::int64_t R = shape.rows, C = shape.cols, S = slice_count;
  const DataflowTraits& flow = traits_of(gemm.dataflow);
  GemmProblem local = gemm;
  local.*flow.by_rows /= R, local.*flow.by_columns /= C, local.*flow.moving /= S;
  return Flops{2 * static_cast<double>(local.m) * static_cast<double>(local.n) * static_cast<double>(local.k)} / parameters.flops;
}

Seconds gemm_time(const ReferenceParameters& parameters, const GemmProblem& gemm, ReferenceShape shape, int slice_count) {
  const auto [first, second] = moves_of(gemm);
  const Seconds a = slice_time(parameters, first, shape, slice_count), b = slice_time(parameters, second, shape, slice_count);
  const Seconds t = slice_matmul(parameters, gemm, shape, slice_count);
  const double steps = slice_count - 1;
  if (parameters.rule == ReferenceGemmRule::mean_collective) {
    const Seconds c = (a + b) / 2;
    return c + steps * std::max(c, t) + t;
  }
  const Seconds prologue = traits_of(gemm.dataflow).reduces ? a + b : std::max(a, b);
  return prologue + steps * std::max({a, b, t}) + t;
}

struct SliceCountRow {
  std::int64_t divisor = 1;
  std::vector<int> counts;
};

/// In the order in which they are tried.
std::vector<SliceCountRow> slice_count_rows(ReferenceSliceCounts table) {
  const SliceCountRow of_48{48, {3, 4, 6, 8, 12, 16, 24}};
  std::vector<SliceCountRow> rows{of_48};
  if (table == ReferenceSliceCounts::simulation)
    rows = {{96, {3, 4, 6, 8, 12, 16, 24, 32}}, {160, {4, 5, 8, 10, 16, 20, 32}}, {32, {4, 8, 16, 32}}, of_48, {80, {4, 5, 8, 10, 16, 20, 40}}};
  const std::vector<SliceCountRow> shared{{40, {4, 5, 8, 10, 20}}, {24, {3, 4, 6, 8, 12, 24}}, {20, {4, 5, 10, 20}}, {16, {4, 8, 16}},
                                          {12, {3, 4, 12}},        {10, {5, 10}},              {8, {4, 8}},          {6, {3, 6}},
                                          {4, {4}},                {5, {5}}};
  rows.insert(rows.end(), shared.begin(), shared.end());
  return rows;
}

/// The same hop in both dimensions, as both published sets have it.
ReferenceCollective collective(double bandwidth_0, double bandwidth_1, double hop, double base) {
  return {{ReferenceRing{BytesPerSecond{bandwidth_0}, Seconds{hop}}, ReferenceRing{BytesPerSecond{bandwidth_1}, Seconds{hop}}}, Seconds{base}};
}

/// Values: B/s along dimension 0, along dimension 1, s per hop, s per collective.
std::vector<ReferenceParameters> published_sets() {
  return {
      // Fitted on a 4x4 slice of TPU v4. Rates and bases: Autotuner.py main @9323a36 (set in @9402930); hops: set in @f0d1c52; FLOP/s: its
      // DeviceMesh, 242 * 1024^4.
      {"tpu_measured", collective(27.472e9, 79.751e9, 5e-6, 13e-6), collective(37.506e9, 63.167e9, 5e-6, 26e-6),
       FlopsPerSecond{242.0 * (std::int64_t{1} << 40)}, ReferenceGemmRule::slower_collective, ReferenceSliceCounts::main},
      // Fitted to the authors' simulator: Autotuner.py branch simulation @f873291; FLOP/s: @b47c0ae.
      {"simulation_fit", collective(60e9, 60e9, 6e-6, 100e-6), collective(50e9, 50e9, 6e-6, 100e-6), FlopsPerSecond{249e12},
       ReferenceGemmRule::mean_collective, ReferenceSliceCounts::simulation},
  };
}

/// Nothing if the layer cannot be cut into slices on this shape.
std::optional<ReferenceLayerPlan> plan_layer(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape) {
  ReferenceLayerPlan plan{layer, reference_dataflow(layer), reference_traffic(parameters, layer, shape), {}, 0};
  const auto score = [](const ReferenceTimes& times) { return times.latency + 2.0 * times.pipeline; };
  for (const int S : reference_slice_counts(parameters, layer, shape)) {
    plan.candidates.push_back({S, reference_latency(parameters, layer, shape, S), reference_pipeline(parameters, layer, shape, S),
                               reference_emulated(parameters, layer, shape, S)});
    if (score(plan.candidates.back()) < score(plan.choice())) plan.chosen = plan.candidates.size() - 1;
  }
  if (plan.candidates.empty()) return std::nullopt;
  return plan;
}

std::optional<ReferenceShapePlan> plan_shape(const ReferenceParameters& parameters, const std::vector<ReferenceLayer>& layers, ReferenceShape shape) {
  ReferenceShapePlan plan{shape, {}};
  for (const ReferenceLayer& layer : layers) {
    std::optional<ReferenceLayerPlan> of_layer = plan_layer(parameters, layer, shape);
    if (!of_layer) return std::nullopt;
    plan.layers.push_back(*std::move(of_layer));
  }
  return plan;
}

}  // namespace

std::vector<std::string> reference_parameter_sets() {
  std::vector<std::string> names;
  for (const ReferenceParameters& set : published_sets()) names.push_back(set.name);
  return names;
}

Expected<ReferenceParameters> reference_parameters(std::string_view name) {
  for (ReferenceParameters& set : published_sets())
    if (set.name == name) return std::move(set);
  const std::vector<std::string> names = reference_parameter_sets();
  const std::string near = did_you_mean(name, names);
  return Diagnostic{{},
                    fmt::format("there is no set of reference parameters {}{}", quoted(name),
                                near.empty() ? fmt::format(", expected one of {}", fmt::join(names, ", ")) : near)};
}

ReferenceParameters from_machine(const Machine& machine) {
  const bool rail = machine.interconnect == Interconnect::rail;
  const double ports = rail ? 1 : 2, links_per_step = rail ? 2 : 1;
  const auto collective_on = [&](CostKind kind) {
    const auto at = static_cast<std::size_t>(kind);
    const double efficiency = efficiency_at(machine.software.efficiency[at], Bytes{std::numeric_limits<std::int64_t>::max()});
    ReferenceCollective collective;
    for (std::size_t d = 0; d < 2; ++d)
      collective.ring[d] = {ports * efficiency * machine.link[d].bandwidth, links_per_step * machine.link[d].latency + machine.software.per_message};
    collective.base = machine.software.launch[at];
    return collective;
  };
  ReferenceParameters parameters;  // of tpu_measured: rule and table of slice counts
  parameters.name = machine.name;
  parameters.all_gather = collective_on(CostKind::all_gather);
  parameters.reduce_scatter = collective_on(CostKind::reduce_scatter);
  parameters.flops = machine.chip.matmul_efficiency * peak_of(machine, DType::bf16);
  return parameters;
}

Seconds reference_time(const ReferenceCollective& collective, int dimension, int devices, Bytes block) {
  PODSIM_ASSERT((dimension == 0 || dimension == 1) && devices >= 1);
  const ReferenceRing& ring = collective.ring[static_cast<std::size_t>(dimension)];
  const double steps = devices - 1;
  return collective.base + steps * (block / ring.bandwidth) + steps * ring.hop;
}

std::vector<ReferenceShape> reference_shapes(int chips) {
  std::vector<ReferenceShape> shapes;
  for (int rows = 4; rows <= chips / 4; rows *= 2)
    if (chips % rows == 0) shapes.push_back({rows, chips / rows});
  return shapes;
}

std::vector<ReferenceLayer> block_layers(std::int64_t heads, std::int64_t head_dim, std::int64_t tokens) {
  const std::int64_t H = heads * head_dim;
  return {{"qkv", tokens, H, 3 * H}, {"projection", tokens, H, H}, {"feed-forward 1", tokens, H, 4 * H}, {"feed-forward 2", tokens, 4 * H, H}};
}

Dataflow reference_dataflow(const ReferenceLayer& layer) {
  if (layer.O > layer.I && layer.B >= layer.I) return Dataflow::os;
  if (layer.I >= layer.O && layer.B >= layer.O) return Dataflow::ls;
  return Dataflow::rs;
}

std::vector<int> reference_slice_counts(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape) {
  const GemmProblem forward = forward_of(layer);
  const std::int64_t cut = forward.*traits_of(forward.dataflow).moving;
  const std::int64_t blocks = cut / std::lcm(std::int64_t{shape.rows}, std::int64_t{shape.cols}) / slice_block;
  if (blocks < 1) return {};
  for (SliceCountRow& row : slice_count_rows(parameters.slice_counts))
    if (blocks % row.divisor == 0) return std::move(row.counts);
  return {static_cast<int>(blocks)};
}

Seconds reference_traffic(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape) {
  Seconds sum;
  for (const GemmProblem& gemm : gemms_of(layer)) {
    const auto [first, second] = moves_of(gemm);
    sum += std::max(transfer(parameters, first, shape), transfer(parameters, second, shape));
  }
  return sum;
}

Seconds reference_latency(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape, int slice_count) {
  Seconds sum;
  for (const GemmProblem& gemm : gemms_of(layer)) {
    const auto [first, second] = moves_of(gemm);
    sum += std::max(latency_of(parameters, first, shape), latency_of(parameters, second, shape));
  }
  return static_cast<double>(slice_count) * sum;
}

Seconds reference_pipeline(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape, int slice_count) {
  Seconds sum;
  for (const GemmProblem& gemm : gemms_of(layer)) {
    const auto [first, second] = moves_of(gemm);
    const Seconds a = transfer(parameters, first, shape), b = transfer(parameters, second, shape);
    sum += traits_of(gemm.dataflow).reduces ? a + b : std::max(a, b);
  }
  return sum / slice_count;
}

Seconds reference_emulated(const ReferenceParameters& parameters, const ReferenceLayer& layer, ReferenceShape shape, int slice_count) {
  Seconds sum;
  for (const GemmProblem& gemm : gemms_of(layer)) sum += gemm_time(parameters, gemm, shape, slice_count);
  return sum;
}

Seconds ReferenceLayerPlan::best_emulated() const {
  Seconds best = choice().emulated;
  for (const ReferenceTimes& times : candidates) best = std::min(best, times.emulated);
  return best;
}

Seconds ReferenceShapePlan::cost() const {
  Seconds sum;
  for (const ReferenceLayerPlan& plan : layers) sum += plan.traffic + plan.choice().latency;
  return sum;
}

Seconds ReferenceShapePlan::emulated() const {
  Seconds sum;
  for (const ReferenceLayerPlan& plan : layers) sum += plan.choice().emulated;
  return sum;
}

Seconds ReferenceShapePlan::best_emulated() const {
  Seconds sum;
  for (const ReferenceLayerPlan& plan : layers) sum += plan.best_emulated();
  return sum;
}

Expected<ReferenceTuning> tune_by_reference(const std::vector<ReferenceLayer>& layers, int chips, const ReferenceParameters& parameters) {
  if (layers.empty()) return Diagnostic{{}, "the reference tuner needs at least one layer"};
  for (const ReferenceLayer& layer : layers)
    for (const std::int64_t extent : {layer.B, layer.I, layer.O})
      if (extent < 1 || extent > largest_side)
        return Diagnostic{{}, fmt::format("layer {}: expected extents of 1 to 2^30, got {}", quoted(layer.name), extent)};

  const std::vector<ReferenceShape> shapes = reference_shapes(chips);
  if (shapes.empty())
    return Diagnostic{{}, fmt::format("the reference tuner has no shape for {} chips: expected R x C with R = 4, 8, 16, .. and C >= 4", chips)};
  ReferenceTuning tuning;
  for (const ReferenceShape shape : shapes) {
    std::optional<ReferenceShapePlan> plan = plan_shape(parameters, layers, shape);
    if (!plan) continue;
    tuning.shapes.push_back(*std::move(plan));
    if (tuning.shapes.back().cost() < tuning.choice().cost()) tuning.best = tuning.shapes.size() - 1;
  }
  if (tuning.shapes.empty())
    return Diagnostic{{},
                      fmt::format("the reference tuner cannot cut these layers into slices on any mesh of {} chips: each needs 8 rows or "
                                  "columns per device of the extent that is cut",
                                  chips)};
  return tuning;
}

}  // namespace podsim
