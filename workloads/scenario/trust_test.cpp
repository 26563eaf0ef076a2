#include "workloads/scenario/trust.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/machines.hpp"
#include "validation/calibration/fit/coverage.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"
#include "workloads/scenario/faults.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using testing::observed;
using testing::pod_with;

/// All-reduces over two nodes of H100, and products.
Machine fitted_machine() {
  Machine machine = *find_machine("dgx_h100");
  machine.trust = {TrustLevel::fitted,
                   "all_reduce.txt",
                   0.034,
                   {{CostKind::all_reduce, 16, "x,y", {1 << 20, std::int64_t{8} << 30}, {}, {}, {}},
                    {CostKind::matmul, 1, "", {}, {128, 8192}, {128, 8192}, {128, 8192}}}};
  return machine;
}

RunTrust trust_in(const Machine& machine, const std::string& slice, const std::vector<Observation>& run,
                  const std::vector<std::pair<std::string, int>>& mesh = {}) {
  const System system = pod_with(machine, slice, mesh);
  const auto operations = coverage_of(run, system);
  return operations ? trust_of(system, *operations) : RunTrust{to_text(operations.error())};
}
RunTrust trust_in(const std::string& slice, const std::vector<Observation>& run, const std::vector<std::pair<std::string, int>>& mesh = {}) {
  return trust_in(fitted_machine(), slice, run, mesh);
}

TEST(Trust, OfARunThatWasFittedIsTheFits) {
  const RunTrust trust = trust_in("2x8", {observed(ObservedOp::all_reduce, "", 16, 1 << 30)});
  EXPECT_EQ(trust, (RunTrust{"fitted", "all_reduce.txt", 0.034}));
  EXPECT_THAT(lines_of(trust), ElementsAre("fitted: all_reduce.txt, median error 3.4 %"));
  EXPECT_EQ(trust_in("2x8", {observed(ObservedOp::all_reduce, "", 16, 1 << 30)}, {{"all", 16}}), trust) << "whatever the axes are called";
  EXPECT_EQ(trust_in("1x1", {testing::product(4096, 4096, 8192)}), trust);
}

TEST(Trust, OfARunBeyondTheFitNamesWhatAndTheErrorOfItsRung) {
  const auto beyond = [](const RunTrust& trust) { return trust.level + "; " + trust.tier + "; " + (trust.beyond.empty() ? "" : trust.beyond.front()); };
  EXPECT_EQ(beyond(trust_in("128x8", {observed(ObservedOp::all_reduce, "", 1024, 1 << 30)})),
            "extrapolated; other scale; all-reduce over 1024 devices, fitted over 16");
  EXPECT_EQ(beyond(trust_in("16x1", {observed(ObservedOp::all_reduce, "", 16, 1 << 30)})),
            "extrapolated; other scale; all-reduce along x, fitted along x,y");
  EXPECT_EQ(beyond(trust_in("2x8", {observed(ObservedOp::all_gather, "", 16, 1 << 30)})),
            "extrapolated; other operation; all-gather, fitted to all-reduce, matmul");
  EXPECT_EQ(beyond(trust_in("2x8", {observed(ObservedOp::all_reduce, "", 16, 1 << 10)})),
            "extrapolated; other sizes; all-reduce of 1 KiB, fitted from 1 MiB to 8 GiB");
  EXPECT_EQ(beyond(trust_in("1x1", {testing::product(64, 4096, 8192)})),
            "extrapolated; other products; matmul of m=64, n=4096, k=8192, fitted with m=128 to 8192, n=128 to 8192, k=128 to 8192");
  EXPECT_EQ(beyond(trust_in("2x8", {observed(ObservedOp::all_reduce, "", 16, 1 << 30), testing::product(4096, 4096, 8192)})),
            "extrapolated; composite; all-reduce, matmul in one run, fitted one by one");
  const RunTrust operation = trust_in("2x8", {observed(ObservedOp::all_gather, "", 16, 1 << 10)});
  const TierError& stated = tier_errors().at(static_cast<std::size_t>(Tier::other_operation));
  EXPECT_EQ(operation.error, stated.median);
  EXPECT_EQ(operation.p95_error, stated.p95);
  EXPECT_EQ(operation.fitted_error, 0.034);
  EXPECT_THAT(trust_in("2x8", {observed(ObservedOp::all_gather, "row", 2, 4096), observed(ObservedOp::all_gather, "col", 8, 4096)}).beyond,
              ElementsAre("all-gather, fitted to all-reduce, matmul")) << "once";
  // The furthest counts.
  EXPECT_EQ(trust_in("2x8", {observed(ObservedOp::all_gather, "", 16, 1 << 10), observed(ObservedOp::all_reduce, "", 16, 1 << 10)}).tier,
            "other operation");
}

