#include "workloads/scenario/collective_choice.hpp"
#include "workloads/scenario/faults.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "sim/base/test_cases.hpp"
#include "tools/command/test_command.hpp"
#include "workloads/collectives.hpp"
#include "workloads/scenario/collective_candidates.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

std::string pairs_error(const std::string& text) {
  const auto pairs = parse_pairs(text, "p.txt", 8);
  EXPECT_FALSE(pairs) << text;
  return pairs ? "" : to_text(pairs.error());
}

TEST(PairsFile, HoldsOnePairPerLineAndComments) {
  const auto pairs = parse_pairs("# from to\n0 1\n\n  1\t0 # back\r\n7 7", "p.txt", 8);
  ASSERT_TRUE(pairs) << to_text(pairs.error());
  EXPECT_EQ(*pairs, (std::vector<Collective::Pair>{{0, 1}, {1, 0}, {7, 7}}));
}

TEST(PairsFile, IsToldWhereItIsWrong) {
  EXPECT_EQ(pairs_error("0 1\n2\n"), "p.txt:2:2: expected `from to`, found the end of the line");
  EXPECT_EQ(pairs_error("0 1 2\n"), "p.txt:1:5: expected `from to` and the end of the line, found \"2\"");
  EXPECT_EQ(pairs_error("0 1\n0 2\n"), "p.txt:2:1: position 0 sends twice");
  EXPECT_EQ(pairs_error("0 1\n2  1\n"), "p.txt:2:4: position 1 receives twice");
  EXPECT_EQ(pairs_error("# nothing\n"), "p.txt:2:1: expected at least one line `from to`");
  EXPECT_TRUE(pairs_error("0 8\n").starts_with("p.txt:1:3: ")) << pairs_error("0 8\n");
  EXPECT_TRUE(pairs_error("a 1\n").starts_with("p.txt:1:1: ")) << pairs_error("a 1\n");
}

System ideal_slice(const std::string& slice, const std::vector<std::string>& sets = {}) {
  std::vector<std::pair<std::string, std::string>> given{{"machine", "ideal"}, {"slice", slice}};
  for (const std::string& set : sets) given.emplace_back("set", set);
  return testing::system_with(given);
}

/// What `auto` takes for the only collective of a schedule.
Expected<std::string> cheapest(const System& system, const Schedule& schedule, const RunOptions& options = {}) {
  const auto choices = choose_collectives(system, schedule, {"auto", {}}, options);
  if (!choices) return choices.error();
  EXPECT_EQ(choices->chosen.size(), 1U);
  return choices->chosen.front().algorithm;
}

std::string best(const System& system, CollectiveKind kind, const std::vector<AxisView>& axes, std::int64_t bytes) {
  const auto schedule = collective_schedule(system.mesh, kind, axes, Bytes{bytes}, DType::f32);
  EXPECT_TRUE(schedule);
  const auto name = cheapest(system, *schedule);
  EXPECT_TRUE(name) << to_text(name.error());
  return name ? *name : "";
}

/// An all-reduce is two exchanges, so that each doubling of the slices adds dcn.sync twice; a ring of P slices has 2 (P - 1) steps.
TEST(DirectBetweenSlices, AddsTheLatencyOfSlicesTwice) {
  constexpr double sync = 1e-3;
  const auto added = [&](const std::string& policy, const std::string& axis) {
    const auto seconds = [&](const std::string& value) {
      const System system = testing::system_with({{"machine", "tpu_v4"}, {"slice", "2x2x1"}, {"pods", "4"}, {"mesh", "slice=4,fsdp=4"}, {"set", "dcn.sync=" + value}});
      const auto schedule = collective_schedule(system.mesh, CollectiveKind::all_reduce, {*system.mesh.axis(axis)}, Bytes{1 << 20}, DType::f32);
      const auto run = simulate(system, *schedule, {}, {policy, {}});
      EXPECT_TRUE(run) << to_text(run.error());
      return run->row.result.makespan_s;
    };
    return seconds("1ms") - seconds("0s");
  };
  constexpr double doublings = 2;
  EXPECT_NEAR(added("direct-between-slices", "slice"), 2 * doublings * sync, 1e-9);
  EXPECT_NEAR(added("by-dimension", "slice"), 2 * 3 * doublings * sync, 1e-9);
  EXPECT_EQ(added("direct-between-slices", "fsdp"), 0);
}

TEST(Cheapest, DependsOnTheSizeAndNeverTrustsSharedLinks) {
  const System ring = ideal_slice("16", {"link.latency=1us", "software.per_message=1us"});
  const std::vector<AxisView> row{*ring.mesh.axis("row")};
  EXPECT_EQ(best(ring, CollectiveKind::all_gather, row, 256 << 20), "ring");  // bandwidth decides
  EXPECT_NE(best(ring, CollectiveKind::all_gather, row, 64), "ring");         // latency decides
  EXPECT_EQ(best(ring, CollectiveKind::all_to_all, row, 256 << 20), "ring");
  const System torus = ideal_slice("4x4", {"link.latency=1us"});
  EXPECT_EQ(best(torus, CollectiveKind::all_gather, {torus.mesh.whole(0), torus.mesh.whole(1)}, 64 << 20), "rotations");
}

