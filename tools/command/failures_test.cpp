// Broken cables: which alternative is played, for how long, and what is said of cables that carry nothing.
#include "workloads/scenario/faults.hpp"

#include <gtest/gtest.h>

#include "sim/engine/des/des_engine.hpp"
#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::json_of;
using test::podsim;

/// What the engine was asked to play.
struct Call {
  std::size_t nodes = 0;
  Picoseconds limit, makespan;
  bool interrupted = false;
};
std::vector<Call> calls;

Expected<Timeline> noted_des(const Model& model, const RunControl& control) {
  auto timeline = run_des(model, control);
  calls.push_back({model.nodes(), control.limit, timeline ? timeline->makespan : Picoseconds{}, timeline && timeline->interrupted});
  return timeline;
}
constexpr EngineEntry noted{"des", "des, noting its calls", true, noted_des};

Pod pod_of_ideal(const std::string& slice, const std::vector<std::string>& fail) {
  PodRequest request;
  request.machine = "ideal";
  request.slice = slice;
  request.sets = {"link.bandwidth=45GB/s", "link.latency=1us"};
  request.what_if.fail = fail;
  auto pod = make_pod(request);
  EXPECT_TRUE(pod) << to_text(pod.error());
  return *std::move(pod);
}

/// An all-gather along the last axis.
Expected<Problem> gather_on(Pod& pod, const Manner&) {
  const std::vector<AxisView> axes{pod.mesh.whole(static_cast<int>(pod.mesh.axes().size()) - 1)};
  auto schedule = collective_schedule(pod.mesh, CollectiveKind::all_gather, axes, Bytes{1 << 24}, DType::bf16);
  if (!schedule) return schedule.error();
  return Problem{*std::move(schedule), ring_or_line(), "ring or line", {}, {}};
}

Manner noting() {
  Manner manner;
  manner.engine = &noted;
  return manner;
}

TEST(Failures, TheQuickerAlternativeIsPlayedFirstAndTheOtherOneWhileItMayWin) {
  for (const auto& [slice, cable] : {std::pair{"4x8", "0.3-0.4"}, {"8", "2-3"}}) {
    SCOPED_TRACE(slice);
    const Pod pod = pod_of_ideal(slice, {cable});
    std::vector<Alternative> both = alternatives(pod);
    ASSERT_EQ(both.size(), 2U);
    std::vector<double> alone;
    for (Alternative& alternative : both) alone.push_back(simulate(alternative.pod, *gather_on(alternative.pod, {}), noting())->row.result.makespan_s);
    const bool line_wins = alone[1] < alone[0];

    calls.clear();
    const auto best = simulate_best(pod, gather_on, noting());
    ASSERT_TRUE(best) << to_text(best.error());
    EXPECT_EQ(best->row.result.makespan_s, std::min(alone[0], alone[1]));
    EXPECT_EQ(best->row.rings, both[line_wins ? 1 : 0].rings);
    ASSERT_EQ(calls.size(), 2U);
    EXPECT_LE(calls[0].nodes, calls[1].nodes);
    EXPECT_EQ(calls[0].limit, end_of_clock);
    EXPECT_FALSE(calls[0].interrupted);
    EXPECT_EQ(calls[1].limit, calls[0].makespan);
  }
  EXPECT_TRUE(calls[1].interrupted) << "on a lone ring the detour is the whole way round: it is not played to its end";
}

TEST(Failures, WhatDoesNotRunAsItIsIsAnErrorBeforeAnythingIsPlayed) {
  const Pod pod = pod_of_ideal("4x8", {"0.3-0.4"});
  Manner manner = noting();
  manner.unasked = 10;
  calls.clear();
  const auto refused = simulate_best(pod, gather_on, manner);
  ASSERT_FALSE(refused);
  EXPECT_NE(to_text(refused.error()).find("devices are simulated one by one, as they do not behave alike"), std::string::npos) << to_text(refused.error());
  EXPECT_TRUE(calls.empty());
}

TEST(Failures, ARunThatIsTooLongIsRefusedBeforeItsRoutesAreFound) {
  // Chip 3 is cut off, so that no model can be made; but that so many devices take too long is told first.
  Pod pod = pod_of_ideal("8", {"2-3", "3-4"});
  pod.placement.speed.assign(8, 1);
  pod.placement.speed[1] = 0.5;
  Manner manner = noting();
  const auto lowered = lower(gather_on(pod, {})->schedule, ring_or_line());
  ASSERT_TRUE(lowered);
  const auto cut_off = model_on(pod, *lowered, manner);
  ASSERT_FALSE(cut_off);
  EXPECT_NE(to_text(cut_off.error()).find("cannot be reached"), std::string::npos) << to_text(cut_off.error());
  manner.unasked = 20;
  const auto refused = model_on(pod, *lowered, manner);
  ASSERT_FALSE(refused);
  EXPECT_NE(to_text(refused.error()).find("of 8 devices are simulated one by one"), std::string::npos) << to_text(refused.error());
}

TEST(Failures, ModelsAreNotMadeWhenTold) {
  Pod pod = pod_of_ideal("4x8", {"0.3-0.4"});
  const std::atomic<bool> stop{true};
  Manner manner = noting();
  manner.control.stop = &stop;
  calls.clear();
  for (const auto& run : {simulate(pod, *gather_on(pod, manner), manner), simulate_best(pod, gather_on, manner)}) {
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().cause, Cause::cancelled);
  }
  EXPECT_TRUE(calls.empty());
}

TEST(Failures, CablesWithoutTrafficAreASortOfTheirOwn) {
  // Nothing moves along rows: 8 rings of 4 cables each.
  const std::string line = "run --machine ideal --slice 4x8 --collective all-gather --axis col --bytes 16MiB --fail ";
  const auto result = json_of(line + "any");
  const auto& losses = result["fail_any"];
  EXPECT_EQ(losses["no_traffic"]["cables"], 32);
  EXPECT_EQ(losses["no_traffic"]["cable"], "0.0-1.0");
  EXPECT_EQ(losses["no_traffic"]["makespan_s"], result["makespan_s"]);
  EXPECT_EQ(losses["best"]["makespan_s"], result["makespan_s"]) << "the best cable to lose is one that carries nothing";
  EXPECT_EQ(json_of(line + "0.0-1.0")["makespan_s"], result["makespan_s"]);
  EXPECT_GT(losses["worst"]["makespan_s"], result["makespan_s"]);
  EXPECT_NE(podsim(line + "any").out.find("no traffic: 32 cables"), std::string::npos);
  const auto both = json_of("run --machine ideal --slice 4x8 --collective all-gather --axis row,col --bytes 16MiB --fail any")["fail_any"];
  EXPECT_FALSE(both.contains("no_traffic"));
  const auto unfolded = json_of("run --machine ideal --slice 4x8 --collective all-gather --axis col --bytes 1MiB --fail any --fold off")["fail_any"];
  EXPECT_EQ(unfolded["no_traffic"]["cables"], 32);
}

}  // namespace
}  // namespace podsim
