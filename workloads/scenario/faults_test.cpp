// Broken cables: which alternative is played, for how long, and what is said of cables that carry nothing.
#include "workloads/scenario/faults.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "sim/base/test_cases.hpp"
#include "sim/engine/des/des_engine.hpp"
#include "tools/command/test_command.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using test::json_of;
using test::podsim;

/// What the engine was asked to play.
struct CollectiveCall {
  std::size_t nodes = 0;
  Picoseconds limit, makespan;
  bool interrupted = false;
};
std::vector<CollectiveCall> calls;

Expected<Timeline> noted_des(const Model& model, const RunControl& control) {
  auto timeline = run_des(model, control);
  calls.push_back({model.nodes(), control.limit, timeline ? timeline->makespan : Picoseconds{}, timeline && timeline->interrupted});
  return timeline;
}
constexpr EngineEntry noted{"des", "des, noting its calls", true, noted_des};

System ideal(const std::string& slice, const std::vector<std::string>& broken) {
  std::vector<std::pair<std::string, std::string>> given{{"machine", "ideal"}, {"slice", slice}, {"set", "link.bandwidth=45GB/s"}, {"set", "link.latency=1us"}};
  for (const std::string& cable : broken) given.emplace_back("fail", cable);
  return testing::system_with(given);
}

/// An all-gather along the last axis.
ProblemSpec gather_on(const System& system) {
  CollectiveSpec spec;
  spec.axes = {system.mesh.axes().back().name};
  spec.input = Bytes{1 << 24};
  return spec;
}

RunOptions noting() {
  RunOptions options;
  options.engine = &noted;
  return options;
}

