#include "validation/calibration/fit/closed_form.hpp"

#include <gtest/gtest.h>

#include "topologies/machines.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"

namespace podsim {
namespace {

using testing::observed;
using testing::pod_with;
using testing::product;
using testing::some_machine;

/// A machine whose values are all its own.
void randomise(Machine& machine, Rng& rng) {
  const auto between = [&](double low, double high) { return low * std::pow(high / low, rng.uniform()); };
  for (LinkParameters& link : machine.link) link = {BytesPerSecond{between(1e9, 1e12)}, Seconds{between(1e-8, 1e-5)}};
  machine.software.per_message = Seconds{between(1e-8, 1e-5)};
  for (Seconds& launch : machine.software.launch) launch = Seconds{between(1e-8, 1e-5)};
  for (auto& curve : machine.software.efficiency) curve = {{Bytes{1024}, between(0.1, 1)}, {Bytes{1 << 20}, between(0.1, 1)}};
  machine.chip.memory_shared = rng.below(2) == 0;
  machine.chip.hbm_bandwidth = BytesPerSecond{between(1e11, 1e13)};
  machine.chip.reduce_bandwidth = BytesPerSecond{between(1e11, 1e13)};
  machine.chip.overlap_hbm = rng.uniform();
  if (rng.below(2) == 0) machine.chip.injection_bandwidth = BytesPerSecond{between(1e9, 1e12)};
  if (rng.below(2) == 0) machine.chip.ejection_bandwidth = BytesPerSecond{between(1e9, 1e12)};
  if (rng.below(2) == 0) machine.chip.own_block_bandwidth = BytesPerSecond{between(1e9, 1e12)};
}

double steps_of(const ClosedForm& form) {
  double steps = 1;
  for (const CostStep& step : form.steps) steps += step.times;
  return steps;
}

int compared = 0;  // closed forms, with des: not where memory may be short

/// Both, within three picoseconds (latency, flow, reduction end on whole ones) per step; the closed form must be there.
void expect_equal(const Observation& o, const System& system, const PredictOptions& options) {
  const auto form = closed_form(o, system, options);
  ASSERT_TRUE(form);
  const auto des = predict(o, system, options);
  ASSERT_TRUE(des) << to_text(des.error());
  if (!has_memory_to_spare(*form, system.machine)) return;
  ++compared;
  EXPECT_NEAR(evaluate(*form, system.machine).count(), des->count(), 3e-12 * steps_of(*form) + 1e-12 * des->count())
      << name_of(o.op) << " over " << o.axis << " of " << o.devices << ", " << o.bytes.count() << " B";
}

TEST(ClosedForm, EqualsDesOnTori) {
  compared = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng{seed};
    Machine machine = some_machine();
    randomise(machine, rng);
    for (const auto& [slice, axis, devices] : std::vector<std::tuple<std::string, std::string, int>>{
             {"5", "", 5}, {"4x8", "col", 8}, {"2x4", "row", 2}, {"2x4", "", 8}, {"4x3x2", "", 24}, {"4x4", "col+row", 16}}) {
      const System system = pod_with(machine, slice);
      const std::int64_t bytes = (1 + static_cast<std::int64_t>(rng.below(1 << 10))) * 4 * 24 * 5 * 64;
      for (const ObservedOp op : {ObservedOp::all_gather, ObservedOp::reduce_scatter, ObservedOp::all_reduce, ObservedOp::all_to_all})
        expect_equal(observed(op, axis, devices, bytes), system, {});
      PredictOptions one_way;
      one_way.algorithm.fill("ring-one-way");
      for (const ObservedOp op : {ObservedOp::all_gather, ObservedOp::reduce_scatter, ObservedOp::all_reduce})
        expect_equal(observed(op, axis, devices, bytes), system, one_way);
      PredictOptions shortest;
      shortest.algorithm.fill("ring-shortest");
      expect_equal(observed(ObservedOp::all_gather, axis, devices, bytes), system, shortest);
      if (!axis.empty() && axis != "col+row") expect_equal(observed(ObservedOp::permute, axis, devices, bytes), system, {});
    }
  }
  EXPECT_GT(compared, 40);
}

TEST(ClosedForm, EqualsDesOnOpenMeshesWhereOneIsGiven) {
  compared = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng{seed};
    Machine machine = some_machine();
    randomise(machine, rng);
    machine.chip.injection_bandwidth = machine.chip.ejection_bandwidth = unlimited<BytesPerSecond>;
    machine.slices = {};
    machine.slices.largest = {8, 8};
    machine.slices.open = {{3, 5}};
    const System system = pod_with(machine, "3x5");
    ASSERT_FALSE(system.mesh.axes()[0].wraps);
    const std::int64_t bytes = (1 + static_cast<std::int64_t>(rng.below(1 << 10))) * 4 * 64;
    expect_equal(observed(ObservedOp::all_gather, "row", 3, bytes), system, {});
    expect_equal(observed(ObservedOp::all_gather, "", 15, bytes), system, {});
    expect_equal(observed(ObservedOp::permute, "col", 5, bytes), system, {});
    EXPECT_FALSE(closed_form(observed(ObservedOp::reduce_scatter, "row", 3, 3 * bytes), system)) << "its adds take memory time: des";
    EXPECT_FALSE(closed_form(observed(ObservedOp::all_to_all, "row", 3, 3 * bytes), system));
    EXPECT_FALSE(closed_form(observed(ObservedOp::broadcast, "row", 3, bytes), system));
  }
  EXPECT_GT(compared, 40);
}