TEST(Candidates, WhatIsTooLargeToLowerIsKnownBefore) {
  for (const std::string slice : {"2x4", "3x4", "4x2", "5x3"}) {
    const System system = ideal_slice(slice);
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
      const auto schedule = collective_schedule(system.mesh, kind, {system.mesh.whole(0), system.mesh.whole(1)}, Bytes{1 << 20}, DType::f32);
      ASSERT_TRUE(schedule || kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce);
      if (!schedule) continue;  // the bytes do not divide
      const auto& collective = std::get<Collective>(schedule->programs.front().tasks.front().op);
      int known = 0;
      for (const Lowering& lowering : candidates(system.mesh, collective)) {
        const double least = least_transfers(lowering, system.mesh, collective);
        const auto lowered = lower(*schedule, chooser_of(lowering, {}));
        if (!lowered || least == 0) continue;
        double guarded = 0;
        for (const Task& task : lowered->programs.front().tasks) guarded += std::holds_alternative<Shift>(task.op) && !task.where.empty();
        EXPECT_LE(least, guarded) << slice << ", " << name_of(lowering, system.mesh, collective);
        ++known;
      }
      EXPECT_EQ(known, 2) << slice << ": channels in both orders";
    }
  }
}

/// Pairwise uses one direction at a time: the busiest link alone does not tell that it takes almost twice as long.
/// What is said of an all-gather along the first axis by an algorithm of this name; empty: it is lowered.
std::string choose_and_lower(const System& system, const std::string& name) {
  const auto schedule = collective_schedule(system.mesh, CollectiveKind::all_gather, {system.mesh.whole(0)}, Bytes{1 << 20}, DType::f32);
  const auto choices = choose_collectives(system, *schedule, {name, {}}, {});
  if (!choices) return to_text(choices.error());
  const auto lowered = lower(*schedule, choices->chooser);
  return lowered ? std::string{} : to_text(lowered.error());
}

TEST(Cheapest, HalfOfTheNodesAreAsFastAsANetworkOfThat) {
  // Four of eight nodes of 8 GPUs, along one axis, along two, and alone: the same links are at hand.
  const auto seconds = [](const std::string& slice, const std::string& mesh, const std::vector<int>& along) {
    const System system = testing::system_with({{"machine", "dgx_h100"}, {"slice", slice}, {"mesh", mesh}});
    std::vector<AxisView> axes;
    for (const int axis : along) axes.push_back(system.mesh.whole(axis));
    const auto schedule = collective_schedule(system.mesh, CollectiveKind::all_gather, axes, Bytes{1 << 20}, DType::f32);
    const auto run = simulate(system, *schedule, {}, {std::string{"auto"}, {}});
    EXPECT_TRUE(run) << to_text(run.error());
    return run->metrics.makespan.count();
  };
  const auto alone = seconds("4x8", "fsdp=32", {0});
  EXPECT_EQ(seconds("8x8", "data=2,fsdp=32", {1}), alone);
  EXPECT_EQ(seconds("8x8", "data=2,node=4,gpu=8", {1, 2}), seconds("4x8", "node=4,gpu=8", {0, 1}));
}

TEST(Cheapest, IsTheOneThatTheRefereeFindsFastest) {
  const System torus = ideal_slice(test::cases("8x8", "4x4"));
  for (const CollectiveKind kind : {CollectiveKind::all_to_all, CollectiveKind::all_gather, CollectiveKind::all_reduce})
    for (const std::int64_t bytes : {64 * 4, 1 << 22}) {
      const auto schedule = collective_schedule(torus.mesh, kind, {torus.mesh.whole(0), torus.mesh.whole(1)}, Bytes{bytes}, DType::f32);
      const auto seconds = [&](std::string_view name) {
        const auto by_name = choose_collectives(torus, *schedule, {std::string{name}, {}}, {});
        if (!by_name) return 1e9;
        const auto lowered = lower(*schedule, by_name->chooser);
        if (!lowered) return 1e9;
        const auto timeline = (*timing_engine("simgrid"))->run(*make_model(*lowered, torus.machine, *torus.topology, torus.placement), {});
        return timeline ? to_seconds(timeline->makespan).count() : 1e9;
      };
      const std::string found = best(torus, kind, {torus.mesh.whole(0), torus.mesh.whole(1)}, bytes);
      const double least = seconds(found);
      for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) {
        if (entry.needs.in_switch) continue;    // there is no switch
        if (entry.name == "channels") continue;  // 63 steps of 512 transfers: a minute of simgrid
        EXPECT_LE(least, seconds(entry.name) * 1.001) << name_of(kind) << " " << bytes << ": " << found << " against " << entry.name;
      }
    }
}

