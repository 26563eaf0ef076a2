#include "workloads/scenario/read_scenario.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/engine/table/engines.hpp"
#include "tools/command/command.hpp"
#include "tools/command/test_command.hpp"
#include "workloads/collectives.hpp"

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

Pod pod(const std::string& slice, const std::vector<std::string>& sets = {}) {
  PodRequest request;
  request.machine = "ideal";
  request.slice = slice;
  request.sets = sets;
  auto made = make_pod(request);
  EXPECT_TRUE(made) << to_text(made.error());
  return std::move(*made);
}

std::string best(const Pod& pod, CollectiveKind kind, const std::vector<AxisView>& axes, std::int64_t bytes) {
  const auto schedule = collective_schedule(pod.mesh, kind, axes, Bytes{bytes}, DType::f32);
  EXPECT_TRUE(schedule);
  const auto name = cheapest_algorithm(pod, *schedule, std::get<Collective>(schedule->computes), chunk_rule(pod.machine), {});
  EXPECT_TRUE(name) << to_text(name.error());
  return name ? name->first : "";
}

TEST(Cheapest, DependsOnTheSizeAndNeverTrustsSharedLinks) {
  const Pod ring = pod("16", {"link.latency=1us", "software.per_message=1us"});
  const std::vector<AxisView> row{*ring.mesh.axis("row")};
  EXPECT_EQ(best(ring, CollectiveKind::all_gather, row, 256 << 20), "ring");  // bandwidth decides
  EXPECT_NE(best(ring, CollectiveKind::all_gather, row, 64), "ring");         // latency decides
  EXPECT_EQ(best(ring, CollectiveKind::all_to_all, row, 256 << 20), "ring");
  const Pod torus = pod("4x4", {"link.latency=1us"});
  EXPECT_EQ(best(torus, CollectiveKind::all_gather, {torus.mesh.whole(0), torus.mesh.whole(1)}, 64 << 20), "halves");
}

/// Pairwise uses one direction at a time: the busiest link alone does not tell that it takes almost twice as long.
TEST(Cheapest, IsTheOneThatTheRefereeFindsFastest) {
  const Pod torus = pod("8x8");
  for (const CollectiveKind kind : {CollectiveKind::all_to_all, CollectiveKind::all_gather, CollectiveKind::all_reduce})
    for (const std::int64_t bytes : {64 * 4, 1 << 22}) {
      const auto schedule = collective_schedule(torus.mesh, kind, {torus.mesh.whole(0), torus.mesh.whole(1)}, Bytes{bytes}, DType::f32);
      const auto seconds = [&](std::string_view name) {
        const auto lowered = lower(*schedule, *always(name));
        if (!lowered) return 1e9;
        const auto timeline = (*timing_engine("simgrid"))->run(*make_model(*lowered, torus.machine, *torus.topology, torus.placement), {});
        return timeline ? to_seconds(timeline->makespan).count() : 1e9;
      };
      const std::string found = best(torus, kind, {torus.mesh.whole(0), torus.mesh.whole(1)}, bytes);
      for (const CollectiveAlgorithmEntry& entry : collective_algorithms())
        EXPECT_LE(seconds(found), seconds(entry.name) * 1.001) << name_of(kind) << " " << bytes << ": " << found << " against " << entry.name;
    }
}

/// An axis of 16 laid over two rings of 4: both carry at once, each half of the data.
TEST(Cheapest, UsesThePhysicalDimensionsOfAFoldedAxisAtOnce) {
  PodRequest request;
  request.machine = "ideal";
  request.slice = "4x4x4";
  request.mesh = "a=16,b=4";
  const auto folded = make_pod(request);
  ASSERT_TRUE(folded);
  const std::vector<AxisView> a{folded->mesh.whole(0)};
  EXPECT_EQ(best(*folded, CollectiveKind::all_gather, a, 64 << 20), "halves over 4x4");
  const auto seconds = [&](const std::string& algorithm) {
    return test::json_of("run --machine ideal --slice 4x4x4 --mesh a=16,b=4 --collective all-gather --axis a --bytes 64MiB --algorithm " +
                         algorithm)["makespan_s"]
        .get<double>();
  };
  EXPECT_LT(seconds("auto"), 0.75 * seconds("ring"));
  EXPECT_NEAR(seconds("auto"), 15 * (64 << 20) / (4 * 100e9), 1e-9) << "15 shards over two links of each of two dimensions";
}

TEST(Cheapest, AsAChooserLowersWhatItNames) {
  const Pod ring = pod("8", {"link.latency=1us"});
  const auto schedule = collective_schedule(ring.mesh, CollectiveKind::all_reduce, {ring.mesh.whole(0)}, Bytes{8 << 20}, DType::f32);
  const auto name = cheapest_algorithm(ring, *schedule, std::get<Collective>(schedule->computes), {}, {});
  ASSERT_TRUE(name);
  const auto chosen = lower(*schedule, cheapest(ring, {}, {})), named = lower(*schedule, *always(name->first));
  ASSERT_TRUE(chosen && named);
  EXPECT_EQ(*chosen, *named);
}