TEST(ClosedForm, EqualsDesAlongAxesThatLieAlongADimensionWhereverThatIs) {
  compared = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng{seed};
    Machine machine = some_machine();
    randomise(machine, rng);
    machine.chip.injection_bandwidth = machine.chip.ejection_bandwidth = unlimited<BytesPerSecond>;
    const System system = testing::open_pod(machine, {2, 2, 4}, {{"x", 4}, {"y", 4}});
    const std::int64_t bytes = (1 + static_cast<std::int64_t>(rng.below(1 << 10))) * 4 * 64;
    expect_equal(observed(ObservedOp::all_gather, "x", 4, bytes), system, {});
    expect_equal(observed(ObservedOp::permute, "x", 4, bytes), system, {});
    EXPECT_FALSE(closed_form(observed(ObservedOp::all_gather, "y", 4, bytes), system)) << "its neighbours share links";
    EXPECT_FALSE(closed_form(observed(ObservedOp::permute, "y", 4, bytes), system));
  }
  EXPECT_GT(compared, 20);
}

TEST(ClosedForm, EqualsDesOverSwitches) {
  compared = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng{seed};
    Machine machine = *find_machine("dgx_h100");
    randomise(machine, rng);
    const std::int64_t bytes = (1 + static_cast<std::int64_t>(rng.below(1 << 10))) * 4 * 16 * 64;
    const std::vector<std::tuple<std::string, std::string, int>> places{
        {"1x8", "", 8}, {"8", "", 8}, {"2x8", "", 16}, {"2x8", "col", 8}, {"2x8", "row", 2}, {"1x2", "", 2}};
    for (const auto& [slice, axis, devices] : places) {
      const System system = pod_with(machine, slice);
      for (const ObservedOp op : {ObservedOp::all_gather, ObservedOp::reduce_scatter, ObservedOp::all_reduce, ObservedOp::all_to_all})
        expect_equal(observed(op, axis, devices, bytes), system, {});
      PredictOptions direct;
      direct.algorithm.fill("direct");
      expect_equal(observed(ObservedOp::all_gather, axis, devices, bytes), system, direct);
      expect_equal(observed(ObservedOp::all_to_all, axis, devices, bytes), system, direct);
      PredictOptions others;
      others.algorithm.fill("halving-doubling");
      for (const ObservedOp op : {ObservedOp::all_gather, ObservedOp::reduce_scatter, ObservedOp::all_reduce})
        expect_equal(observed(op, axis, devices, bytes), system, others);
      others.algorithm.fill("pairwise");
      expect_equal(observed(ObservedOp::all_to_all, axis, devices, bytes), system, others);
      if (!axis.empty()) expect_equal(observed(ObservedOp::permute, axis, devices, bytes), system, direct);
    }
  }
  EXPECT_GT(compared, 40);
}

/// An algorithm for every kind that it supports.
PredictOptions all_by(const char* algorithm) {
  PredictOptions options;
  options.algorithm.fill(algorithm);
  return options;
}