/// An axis of 16 laid over two rings of 4: both carry at once, each half of the data.
TEST(Cheapest, UsesThePhysicalDimensionsOfAFoldedAxisAtOnce) {
  const System folded = testing::system_with({{"machine", "ideal"}, {"slice", "4x4x4"}, {"mesh", "a=16,b=4"}});
  const std::vector<AxisView> a{folded.mesh.whole(0)};
  EXPECT_EQ(best(folded, CollectiveKind::all_gather, a, 64 << 20), "rotations");
  const auto seconds = [&](const std::string& algorithm) {
    return test::json_of("run --machine ideal --slice 4x4x4 --mesh a=16,b=4 --collective all-gather --axis a --bytes 64MiB --algorithm " +
                         algorithm)["makespan_s"]
        .get<double>();
  };
  EXPECT_LT(seconds("auto"), 0.75 * seconds("ring"));
  EXPECT_NEAR(seconds("auto"), 15 * (64 << 20) / (4 * 100e9), 1e-9) << "15 shards over two links of each of two dimensions";
}

/// The makespan of a collective along the whole of axis 0 as `policy` lowers it; `stated`: the algorithm that the collective itself names.
double time_along_first_axis(const System& system, CollectiveKind kind, Bytes bytes, const std::string& policy, const std::string& stated = {}) {
  auto schedule = collective_schedule(system.mesh, kind, {system.mesh.whole(0)}, bytes, DType::f32);
  EXPECT_TRUE(schedule);
  for (Task& task : schedule->programs.front().tasks)
    if (auto* const collective = std::get_if<Collective>(&task.op)) collective->algorithm = stated;
  const auto run = simulate(system, *make_problem(system, ScheduleSpec{*schedule, CollectivePolicy{policy, {}}}), {});
  EXPECT_TRUE(run) << policy << ": " << to_text(run.error());
  return run ? to_seconds(run->metrics.makespan).count() : 0;
}

/// JAX lays 8 devices on 2x4 chips of v6e, which do not wrap, as no ring of neighbours: what a TPU's module states there goes through the dimensions under the axis.
TEST(Cheapest, AlongAnAxisOfOtherOrderIsNeverSlowerThanWhatAModuleStates) {
  const System system = testing::system_with({{"machine", "tpu_v6e"}, {"slice", "2x4"}, {"mesh", "x=8"}, {"mesh_order", "jax"}});
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::all_reduce, CollectiveKind::reduce_scatter})
    for (const Bytes bytes : {Bytes{1 << 12}, Bytes{1 << 22}, Bytes{1 << 25}}) {
      const double chosen = time_along_first_axis(system, kind, bytes, "auto");
      for (const std::string stated : {"", "rotations", "hamiltonian-ring"})
        EXPECT_LE(chosen, time_along_first_axis(system, kind, bytes, std::string{by_dimension_name}, stated) * (1 + 1e-5)) << name_of(kind) << " of " << bytes.count() << ", " << stated;
      for (const std::string named : {"rotations", "hamiltonian-ring"})
        EXPECT_EQ(time_along_first_axis(system, kind, bytes, named), time_along_first_axis(system, kind, bytes, std::string{by_dimension_name}, named)) << "the same, asked for by its name";
    }
}

TEST(Cheapest, AsAChooserLowersWhatItNames) {
  const System ring = ideal_slice("8", {"link.latency=1us"});
  const auto schedule = collective_schedule(ring.mesh, CollectiveKind::all_reduce, {ring.mesh.whole(0)}, Bytes{8 << 20}, DType::f32);
  const auto choices = choose_collectives(ring, *schedule, {"auto", {}}, {});
  ASSERT_TRUE(choices);
  const auto by_name = choose_collectives(ring, *schedule, {choices->chosen.front().algorithm, {}}, {});
  ASSERT_TRUE(by_name);
  const auto chosen = lower(*schedule, choices->chooser), named = lower(*schedule, by_name->chooser);
  ASSERT_TRUE(chosen && named);
  EXPECT_EQ(*chosen, *named);
  EXPECT_EQ(to_text(*choices), "all-reduce along row of 8 MiB: " + choices->chosen.front().algorithm + "\n");
}

TEST(Cheapest, OnTheFactorsOfAnAxisCanBeAskedForByItsName) {
  const System folded = testing::system_with({{"machine", "ideal"}, {"slice", "4x4x4"}, {"mesh", "a=16,b=4"}});
  const auto schedule = collective_schedule(folded.mesh, CollectiveKind::all_gather, {folded.mesh.whole(0)}, Bytes{64 << 20}, DType::f32);
  const auto chosen = choose_collectives(folded, *schedule, {"auto", {}}, {}), named = choose_collectives(folded, *schedule, {"rotations over 4x4", {}}, {});
  ASSERT_TRUE(chosen && named);
  EXPECT_EQ(*lower(*schedule, chosen->chooser), *lower(*schedule, named->chooser));
}

