// The bound that the tuner prunes with is never above des, and close to it where pruning pays.
#include "workloads/tuning/bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/rng.hpp"
#include "sim/model/fold.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "topologies/machines.hpp"
#include "workloads/collectives.hpp"
#include "workloads/testing.hpp"
#include "workloads/tuning/lone_collectives.hpp"

namespace podsim {
namespace {

template <class T>
T one_of(const std::vector<T>& values, Rng& rng) {
  return values[rng.below(values.size())];
}

/// Everything costs something, each kind of operation something else; now and then nothing limits or nothing is charged.
Machine random_machine(Rng& rng) {
  if (rng.below(5) == 0) return *find_machine(one_of<std::string>({"tpu_v4", "tpu_v5e", "ideal"}, rng));
  Machine machine = testing::costly_machine(rng, std::pow(10.0, rng.between(0, 4)));
  machine.chip.matmul_tile_m = one_of<int>({1, 4, 8}, rng);
  machine.chip.matmul_tile_n = one_of<int>({1, 4}, rng);
  machine.chip.layout_lanes = one_of<int>({1, 8}, rng);
  machine.chip.matmul_efficiency = 0.5 + 0.5 * rng.uniform();
  if (rng.below(2) == 0) machine.chip.reduce_bandwidth = unlimited<BytesPerSecond>;
  for (std::size_t kind = 0; kind < machine.software.launch.size(); ++kind) {
    machine.software.launch[kind] = Seconds{rng.between(0, 4) * one_of<double>({0, 1e-8, 1e-6}, rng)};
    if (rng.below(2) == 0) continue;
    Bytes at{rng.between(1, 100)};
    for (int points = rng.between(1, 3); points > 0; --points) {
      machine.software.efficiency[kind].push_back({at, 0.1 + 0.9 * rng.uniform()});
      at = Bytes{at.count() * rng.between(2, 20)};
    }
  }
  if (rng.below(3) == 0) machine.software.per_message = Seconds{rng.between(0, 9) * 1e-7};
  return machine;
}

struct Shape {
  std::vector<int> extents;
  int R, C;
};
const std::vector<Shape> shapes{{{1, 4}, 1, 4},    {{5, 1}, 5, 1},       {{2, 2}, 2, 2},     {{3, 4}, 3, 4},    {{4, 4}, 4, 4},     {{2, 6}, 2, 6},
                                {{6, 3}, 6, 3},    {{2, 2, 3}, 4, 3},    {{3, 4, 2}, 12, 2}, {{4, 3, 2}, 4, 6}, {{2, 3, 4}, 2, 12}, {{2, 2, 2}, 8, 1},
                                {{3, 3, 2}, 9, 2}, {{2, 4, 3, 2}, 8, 6}, {{4, 4}, 16, 1},    {{4, 3}, 2, 6}};

struct Case {
  podsim::System system;
  WorkloadPart part;
  PartOptions options;