TEST(ClosedForm, OfPairwiseExchangesEqualsDesOnRingsWhereNoFlowsShareALink) {
  compared = 0;
  using enum ObservedOp;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng{seed};
    Machine machine = some_machine();
    randomise(machine, rng);
    const std::int64_t bytes = (1 + static_cast<std::int64_t>(rng.below(1 << 10))) * 4 * 9 * 8 * 64;
    for (const auto& [slice, axis, devices] : std::vector<std::tuple<std::string, std::string, int>>{
             {"2", "", 2}, {"3", "", 3}, {"2x4", "row", 2}, {"4x3", "col", 3}, {"2x2", "", 4}, {"3x3", "", 9}, {"3x2", "", 6}}) {
      SCOPED_TRACE(slice + " " + axis);
      const System system = pod_with(machine, slice);
      for (const ObservedOp op : {all_gather, all_to_all}) expect_equal(observed(op, axis, devices, bytes), system, all_by("direct"));
      expect_equal(observed(all_to_all, axis, devices, bytes), system, all_by("pairwise"));
      if (slice == "2" || slice == "2x4" || slice == "2x2")
        for (const ObservedOp op : {all_gather, reduce_scatter, all_reduce})
          expect_equal(observed(op, axis, devices, bytes), system, all_by("halving-doubling"));
    }
    for (const auto& [slice, axis, devices] : std::vector<std::tuple<std::string, std::string, int>>{
             {"2", "row", 2}, {"5", "row", 5}, {"4x8", "col", 8}, {"4x8", "row", 4}, {"2x4", "row", 2}})
      expect_equal(observed(permute, axis, devices, bytes), pod_with(machine, slice), all_by("direct"));
  }
  EXPECT_GT(compared, 40);
}

TEST(ClosedForm, OfPairwiseExchangesIsNotGivenWhereFlowsShareALinkOrAddsTakeTime) {
  using enum ObservedOp;
  const Machine machine = some_machine();
  const System ring = pod_with(machine, "8"), four = pod_with(machine, "4"), three = pod_with(machine, "3");
  const std::int64_t bytes = 4 * 24 * 64;
  for (const ObservedOp op : {all_gather, reduce_scatter, all_reduce}) {
    EXPECT_FALSE(closed_form(observed(op, "", 8, bytes), ring, all_by("halving-doubling"))) << name_of(op);
    EXPECT_FALSE(closed_form(observed(op, "", 4, bytes), four, all_by("halving-doubling"))) << name_of(op);
  }
  for (const char* algorithm : {"pairwise", "direct"}) {
    EXPECT_FALSE(closed_form(observed(all_to_all, "", 8, bytes), ring, all_by(algorithm))) << algorithm;
    EXPECT_FALSE(closed_form(observed(all_to_all, "", 4, bytes), four, all_by(algorithm))) << algorithm;
  }
  EXPECT_FALSE(closed_form(observed(all_gather, "", 8, bytes), ring, all_by("direct")));
  EXPECT_FALSE(closed_form(observed(reduce_scatter, "", 3, bytes), three, all_by("direct"))) << "its adds take memory time: des";
}

TEST(ClosedForm, EqualsDesForProductsAndCopies) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng{seed};
    Machine machine = some_machine();
    randomise(machine, rng);
    set_matmul_points(machine.chip, {{64, 64, 64, 0.2}, {4096, 64, 4096, 0.7}});
    const System system = pod_with(machine, "2x2");
    const auto extent = [&] { return 1 + static_cast<std::int64_t>(rng.below(4096)); };
    expect_equal(product(extent(), extent(), extent()), system, {});
    expect_equal(observed(ObservedOp::hbm_copy, "", 1, extent() * extent()), system, {});
  }
}

TEST(ClosedForm, IsNotGivenWhereTheMeshFoldsOrTheMachineIsBroken) {
  const Machine machine = some_machine();
  EXPECT_FALSE(closed_form(observed(ObservedOp::all_gather, "", 8, 4096), pod_with(machine, "2x4", {{"ring", 8}}, true)));
  const auto damaged = with_faults(pod_with(machine, "4x4"), {.slow_cables = {{{ChipId{0}, ChipId{1}}, 0.5}}});
  ASSERT_TRUE(damaged) << to_text(damaged.error());
  EXPECT_FALSE(closed_form(observed(ObservedOp::all_gather, "row", 4, 4096), *damaged));
  EXPECT_FALSE(closed_form(observed(ObservedOp::all_gather, "", 8, 3 * 2), pod_with(*find_machine("dgx_h100"), "1x8")))
      << "halves of three elements differ, and share a link";
}

}  // namespace
}  // namespace podsim