/// Permutes in one program, each on buffers of its own.
Schedule permutes(const System& system, const std::vector<std::pair<DType, std::int64_t>>& each) {
  Schedule all;
  for (const auto& [dtype, by] : each) {
    CollectiveDetails details;
    details.pairs = shift_pairs(system.mesh.devices(), by);
    Schedule one = *collective_schedule(system.mesh, CollectiveKind::permute, {system.mesh.whole(0)}, Bytes{1 << 20}, dtype, details);
    if (all.programs.empty()) {
      all = one;
      all.computes = {};
      continue;
    }
    Program& program = all.programs.front();
    auto& moved = std::get<Collective>(one.programs.front().tasks.front().op);
    for (Region* region : {&moved.input, &moved.output}) region->buffer = BufferId{program.buffers.size() + region->buffer.index()};
    for (Buffer& buffer : one.programs.front().buffers) {
      buffer.tensor += std::to_string(program.buffers.size());
      program.buffers.push_back(buffer);
    }
    program.tasks.push_back(one.programs.front().tasks.front());
  }
  return all;
}

TEST(Cheapest, OfACollectiveIsNotThatOfAnotherDtypeOrOfOtherPairs) {
  const System ring = ideal_slice("8", {"link.latency=1us"});
  const auto choices = choose_collectives(ring, permutes(ring, {{DType::f32, 1}, {DType::f32, 1}, {DType::bf16, 1}, {DType::f32, 3}, {DType::bf16, 1}}), {"auto", {}}, {});
  ASSERT_TRUE(choices) << to_text(choices.error());
  EXPECT_EQ(choices->chosen.size(), 3U) << to_text(*choices);
}

TEST(Cheapest, HearsCtrlC) {
  const System ring = ideal_slice("8");
  const auto schedule = collective_schedule(ring.mesh, CollectiveKind::all_reduce, {ring.mesh.whole(0)}, Bytes{8 << 20}, DType::f32);
  std::atomic<bool> stop{false};
  RunOptions options;
  options.control.stop = &stop;
  int tried = 0;
  options.doing = [&](const std::string&) { stop = ++tried == 3; };
  const auto name = cheapest(ring, *schedule, options);
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().cause, Cause::cancelled);
  EXPECT_EQ(tried, 3);
}

TEST(Cheapest, PassesOverWhatIsTooLargeToSimulate) {
  const System open = testing::system_with({{"machine", "ideal"}, {"slice", "8"}, {"wrap", "none"}});  // so that no two devices are alike
  const auto schedule = collective_schedule(open.mesh, CollectiveKind::all_gather, {open.mesh.whole(0)}, Bytes{8 << 20}, DType::f32);
  const auto found = [&](double most_instances) {
    RunOptions options;
    options.most_instances = most_instances;
    return cheapest(open, *schedule, options);
  };
  EXPECT_TRUE(found(50e6));
  double enough = 1;
  while (!found(enough)) ++enough;
  const auto small = found(enough);
  EXPECT_NE(*small, *found(50e6)) << *small << " alone has no more than " << enough << " task instances";
  const auto nothing = found(1);
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("or `force` to run it"), std::string::npos) << nothing.error().message;
}

/// The chunks of a chain over all of the first axis with more than one device.
int chunks_of_chain(const System& system, double bytes) {
  AxisView axis = system.mesh.whole(0);
  for (int a = 1; axis.size == 1 && a < static_cast<int>(system.mesh.axes().size()); ++a) axis = system.mesh.whole(a);
  return chunk_rule(system)(system.mesh, {{axis, axis.size - 1, 1, bytes}});
}

TEST(ChunkRuleOfASystem, IsTheBestNumberOfChunksOfAChain) {
  EXPECT_EQ(chunks_of_chain(ideal_slice("8"), 1 << 20), 64) << "no latency: as many as are allowed";
  const std::vector<std::string> slow{"link.latency=1us", "software.per_message=1us", "link.bandwidth=50GB/s"};
  EXPECT_EQ(chunks_of_chain(ideal_slice("8", slow), 1'000'000), 8);  // sqrt(6 * 1e6 / (2e-6 * 50e9)) = 7.7
  EXPECT_EQ(chunks_of_chain(ideal_slice("8", slow), 100), 1);
  EXPECT_EQ(chunks_of_chain(ideal_slice("2", slow), 1 << 30), 1);
  EXPECT_EQ(chunks_of_chain(ideal_slice("64", slow), 1 << 30), 64);
}