TEST(Trust, OfAWhatIfHasNoError) {
  Machine machine = fitted_machine();
  machine.trust.level = TrustLevel::hypothetical;  // as --set makes it
  const RunTrust trust = trust_in(machine, "2x8", {observed(ObservedOp::all_reduce, "", 16, 1 << 30)});
  EXPECT_EQ(trust.level, "hypothetical");
  EXPECT_EQ(trust.error, std::nullopt);
  EXPECT_EQ(trust.fitted_error, 0.034);
  const auto broken = with_faults(pod_with(fitted_machine(), "2x8"), {.slow_devices = {{ChipId{3}, 0, 0.5}}});
  ASSERT_TRUE(broken) << to_text(broken.error());
  const RunTrust slow = trust_of(*broken, fitted_machine().trust.covers);
  EXPECT_EQ(slow.level, "hypothetical") << "with slow parts";
  EXPECT_EQ(slow.error, std::nullopt);
  EXPECT_EQ(slow.fitted_error, 0.034);
  EXPECT_EQ(as_what_if(slow), slow);
}

TEST(Trust, OfAWhatIfOfAMeasuredMachineNamesWhatWasMeasured) {
  Machine machine = fitted_machine();
  machine.trust = {TrustLevel::measured, "products on one chip", std::nullopt, {}};
  const auto broken = with_faults(pod_with(machine, "2x8"), {.slow_devices = {{ChipId{3}, 0, 0.5}}});
  ASSERT_TRUE(broken) << to_text(broken.error());
  EXPECT_THAT(lines_of(trust_of(*broken, {})), ElementsAre("hypothetical: a what-if of a machine whose values were measured: products on one chip"));
}

TEST(Trust, OfATrainingStepIsTheErrorOfTrainingSteps) {
  const auto of_step = [](const char* name, const char* slice) {
    const System system = pod_with(*find_machine(name), slice);
    return of_training_step(trust_of(system, {}), system);
  };
  const StepError& v5e = *step_error_of("tpu_v5e");
  const RunTrust own = of_step("tpu_v5e", "4x4"), relative = of_step("tpu_v6e", "4x4");
  for (const RunTrust& trust : {own, relative}) {
    EXPECT_EQ(trust.level, "measured");
    EXPECT_EQ(trust.error, v5e.median);
    EXPECT_EQ(trust.p95_error, v5e.p95);
    ASSERT_EQ(trust.beyond.size(), 2U);
    EXPECT_THAT(trust.beyond[0], ::testing::HasSubstr("a median error of 6.1 % and a 95th percentile of 14 %"));
    EXPECT_THAT(trust.beyond[1], ::testing::HasSubstr("podsim calibrate ROWS.csv"));
    EXPECT_THAT(lines_of(trust).front(), ::testing::Not(::testing::HasSubstr("median error 6.1 %"))) << "that is no error of the machine's values";
  }
  EXPECT_THAT(own.beyond[0], ::testing::HasSubstr("podsim validate tpu_v5e_training; 20 of them too fast)"));
  const System pod = pod_with(*find_machine("dgx_h100"), "2x8");
  EXPECT_THAT(of_training_step(trust_of(pod, {}), pod).beyond[0], ::testing::HasSubstr("all of them too fast"));
  const RunTrust experts = of_training_step(trust_of(pod, {}), pod, true);
  EXPECT_EQ(experts.error, trust_of(pod, {}).error) << "that of dense steps is not theirs";
  EXPECT_THAT(experts.beyond, ::testing::ElementsAre(::testing::HasSubstr("is not known")));
  EXPECT_THAT(relative.beyond[0], ::testing::HasSubstr("podsim validate tpu_v5e_training, on tpu_v5e, its nearest relative: not measured here; 20 of them too fast)"));
  for (const std::string& name : shipped_machines())
    if (find_machine(name)->trust.level == TrustLevel::measured) {
      EXPECT_NE(step_error_of(name), nullptr) << name;
    }
  Machine spec = *find_machine("tpu_v5e");
  spec.trust = {};
  const System system = pod_with(spec, "4x4");
  EXPECT_EQ(of_training_step(trust_of(system, {}), system), trust_of(system, {})) << "a data sheet's error is not that of what was fitted";
}