TEST(Faults, TheQuickerAlternativeIsPlayedFirstAndTheOtherOneWhileItMayWin) {
  for (const auto& [slice, cable] : {std::pair{"4x8", "0.3-0.4"}, {"8", "2-3"}}) {
    SCOPED_TRACE(slice);
    const System system = ideal(slice, {cable});
    std::vector<Alternative> both = alternatives(system);
    ASSERT_EQ(both.size(), 2U);
    std::vector<double> alone;
    for (const Alternative& alternative : both)
      alone.push_back(simulate(alternative.system, *make_problem(alternative.system, gather_on(system)), noting())->row.result.makespan_s);
    const bool line_wins = alone[1] < alone[0];

    calls.clear();
    const auto best = simulate(system, gather_on(system), noting());
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

TEST(Faults, ABrokenCableIsCutAtWhateverMeshLiesOverIt) {
  const auto run = [](const std::string& mesh, const std::string& axes, const std::string& algorithm) {
    return json_of("run --machine ideal --slice 4x8 --fail 0.0-3.0 --mesh " + mesh + " --axis " + axes + " --collective all-reduce --bytes 64MiB --algorithm " + algorithm);
  };
  const auto along_one = run("row=32", "row", "auto");
  EXPECT_EQ(along_one["rings"], "line along row/8:4, cut after 3");
  const std::vector<const char*> meshes{"row=4,col=8", "row=16,col=2", "row=2,col=16"};
  for (const char* mesh : std::span{meshes}.first(test::cases<std::size_t>(3, 1))) {
    const auto on = run(mesh, "row,col", "auto");
    EXPECT_EQ(on["makespan_s"], along_one["makespan_s"]) << mesh << ": the same wires";
    EXPECT_NE(on["rings"], "detour") << mesh;
  }
  EXPECT_EQ(run("row=2,col=16", "row,col", "auto")["rings"], "line along x, cut after 3");
  EXPECT_EQ(run("row=2,col=16", "row,col", "direct")["rings"], "detour") << "whose axes are lines already";
}

TEST(Faults, ABrokenCableCostsAsMuchWhateverMeshLiesOverIt) {
  const std::vector<std::string> kinds{"broadcast", "all-gather", "reduce-scatter", "reduce", "all-to-all"};
  for (const std::string& kind : std::span{kinds}.first(test::cases<std::size_t>(5, 1))) {
    const auto time_of = [&](const std::string& mesh_and_axes) {
      return json_of("run --machine ideal --slice 4x8 --fail 0.0-3.0 --bytes 64MiB --algorithm auto --collective " + kind + mesh_and_axes)["makespan_s"];
    };
    const auto along_one = time_of(" --mesh x=32 --axis x");
    EXPECT_EQ(time_of(" --axis row,col --mesh row=4,col=8"), along_one) << kind << ": the same wires";
    const auto on_parts = time_of(" --axis row,col --mesh row=2,col=16");
    if (kind == "all-to-all")
      EXPECT_LE(on_parts, along_one) << "the same wires, and three parts of dimensions to go along at once";
    else
      EXPECT_EQ(on_parts, along_one) << kind << ": the same wires";
  }
}

TEST(Faults, WhatDoesNotRunAsItIsIsAnErrorBeforeAnythingIsPlayed) {
  const System system = ideal("4x8", {"0.3-0.4"});
  RunOptions options = noting();
  options.most_instances = 10;
  calls.clear();
  const auto refused = simulate(system, gather_on(system), options);
  ASSERT_FALSE(refused);
  EXPECT_NE(to_text(refused.error()).find("devices are simulated one by one, as they do not behave alike"), std::string::npos) << to_text(refused.error());
  EXPECT_TRUE(calls.empty());
}

TEST(Faults, ARunThatIsTooLongIsRefusedBeforeItsRoutesAreFound) {
  // Chip 3 is cut off, so that no model can be made; but that so many devices take too long is told first.
  System system = ideal("8", {"2-3", "3-4"});
  system.placement.speed.assign(8, 1);
  system.placement.speed[1] = 0.5;
  RunOptions options = noting();
  const auto lowered = lower(make_problem(system, gather_on(system))->schedule, ring_or_line());
  ASSERT_TRUE(lowered);
  const auto cut_off = model_on(system, *lowered, options);
  ASSERT_FALSE(cut_off);
  EXPECT_NE(to_text(cut_off.error()).find("cannot be reached"), std::string::npos) << to_text(cut_off.error());
  options.most_instances = 20;
  const auto refused = model_on(system, *lowered, options);
  ASSERT_FALSE(refused);
  EXPECT_NE(to_text(refused.error()).find("of 8 devices are simulated one by one"), std::string::npos) << to_text(refused.error());
}

TEST(Faults, ModelsAreNotMadeWhenTold) {
  System system = ideal("4x8", {"0.3-0.4"});
  const std::atomic<bool> stop{true};
  RunOptions options = noting();
  options.control.stop = &stop;
  calls.clear();
  for (const auto& run : {simulate(system, *make_problem(system, gather_on(system)), options), simulate(system, gather_on(system), options)}) {
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().cause, Cause::cancelled);
  }
  EXPECT_TRUE(calls.empty());
}

TEST(Faults, CablesWithoutTrafficAreASortOfTheirOwn) {
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

/// What an axis folds is as open as an axis of its own: the cable decides, not how the mesh names what it joins.
TEST(Faults, ADimensionThatAnAxisFoldsIsOpenedBehindTheCable) {
  const std::string on = "run --machine tpu_v4 --slice 4x4x8 --collective all-reduce --bytes 256MiB --fail 0.0.0-3.0.0";
  const auto folded = json_of(on + " --mesh x=128"), named = json_of(on);
  EXPECT_EQ(folded["makespan_s"], named["makespan_s"]);
  EXPECT_EQ(folded["rings"], "line along x/32:4, cut after 3");
  if (!test::cases(true, false)) return;
  const auto two = json_of("run --machine tpu_v4 --slice 4x4x8 --mesh x=16,y=8 --axis x,y --collective all-reduce --bytes 256MiB --fail 0.0.0-3.0.0");
  EXPECT_EQ(two["makespan_s"], named["makespan_s"]);
}

}  // namespace
}  // namespace podsim