/// What nothing travels over does not count, and a shorter latency never makes a broadcast slower.
TEST(ChunkRuleOfASystem, PricesTheLinksOfTheAxis) {
  const std::vector<std::string> y{"link[x].latency=10us", "link[y].latency=100ns"}, both{"link.latency=100ns"};
  EXPECT_EQ(chunks_of_chain(ideal_slice("1x16", y), 64 << 10), chunks_of_chain(ideal_slice("1x16", both), 64 << 10));
  const auto seconds = [&](const std::string& options) { return test::json_of("run --collective broadcast " + options)["makespan_s"].get<double>(); };
  for (const std::string on : {"--machine dgx_h100 --slice 2x8 --mesh row=16 --axis row --bytes 1MiB", "--machine dgx_h100 --slice 1x8 --axis col --bytes 16MiB",
                               "--machine dgx_a100 --slice 1x8 --axis col --bytes 16MiB",
                               "--machine ideal --slice 1x16 --axis col --bytes 64KiB --set link[x].latency=10us --set link[y].latency=100ns"}) {
    const double found = seconds(on + " --algorithm ring");
    for (const int chunks : {1, 2, 4, 8, 16, 32})
      EXPECT_LE(found, 1.02 * seconds(on + " --algorithm ring --chunks " + std::to_string(chunks))) << on << " " << chunks;
  }
  double before = 1;
  for (const std::string latency : {"2us", "1us", "100ns", "10ns", "0us"}) {
    const double found = test::json_of("run --machine dgx_a100 --slice 2x4 --pods 2 --mesh row=16,col=1 --gemm m=128,n=256,k=1024 --algorithm summa "
                                       "--dataflow ls --set link.latency=" + latency)["makespan_s"].get<double>();
    EXPECT_LE(found, before * 1.02) << latency;
    before = found;
  }
}

TEST(Cheapest, WhatRunSaysItTookCanBeAskedFor) {
  const std::string on = "run --machine dgx_h100 --slice 2x8 --mesh row=16 --collective all-reduce --bytes 1MiB ";
  const auto found = test::json_of(on);
  const std::string taken = found["algorithm"].get<std::string>().substr(std::string{"auto: "}.size());
  const auto asked = test::run_words({"run", "--machine", "dgx_h100", "--slice", "2x8", "--mesh", "row=16", "--collective", "all-reduce", "--bytes", "1MiB",
                                         "--algorithm", taken, "--format", "json"}).json();
  EXPECT_EQ(asked["makespan_s"], found["makespan_s"]) << taken;
  const auto refused = [](const std::string& name) {
    return choose_and_lower(testing::system_with({{"machine", "ideal"}, {"slice", "4x4x4"}, {"mesh", "a=16,b=4"}}), name);
  };
  EXPECT_THAT(refused("rotations over 2x8"), ::testing::HasSubstr("`rotations over 2x8` does not fit a collective along a"));
  EXPECT_THAT(refused("ring over b,a"), ::testing::HasSubstr("does not fit a collective along a"));
  EXPECT_EQ(refused("rotations over 4x4"), "");
}

TEST(Cheapest, DoesNotSeeAxesOfOneDevice) {
  const std::string on = "run --machine tpu_v5p --slice 2x2x1 --mesh a=4,b=1 --bytes 64MiB --collective ";
  for (const std::string kind : {"all-gather", "all-reduce", "all-to-all", "broadcast"}) {
    const auto alone = test::json_of(on + kind + " --axis a"), beside = test::json_of(on + kind + " --axis a,b"), before = test::json_of(on + kind + " --axis b,a");
    EXPECT_EQ(alone["makespan_s"], beside["makespan_s"]) << kind;
    EXPECT_EQ(alone["makespan_s"], before["makespan_s"]) << kind;
    EXPECT_EQ(alone["algorithm"], beside["algorithm"]) << kind;
  }
}

TEST(Cheapest, OfOneRootTriesBothOrdersOfTheAxes) {
  for (const std::string kind : {"broadcast", "reduce"})
    for (const std::string root : {"0", "5"}) {
      const std::string on = "run --machine tpu_v5e --slice 2x4 --mesh a=2,b=4 --bytes 512 --fail 0.0-1.0 --collective " + kind;
      // Position 5 along a,b is a=1, b=1; along b,a that is position 3.
      const double found = test::json_of(on + " --axis a,b --root " + root)["makespan_s"].get<double>();
      for (const std::string algorithm : {"line", "direct"})
        EXPECT_LE(found, 1.0001 * test::json_of(on + " --axis b,a --root " + (root == "0" ? "0" : "3") + " --algorithm " + algorithm)["makespan_s"].get<double>()) << kind << " " << root << " " << algorithm;
    }
}