TEST(Trust, OfCollectivesByAnotherAlgorithmIsExtrapolatedByNobodyKnowsHowMuch) {
  const System system = pod_with(fitted_machine(), "2x8");
  const std::vector<Coverage>& fitted = system.machine.trust.covers;
  const RunTrust same = trust_of(system, {fitted.front()});
  EXPECT_EQ(same.level, "fitted");
  const RunTrust direct = trust_of(system, {fitted.front()}, OtherLowering{"direct"});
  EXPECT_EQ(direct.level, "extrapolated");
  EXPECT_EQ(direct.error, std::nullopt);
  EXPECT_THAT(direct.beyond, ::testing::Contains("collectives by direct, fitted by ring or line, GPUs of a node first"));
}

TEST(Trust, OfAScheduleThatSomebodyElseWroteIsNotThatOfTheAlgorithmsThatWereFitted) {
  const System system = pod_with(fitted_machine(), "2x8");
  const auto ring = collective_schedule(system.mesh, CollectiveKind::all_reduce, {system.mesh.whole(1), system.mesh.whole(0)}, Bytes{1 << 20}, DType::bf16);
  ASSERT_TRUE(ring) << to_text(ring.error());
  auto lowered = lower(*ring, ring_or_line());
  ASSERT_TRUE(lowered) << to_text(lowered.error());
  const auto run = simulate(system, ProblemSpec{ScheduleSpec{*std::move(lowered), {}, "ring", Bytes{1 << 20}}});
  ASSERT_TRUE(run) << to_text(run.error());
  EXPECT_EQ(run->row.result.trust.level, "extrapolated");
  EXPECT_EQ(run->row.result.trust.error, std::nullopt);
  EXPECT_THAT(run->row.result.trust.beyond, ::testing::Contains("collectives by ring, fitted by ring or line, GPUs of a node first"));
}

/// An all-reduce between nodes first takes five times as long as one inside nodes first, which was fitted.
TEST(Trust, OfPhasesThatBeginBetweenNodesIsNotTheFits) {
  const System system = pod_with(fitted_machine(), "2x8");
  const auto trust_along = [&](std::vector<std::string> axes, const char* algorithm) {
    CollectiveSpec spec;
    spec.kind = CollectiveKind::all_reduce;
    spec.axes = std::move(axes);
    spec.input = Bytes{1 << 20};
    spec.policy.algorithm = algorithm;
    const auto run = simulate(system, ProblemSpec{spec});
    if (!run) throw std::runtime_error(to_text(run.error()));
    return run->row.result.trust;
  };
  for (const char* algorithm : {"ring", "line"}) {
    EXPECT_EQ(trust_along({"col", "row"}, algorithm).level, "fitted") << algorithm;
    const RunTrust between = trust_along({"row", "col"}, algorithm);
    EXPECT_EQ(between.level, "extrapolated");
    EXPECT_EQ(between.error, std::nullopt);
    EXPECT_THAT(between.beyond, ElementsAre(std::string{"collectives by "} + algorithm + ", between nodes first, fitted by ring or line, GPUs of a node first"));
  }
  const RunTrust chosen = trust_along({"col", "row"}, "auto");
  EXPECT_THAT(chosen.beyond, ::testing::Each(::testing::HasSubstr("collectives by "))) << "what auto chose is trusted as the same by name";
  EXPECT_EQ(trust_along({"col"}, "ring").level, "extrapolated") << "eight devices, fitted over sixteen";
}

TEST(Trust, OfSpecifiedValuesIsTheMachines) {
  const RunTrust trust = trust_in(*find_machine("tpu_v4:spec"), "4x4x4", {observed(ObservedOp::all_gather, "row", 4, 1 << 20)});
  EXPECT_EQ(trust, RunTrust{"spec"});
  EXPECT_THAT(lines_of(trust), ElementsAre("spec: specified and published values, not calibrated"));
  EXPECT_EQ(trust_in(*find_machine("ideal"), "4x4", {}).level, "hypothetical");
}

}  // namespace
}  // namespace podsim