  [[nodiscard]] std::string text() const {
    return system.machine.name + " " + to_text(system.slice) + " as " + to_text(system.mesh) + ", wraps " +
           std::to_string(system.layout.dimensions().front().wraps) + ", prefetch " + std::to_string(options.prefetch) + ", block " +
           std::to_string(options.block) + ", copies " + std::to_string(options.slice_copies) + ": " + key_of(part);
  }
};

/// nullopt: the algorithm does not take the mesh.
std::optional<Case> make_case(const podsim::System& system, const std::vector<std::string>& algorithms, int largest_factor, Rng& rng) {
  Case c{system, {}, {rng.between(1, 4), rng.between(0, 3), rng.below(3) > 0}};
  ProductChoice& choice = c.part.product;
  choice = {one_of(algorithms, rng), one_of<Dataflow>({Dataflow::os, Dataflow::ls, Dataflow::rs}, rng), rng.below(2) == 0, 0};
  if (choice.algorithm == "meshslice") choice.slice_count = rng.between(1, 5);
  c.part.name = "product";
  c.part.pass = rng.below(2) == 0 ? Pass::forward : Pass::backward;
  c.part.dtype = rng.below(2) == 0 ? DType::bf16 : DType::f32;
  c.part.layout = input_layout(choice.dataflow, choice.transposed);
  GemmOptions gemm;
  gemm.slice_count = choice.slice_count, gemm.block = c.options.block, gemm.prefetch = c.options.prefetch, gemm.slice_copies = c.options.slice_copies;
  const auto multiples = required_multiples(**gemm_algorithm(choice.algorithm), system.mesh, choice.dataflow, c.part.pass, gemm);
  if (!multiples) return std::nullopt;
  const auto extent = [&](std::int64_t multiple) { return multiple * rng.between(1, largest_factor); };
  c.part.tokens = extent(multiples->m), c.part.outputs = extent(multiples->n), c.part.inputs = extent(multiples->k);
  if (choice.transposed) std::swap(c.part.tokens, c.part.outputs);
  return c;
}

Picoseconds time_of(const podsim::System& system, const Schedule& schedule) {
  const auto lowered = lower(schedule, by_dimension(chunk_rule(system)));
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  const auto model = make_folded_model(*lowered, system.machine, *system.topology, system.placement);
  EXPECT_TRUE(model) << to_text(model.error());
  const auto timeline = (*timing_engine("des"))->run(*model, {});
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline->makespan;
}

Picoseconds time_of(const Case& c) {
  const auto schedule = part_schedule(c.system.mesh, c.part, c.options);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  return time_of(c.system, *schedule);
}

/// One or two devices, in a third of the cases.
void slow_down(podsim::System& system, std::uint64_t seed) {
  Rng rng{seed, 3};
  if (rng.below(3) > 0) return;
  system.placement.speed.assign(static_cast<std::size_t>(system.mesh.devices()), 1);
  for (int slow = rng.between(1, 2); slow > 0; --slow) system.placement.speed[rng.below(system.placement.speed.size())] = 0.05 + 0.9 * rng.uniform();
}

double picoseconds(Seconds time) { return time.count() * 1e12; }

TEST(ProductBound, IsNeverAboveDes) {
  int held = 0, known_rings = 0, passive = 0, round_open_axes = 0;
  for (std::uint64_t seed = 0; held < 600; ++seed) {
    Rng rng{seed};
    const Shape shape = one_of(shapes, rng);
    auto system = testing::slice_pod(random_machine(rng), shape.extents, shape.R, shape.C, rng.below(3) == 0 ? Wrap::Rule::none : Wrap::Rule::all);
    slow_down(system, seed);
    const auto c = make_case(system, {"collective", "meshslice", "meshslice", "wang", "summa", "cannon"}, one_of<int>({1, 3, 40}, rng), rng);
    if (!c) continue;
    const auto rings = axis_rings(system);
    const double bound = picoseconds(product_bound(c->part, c->options, system, rings));
    const auto time = static_cast<double>(time_of(*c).count());
    EXPECT_LE(bound * (1 - 1e-12), time) << "seed " << seed << ", " << bound - time << " ps "  << bound / time << " of it: " << c->text();
    ++held;
    known_rings += rings.has_value();
    passive += bound > 0.5 * time;
    const auto& axes = system.mesh.axes();
    const bool open = std::any_of(axes.begin(), axes.end(), [](const MeshAxis& axis) { return axis.size > 2 && !axis.wraps; });
    round_open_axes += open && (c->part.product.algorithm == "wang" || c->part.product.algorithm == "cannon");
  }
  EXPECT_GT(known_rings, 400);
  EXPECT_GT(round_open_axes, 20);
  EXPECT_GT(passive, 300) << "a bound of nothing is easy to hold";
}

/// What each of the part's collectives takes alone; empty: no axis is asked for.
std::vector<SliceCollectives> alone(const Case& c, const std::optional<AxisRings>& rings) {
  std::vector<SliceCollectives> known;
  for (const LoneCollective& lone : lone_collectives(c.part, c.options, c.system, rings)) {
    known.resize(gemms_of(c.part).size());
    (lone.axis == 0 ? known[lone.gemm].row : known[lone.gemm].col) = least_in_part(time_of(c.system, lone.schedule));
  }
  return known;
}

TEST(ProductBound, IsNeverAboveDesWithCollectivesSimulatedAlone) {
  const std::vector<Shape> unlike{{{2, 3}, 1, 6},     {{2, 4}, 8, 1},     {{3, 4}, 1, 12},    {{2, 2, 3}, 2, 6},  {{3, 4, 2}, 12, 2}, {{4, 3, 2}, 4, 6},
                                  {{2, 4, 3}, 1, 24}, {{3, 5, 2}, 15, 2}, {{2, 3, 4}, 24, 1}, {{2, 4, 3, 2}, 8, 6}};
  int held = 0, sharper = 0, of_memory = 0;
  for (std::uint64_t seed = 0; held < 300; ++seed) {
    Rng rng{seed, 2};
    const Shape shape = one_of(unlike, rng);
    Machine machine = random_machine(rng);
    machine.chip.memory_shared = rng.below(2) == 0;
    const auto system = testing::slice_pod(machine, shape.extents, shape.R, shape.C, Wrap::Rule::all);
    const auto c = make_case(system, {"collective", "meshslice", "meshslice"}, one_of<int>({1, 3, 40, 400}, rng), rng);
    if (!c) continue;
    const auto rings = axis_rings(system);
    const auto known = alone(*c, rings);
    if (known.empty()) continue;
    const double formulas = picoseconds(product_bound(c->part, c->options, system, rings));
    const double bound = picoseconds(product_bound(c->part, c->options, system, rings, known));
    const auto time = static_cast<double>(time_of(*c).count());
    EXPECT_LE(bound * (1 - 1e-12), time) << "seed " << seed << ", " << bound / time << " of it: " << c->text();
    EXPECT_GE(bound, formulas) << c->text();
    ++held;
    sharper += bound > 1.02 * formulas;
    of_memory += machine.chip.memory_shared;
  }
  EXPECT_GT(sharper, 100);
  EXPECT_GT(of_memory, 100);
}

TEST(ProductBound, AsksForCollectivesOnUnlikeRingsOnly) {
  const Machine machine = *find_machine("tpu_v4");
  const auto asked = [&](const std::vector<int>& extents, int R, int C, Wrap::Rule wraps, const std::string& algorithm) {
    WorkloadPart part;
    part.name = "product";
    part.product = {algorithm, Dataflow::os, false, algorithm == "meshslice" ? 2 : 0};
    part.layout = ActivationLayout::tokens_by_row;
    part.tokens = part.inputs = part.outputs = 3072;
    const auto system = testing::slice_pod(machine, extents, R, C, wraps);
    return lone_collectives(part, {}, system, axis_rings(system)).size();
  };
  EXPECT_EQ(asked({3, 4, 2}, 12, 2, Wrap::Rule::all, "meshslice"), 1U);
  EXPECT_EQ(asked({3, 4, 2}, 3, 8, Wrap::Rule::all, "collective"), 1U);
  EXPECT_EQ(asked({3, 4, 2}, 12, 2, Wrap::Rule::none, "meshslice"), 0U) << "the ends of lines are done sooner than their middle";
  EXPECT_EQ(asked({4, 4, 2}, 16, 2, Wrap::Rule::all, "meshslice"), 0U) << "the formula is close";
  EXPECT_EQ(asked({3, 8}, 3, 8, Wrap::Rule::all, "meshslice"), 0U);
  EXPECT_EQ(asked({3, 4, 2}, 12, 2, Wrap::Rule::all, "wang"), 0U);
}

TEST(ProductBound, IsCloseOnTori) {
  const Machine machine = *find_machine("tpu_v4");
  std::vector<double> ratios;
  std::string loosest;
  for (std::uint64_t seed = 0; ratios.size() < 200; ++seed) {
    Rng rng{seed, 1};
    const Shape shape = one_of<Shape>({{{4, 4}, 4, 4}, {{4, 8}, 4, 8}, {{8, 4}, 8, 4}, {{4, 4, 4}, 16, 4}, {{4, 4, 4}, 4, 16}, {{1, 8}, 1, 8}}, rng);
    const auto system = testing::slice_pod(machine, shape.extents, shape.R, shape.C, Wrap::Rule::all);
    auto c = make_case(system, {"collective", "meshslice"}, 12, rng);
    if (!c) continue;
    c->options.block = 8, c->options.prefetch = 1;
    for (std::int64_t* extent : {&c->part.tokens, &c->part.inputs, &c->part.outputs}) *extent *= 128;
    const double ratio = picoseconds(product_bound(c->part, c->options, system, axis_rings(system))) / static_cast<double>(time_of(*c).count());
    if (ratio < 0.7) loosest += "\n  seed " + std::to_string(seed) + ": " + std::to_string(ratio) + " " + c->text();
    ratios.push_back(ratio);
  }
  std::sort(ratios.begin(), ratios.end());
  RecordProperty("median_percent", static_cast<int>(100 * ratios[ratios.size() / 2]));
  EXPECT_GE(ratios[ratios.size() / 10], 0.7) << "median " << ratios[ratios.size() / 2] << ", least " << ratios.front() << loosest;
}

TEST(ProductBound, KnowsTheRingsOfAnUndamagedGridInOrder) {
  const Machine machine = *find_machine("tpu_v4");
  const auto sizes = [](const std::vector<AxisRings::Ring>& rings) {
    std::vector<int> all;
    for (const AxisRings::Ring& ring : rings) all.push_back(ring.wraps ? ring.size : -ring.size);
    return all;
  };
  const auto folded = axis_rings(testing::slice_pod(machine, {4, 3, 1, 5}, 12, 5, Wrap::Rule::all));
  ASSERT_TRUE(folded);
  EXPECT_EQ(sizes(folded->row), (std::vector<int>{4, 3}));
  EXPECT_EQ(sizes(folded->col), (std::vector<int>{5}));
  const auto open = axis_rings(testing::slice_pod(machine, {4, 3}, 4, 3, Wrap::Rule::none));
  ASSERT_TRUE(open);
  EXPECT_EQ(sizes(open->row), (std::vector<int>{-4}));
  EXPECT_EQ(sizes(open->col), (std::vector<int>{-3}));
  const auto line = axis_rings(testing::slice_pod(machine, {1, 4}, 1, 4, Wrap::Rule::all));
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->row.empty());
  EXPECT_FALSE(axis_rings(testing::slice_pod(machine, {4, 4}, 2, 8, Wrap::Rule::all))) << "an axis takes a part of a dimension";
  auto system = testing::slice_pod(machine, {4, 4}, 4, 4, Wrap::Rule::all);
  const auto broken = with_faults(system, {.broken = {{ChipId{0}, ChipId{1}}}});
  ASSERT_TRUE(broken) << to_text(broken.error());
  EXPECT_FALSE(axis_rings(*broken)) << "a broken cable";
  system = testing::slice_pod(machine, {4, 4}, 4, 4, Wrap::Rule::all);
  std::swap(system.placement.chip_of[0], system.placement.chip_of[1]);
  EXPECT_FALSE(axis_rings(system)) << "another order of devices";
}

}  // namespace
}  // namespace podsim