TEST(Cheapest, OnTwoNodesOfEightIsTheSameHoweverTheAxesAreNamed) {
  for (const std::string on : {"--mesh row=2,col=8 --axis row,col", "--mesh row=2,col=8 --axis col,row", "--mesh row=16", ""}) {
    const auto found = test::json_of("run --machine dgx_h100 --slice 2x8 --collective all-reduce --bytes 1GiB " + on);
    EXPECT_LE(found["makespan_s"].get<double>(), 5.5e-3) << on << ": " << found["algorithm"];
    EXPECT_TRUE(found["algorithm"].get<std::string>().starts_with("auto: ")) << found["algorithm"];
  }
}

TEST(Cheapest, OfSmallSumsGrowsWithTheLogarithmOfTheNodes) {
  const auto seconds = [](int nodes, const std::string& algorithm) {
    return test::json_of("run --machine dgx_h100 --slice " + std::to_string(nodes) + "x8 --collective all-reduce --bytes 64KiB --algorithm " + algorithm)["makespan_s"].get<double>();
  };
  const double step = seconds(32, "tree") - seconds(16, "tree");  // one level more of the tree, up and down
  for (const int nodes : {32, 64}) EXPECT_NEAR(seconds(2 * nodes, "tree") - seconds(nodes, "tree"), step, 0.2 * step) << nodes;
  for (const int nodes : {16, 64}) EXPECT_LE(seconds(nodes, "auto"), seconds(nodes, "tree"));
}

/// Whether any named algorithm, in any order of the axes, takes less than `auto` does along them as they stand.
void expect_unbeaten(const std::string& on, std::vector<std::string> axes) {
  const auto along = [](const std::vector<std::string>& names) { return " --axis " + fmt::format("{}", fmt::join(names, ",")); };
  const double found = test::json_of("run " + on + along(axes))["makespan_s"].get<double>();
  const std::vector<std::string> as_asked = axes;
  std::sort(axes.begin(), axes.end());
  do {
    const auto all = test::json_of("compare " + on + " --algorithms all" + along(axes));
    for (const auto& row : all["rows"]) {
      const auto algorithm = row["algorithm"].get<std::string>();
      if (axes != as_asked && algorithm.ends_with(" as one axis")) continue;  // what `auto` takes along another order, where every device has another block: no name along this one
      EXPECT_LE(found, row["makespan_s"].get<double>() + 1e-15) << on << along(axes) << " by " << algorithm;
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
}

TEST(Cheapest, IsNotBeatenByANameInAnyOrderOfTheAxes) {
  // By picoseconds, too.
  expect_unbeaten("--machine tpu_v3 --slice 2x4 --mesh a=4,b=4 --collective reduce-scatter --bytes 64", {"b", "a"});
  if (!test::cases(true, false)) return;
  expect_unbeaten("--machine tpu_v6e --slice 8x4 --mesh a=2,b=16 --collective all-reduce --bytes 512", {"a", "b"});
  expect_unbeaten("--machine tpu_v6e --slice 8x4 --mesh a=2,b=4,c=4 --collective all-reduce --bytes 512MiB", {"a", "c", "b"});
  expect_unbeaten("--machine tpu_v4 --slice 2x2x4 --mesh a=4,b=2,c=2 --collective all-reduce --bytes 1MiB --fail 0.0.0-1.0.0", {"c", "b", "a"});
  expect_unbeaten("--machine gb200_nvl72 --slice 2x8 --mesh a=4,b=2,c=2 --collective all-reduce --bytes 64MiB", {"a", "b", "c"});
}

/// Wires, not the names of axes: three axes and one over the same chips. Before, a broadcast took 2.9 times as long along three, as it went along one after the other.
TEST(Cheapest, AlongSeveralAxesIsNotSlowerThanAlongOneOverTheSameWires) {
  const std::vector<std::string> kinds{"broadcast", "reduce", "all-to-all", "all-reduce"};
  for (const std::string& kind : std::span{kinds}.first(test::cases<std::size_t>(4, 1)))
    for (const std::string mesh : {"a=2,b=2,c=4", "a=8,b=2"}) {
      const std::string on = "run --machine tpu_v4 --slice 2x2x4 --bytes 16MiB --fail 0.0.0-0.1.0 --collective " + kind;
      const auto several = test::json_of(on + " --mesh " + mesh), one = test::json_of(on + " --mesh x=16");
      EXPECT_LE(several["makespan_s"], one["makespan_s"]) << kind << " " << mesh << ": " << several["algorithm"] << " and " << one["algorithm"];
    }
}

TEST(Cheapest, MeshesThatSplitDimensionsOfATorusGoAlongTheSameWires) {
  const auto along = [](const std::string& mesh, const std::string& bytes) { return test::json_of("run --machine tpu_v4 --slice 8x8x4 --topology torus --collective all-reduce --mesh " + mesh + " --bytes " + bytes); };
  for (const std::string bytes : {"4KiB", "256MiB"}) {
    const auto one = along("x=256", bytes);
    for (const std::string mesh : {"a=128,b=2", "a=2,b=128", "a=16,b=16"}) {
      const auto several = along(mesh, bytes);
      EXPECT_LE(several["makespan_s"], one["makespan_s"]) << mesh << ": " << several["algorithm"] << " and " << one["algorithm"];
    }
  }
}

TEST(Cheapest, OrdersOfDimensionsThatAreAlikeAreTriedOnce) {
  const auto tried = [](const std::string& topology, const std::string& slice, const std::string& mesh) {
    const System pod = testing::system_with({{"machine", "tpu_v4"}, {"slice", slice}, {"topology", topology}, {"mesh", mesh}});
    const auto schedule = collective_schedule(pod.mesh, CollectiveKind::all_reduce, {pod.mesh.whole(0), pod.mesh.whole(1), pod.mesh.whole(2)}, Bytes{1 << 20}, DType::f32);
    const auto& collective = std::get<Collective>(schedule->programs.front().tasks.front().op);
    std::vector<Lowering> all = candidates(pod.mesh, collective);
    leave_out_alike(all, pod, pod.mesh, collective);
    return std::ranges::count_if(all, [](const Lowering& lowering) { return lowering.algorithm->name == "hierarchical"; });
  };
  EXPECT_EQ(tried("torus", "4x4x4", "a=4,b=4,c=4"), 1);
  EXPECT_EQ(tried("mesh", "4x4x4", "a=4,b=4,c=4"), 1);
  EXPECT_EQ(tried("torus", "4x4x8", "a=4,b=4,c=8"), 3);
  EXPECT_EQ(tried("torus", "2x4x8", "a=2,b=4,c=8"), 6);
  EXPECT_EQ(tried("torus", "8x8", "a=4,b=2,c=8"), 6) << "part of a dimension is not like the other one";
}

TEST(Cheapest, NoBoundIsAboveTheTime) {
  int bound = 0;  // by more than latencies
  for (const std::string topology : {"torus", "mesh"})
    for (const std::string slice : {"8", "4x4", "2x8", "2x4x4"})
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather})
        for (const std::int64_t bytes : {std::int64_t{4096}, std::int64_t{64} << 20}) {
          const System own = testing::system_with({{"machine", "tpu_v4"}, {"slice", slice}, {"topology", topology}});
          const int chips = own.mesh.devices();
          const System pod = testing::system_with({{"machine", "tpu_v4"}, {"slice", slice}, {"topology", topology}, {"mesh", "x=" + std::to_string(chips)}});
          const auto schedule = collective_schedule(pod.mesh, kind, {pod.mesh.whole(0)}, Bytes{bytes}, DType::f32);
          const Program& program = schedule->programs.front();
          const auto& collective = std::get<Collective>(program.tasks.front().op);
          const Seconds least = least_time(*lowering_named("direct"), pod, pod.mesh, collective, bytes_of(program, collective.input));
          const auto run = test::json_of("run --machine tpu_v4 --algorithm direct --slice " + slice + " --topology " + topology + " --mesh x=" + std::to_string(chips) + " --collective " +
                                         std::string{name_of(kind)} + " --bytes " + std::to_string(bytes));
          EXPECT_LE(least.count(), run["makespan_s"].get<double>()) << slice << " " << topology << " " << name_of(kind) << " " << bytes;
          bound += least.count() > 0.5 * run["makespan_s"].get<double>() ? 1 : 0;
        }
  EXPECT_GE(bound, 12);
}