TEST(Cheapest, OfACollectiveIsNotThatOfAnotherDtypeOrOfOtherPairs) {
  const Pod ring = pod("8", {"link.latency=1us"});
  const auto schedule = [&](DType dtype, std::int64_t by) {
    CollectiveDetails details;
    details.pairs = shift_pairs(8, by);
    return *collective_schedule(ring.mesh, CollectiveKind::permute, {ring.mesh.whole(0)}, Bytes{1 << 20}, dtype, details);
  };
  int choices = 0;
  Manner counting;
  counting.doing = [&](const std::string&) { ++choices; };
  const CollectiveChooser counted = cheapest(ring, {}, counting);
  const auto ask = [&](const Schedule& of) {
    const int before = choices;
    EXPECT_TRUE(counted(of, std::get<Collective>(of.computes)));
    return choices > before;
  };
  EXPECT_TRUE(ask(schedule(DType::f32, 1)));
  EXPECT_FALSE(ask(schedule(DType::f32, 1)));
  EXPECT_TRUE(ask(schedule(DType::bf16, 1)));
  EXPECT_TRUE(ask(schedule(DType::f32, 3)));
  EXPECT_FALSE(ask(schedule(DType::bf16, 1)));
}

TEST(Cheapest, HearsCtrlC) {
  const Pod ring = pod("8");
  const auto schedule = collective_schedule(ring.mesh, CollectiveKind::all_reduce, {ring.mesh.whole(0)}, Bytes{8 << 20}, DType::f32);
  std::atomic<bool> stop{false};
  Manner manner;
  manner.control.stop = &stop;
  int tried = 0;
  manner.doing = [&](const std::string&) { stop = ++tried == 3; };
  const auto name = cheapest_algorithm(ring, *schedule, std::get<Collective>(schedule->computes), {}, manner);
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().cause, Cause::cancelled);
  EXPECT_EQ(tried, 3);
}

TEST(Cheapest, PassesOverWhatIsTooLargeToSimulate) {
  PodRequest request;
  request.machine = "ideal";
  request.slice = "8";
  request.wrap = "none";  // so that no two devices are alike
  const auto open = make_pod(request);
  ASSERT_TRUE(open) << to_text(open.error());
  const auto schedule = collective_schedule(open->mesh, CollectiveKind::all_gather, {open->mesh.whole(0)}, Bytes{8 << 20}, DType::f32);
  const auto found = [&](double unasked) {
    Manner manner;
    manner.unasked = unasked;
    return cheapest_algorithm(*open, *schedule, std::get<Collective>(schedule->computes), {}, manner);
  };
  EXPECT_TRUE(found(50e6));
  double enough = 1;
  while (!found(enough)) ++enough;
  const auto small = found(enough);
  EXPECT_NE(small->first, found(50e6)->first) << small->first << " alone has no more than " << enough << " task instances";
  const auto nothing = found(1);
  ASSERT_FALSE(nothing);
  EXPECT_NE(nothing.error().message.find("or --force to run it"), std::string::npos) << nothing.error().message;
}

TEST(ChunkRuleOfAMachine, IsTheBestNumberOfChunksOfAChain) {
  const ChunkRule free = chunk_rule(pod("8").machine);
  EXPECT_EQ(free(8, Bytes{1 << 20}), 8);  // no latency: any number does
  const ChunkRule rule = chunk_rule(pod("8", {"link.latency=1us", "software.per_message=1us", "link.bandwidth=50GB/s"}).machine);
  EXPECT_EQ(rule(8, Bytes{1'000'000}), 8);  // sqrt(6 * 1e6 / (2e-6 * 50e9)) = 7.7
  EXPECT_EQ(rule(8, Bytes{100}), 1);
  EXPECT_EQ(rule(2, Bytes{1 << 30}), 1);
  EXPECT_EQ(rule(64, Bytes{1 << 30}), 64);
}

struct Ran {
  int status;
  std::string out, err;
};
Ran podsim(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Console console{out, err};
  const int status = run_verb(arguments, console);
  return {status, out.str(), err.str()};
}

TEST(RunCollective, SaysWhatAutoChose) {
  const Ran ran = podsim({"--machine", "ideal", "--slice", "16", "--set", "link.latency=1us", "--collective", "all-gather", "--axis", "row",
                          "--bytes", "256MiB", "--algorithm", "auto", "--format", "json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("\"algorithm\": \"auto: ring\""), std::string::npos) << ran.out;
}

TEST(RunCollective, SaysWhichOptionBelongsToWhich) {
  const auto error = [](std::vector<std::string> more) {
    std::vector<std::string> all{"--machine", "ideal", "--slice", "4x2", "--bytes", "64"};
    all.insert(all.end(), more.begin(), more.end());
    const Ran ran = podsim(all);
    EXPECT_EQ(ran.status, 2);
    return ran.err;
  };
  EXPECT_EQ(error({"--collective", "all-gather", "--axis", "row", "--root", "1"}),
            "podsim: error: --root: belongs to broadcast and reduce, not to all-gather\n");
  EXPECT_EQ(error({"--collective", "broadcast", "--axis", "row", "--shift", "1"}), "podsim: error: --shift: belongs to permute, not to broadcast\n");
  EXPECT_EQ(error({"--collective", "permute", "--axis", "row"}), "podsim: error: a permute needs --shift or --pairs, one of them\n");
  EXPECT_EQ(error({"--collective", "all-gather", "--axis", "row,row"}), "podsim: error: --axis: mesh axis \"row\" is named twice\n");
  EXPECT_EQ(error({"--collective", "permute", "--axis", "row", "--pairs", "/nowhere"}), "podsim: error: /nowhere: cannot read the file: No such file or directory\n");
  EXPECT_NE(error({"--collective", "reduce", "--axis", "row,col", "--root", "8"}).find("--root: "), std::string::npos);
}

}  // namespace
}  // namespace podsim