TEST(Cheapest, AsOneAxisCanBeAskedForByItsName) {
  const std::string on = "run --machine tpu_v4 --slice 2x4 --mesh a=2,b=4 --collective broadcast --bytes 16MiB";
  const auto found = test::json_of(on);
  const std::string name = found["algorithm"].get<std::string>().substr(std::string{"auto: "}.size());
  EXPECT_THAT(name, ::testing::EndsWith(" as one axis"));
  const auto asked = test::run_words({"run", "--machine", "tpu_v4", "--slice", "2x4", "--mesh", "a=2,b=4", "--collective", "broadcast", "--bytes", "16MiB", "--algorithm", name, "--format", "json"}).json();
  EXPECT_EQ(asked["makespan_s"], found["makespan_s"]);
  EXPECT_EQ(asked["mesh"], found["mesh"]) << "the mesh that was asked for";
  const auto refused = test::run_words({"run", "--machine", "tpu_v4", "--slice", "2x4", "--mesh", "a=2,b=4", "--axis", "b", "--collective", "broadcast", "--bytes", "16MiB", "--algorithm", name});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, ::testing::HasSubstr("is for collectives along all of several axes"));
}

/// `direct` beside a broken cable has thousands of flows that share links: its busiest link says that it is not the fastest. Before, 32x4 took half a minute.
TEST(Cheapest, PlaysNothingWhoseBusiestLinkTakesLonger) {
  const System broken = testing::system_with({{"machine", "tpu_v4"}, {"slice", "4x4x4"}, {"mesh", "x=64"}, {"fail", "0.0.0-3.0.0"}});
  const auto schedule = collective_schedule(broken.mesh, CollectiveKind::all_reduce, {broken.mesh.whole(0)}, Bytes{16 << 20}, DType::f32);
  RunOptions options;
  std::vector<std::string> tried;
  options.doing = [&](const std::string& what) { tried.push_back(what); };
  ASSERT_TRUE(cheapest(broken, *schedule, options));
  // A candidate is told of when it is lowered, and one that waits again when its turn comes.
  const auto told = [&](const std::string& name) { return std::count(tried.begin(), tried.end(), "choosing how to lower all-reduce: " + name); };
  EXPECT_GE(told("rotations"), 2) << "as it may be the fastest";
  EXPECT_EQ(told("direct"), 1);
}

/// One event of thousands of flows on the same links solves them all: what a run says of its progress goes by flows that were solved, not by events.
TEST(Simulate, SaysHowFarItIsWhereManyFlowsShareLinks) {
  const System broken = testing::system_with({{"machine", "tpu_v4"}, {"slice", "4x4x4"}, {"mesh", "x=64"}, {"fail", "0.0.0-3.0.0"}});
  CollectiveSpec spec;
  spec.kind = CollectiveKind::all_to_all;
  spec.input = Bytes{16 << 20};
  spec.policy.algorithm = "direct";
  int said = 0;
  RunOptions options;
  options.control.progress = [&](const RunProgress&) { ++said; };
  ASSERT_TRUE(simulate(broken, ProblemSpec{spec}, options));
  EXPECT_GT(said, 3) << "two alternatives, each said that it begins";
}

TEST(Cheapest, NumberOfChunksDoesNotDependOnWhichAxisIsNamedFirst) {
  const std::string on = "run --machine dgx_a100 --slice 4x4 --mesh a=8,b=2 --collective broadcast --bytes 1GiB --axis ";
  EXPECT_EQ(test::json_of(on + "a,b")["makespan_s"], test::json_of(on + "b,a")["makespan_s"]);
}

TEST(InSwitch, AddsNothingBetweenTheDevicesOfOneChip) {
  const auto run = test::podsim("run --machine tpu7x --slice 2x2x2 --mesh a=8,b=2 --collective all-reduce --bytes 16MiB --axis a,b --algorithm hierarchical-in-switch");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, ::testing::HasSubstr("a switch can add up or copy between chips alone; devices 0 and 1 are of one"));
}

TEST(LoweringNames, AreReadBack) {
  const System folded = testing::system_with({{"machine", "ideal"}, {"slice", "4x2x3"}, {"mesh", "a=8,b=3"}});
  const System three = testing::system_with({{"machine", "ideal"}, {"slice", "4x2x3"}, {"mesh", "a=4,b=2,c=3"}});
  Collective along_all;
  along_all.kind = CollectiveKind::all_reduce;
  along_all.axes = {three.mesh.whole(0), three.mesh.whole(1), three.mesh.whole(2)};
  int orders = 0;
  for (const Lowering& lowering : candidates(three.mesh, along_all)) {
    const auto read = lowering_named(name_of(lowering, three.mesh, along_all));
    ASSERT_TRUE(read) << to_text(read.error());
    EXPECT_EQ(*read, lowering);
    EXPECT_TRUE(fits(*read, three.mesh, along_all));
    orders += lowering.algorithm == collective_algorithm_named("hierarchical");
  }
  EXPECT_EQ(orders, 6);
  EXPECT_FALSE(fits(*lowering_named("ring over a,b"), three.mesh, along_all));
  EXPECT_FALSE(fits(*lowering_named("ring over a,b,b"), three.mesh, along_all));
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::broadcast})
    for (const bool both : {false, true}) {
      Collective collective;
      collective.kind = kind;
      collective.axes = both ? std::vector{folded.mesh.whole(0), folded.mesh.whole(1)} : std::vector{folded.mesh.whole(0)};
      for (Lowering lowering : candidates(folded.mesh, collective))
        for (const std::optional<int> chunks : {std::optional<int>{}, std::optional<int>{1}, std::optional<int>{16}}) {
          lowering.chunks = chunks;
          const auto read = lowering_named(name_of(lowering, folded.mesh, collective));
          ASSERT_TRUE(read) << name_of(lowering, folded.mesh, collective) << to_text(read.error());
          EXPECT_EQ(*read, lowering) << name_of(lowering, folded.mesh, collective);
        }
    }
  EXPECT_FALSE(lowering_named("tree in chunks"));
  EXPECT_FALSE(lowering_named("ring in 0 chunks"));
  EXPECT_FALSE(lowering_named("rung over 4x2"));
}

}  // namespace
}  // namespace podsim
