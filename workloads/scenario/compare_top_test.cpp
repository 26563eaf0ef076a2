// What a comparison does not simulate changes none of its rows: those that are slower than the best, and meshes that are others by the names of their axes only.
#include <gtest/gtest.h>

#include <map>

#include "sim/base/units.hpp"
#include "sim/engine/des/des_engine.hpp"
#include "workloads/scenario/read_comparison.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

std::vector<std::string> texts_of(const std::vector<Row>& rows) {
  std::vector<std::string> texts;
  for (const Row& row : rows) {
    std::string mesh;
    for (const auto& [axis, size] : row.result.mesh) mesh += axis + "=" + std::to_string(size) + " ";
    texts.push_back(std::to_string(row.group) + " " + row.problem.algorithm + " " + mesh + std::to_string(row.result.makespan_s * 1e12));
  }
  return texts;
}

void expect_head(const ComparisonSetup& setup, std::size_t top) {
  const auto all = compare(setup.systems, {});
  ASSERT_TRUE(all) << to_text(all.error());
  std::map<std::size_t, std::size_t> kept;
  std::vector<Row> head;
  for (const Row& row : all->rows)
    if (++kept[row.group] <= top) head.push_back(row);
  ASSERT_LT(head.size(), all->rows.size()) << (all->skipped.empty() ? "nothing left out" : all->skipped.front().what + ": " + to_text(all->skipped.front().why));
  for (const int threads : {1, 3}) {
    RunOptions options;
    options.threads = threads;
    const auto best = compare(setup.systems, options, top);
    ASSERT_TRUE(best) << to_text(best.error());
    EXPECT_EQ(texts_of(best->rows), texts_of(head)) << threads << " threads";
    EXPECT_EQ(best->slower, all->rows.size() - head.size());
    EXPECT_EQ(best->skipped.size(), all->skipped.size());
    std::size_t by_system = 0;
    for (const RankedGroup& group : best->by_system) by_system += group.rows.size();
    EXPECT_EQ(by_system, head.size());
  }
}

TEST(CompareTop, IsTheHeadOfAllMeshes) {
  const auto setup = read_comparison(testing::fields({{"machine", "tpu_v4"}, {"slice", "4x8"}, {"mesh", "all"}, {"gemm", "m=8192,n=8192,k=4096"},
                                                      {"algorithm", "meshslice,collective,wang,summa,cannon"}, {"slice_count", "2,4"}}), std::vector<std::vector<Override>>(1));
  ASSERT_TRUE(setup) << to_text(setup.error());
  for (const std::size_t top : {1, 3, 7}) expect_head(*setup, top);
}

TEST(CompareTop, IsTheHeadOfEachSizeOfACollective) {
  const auto setup = read_comparison(testing::fields({{"machine", "tpu_v4"}, {"slice", "4x4"}, {"collective", "all-gather,all-reduce"}, {"axis", "row"}, {"bytes", "1KiB,1MiB"},
                                                      {"algorithm", "all"}}), std::vector<std::vector<Override>>(1));
  ASSERT_TRUE(setup) << to_text(setup.error());
  expect_head(*setup, 2);
}

TEST(CompareTop, LeavesOutWhatHasMillionsOfTaskInstancesIfAnotherAlgorithmRuns) {
  const auto rows_by = [](const std::string& slice, const std::string& algorithms, std::size_t top) {
    const auto setup = read_comparison(testing::fields({{"machine", "ideal"}, {"slice", slice}, {"topology", "crossbar"}, {"mesh", "row=64,col=" + slice.substr(3)}, {"collective", "all-reduce"},
                                                        {"bytes", "64MiB"}, {"algorithm", algorithms}}), std::vector<std::vector<Override>>(1));
    EXPECT_TRUE(setup);
    const auto compared = compare(setup->systems, {}, top);
    EXPECT_TRUE(compared);
    return *compared;
  };
  const auto best = rows_by("64x64", "ring,channels", 1);  // 64 rings of 4,096 devices: minutes
  ASSERT_EQ(best.rows.size(), 1U);
  EXPECT_EQ(best.rows.front().problem.algorithm, "ring");
  ASSERT_EQ(best.skipped.size(), 1U);
  EXPECT_NE(to_text(best.skipped.front().why).find("at least 1.07e+03 million task instances"), std::string::npos) << to_text(best.skipped.front().why);
  EXPECT_EQ(rows_by("64x8", "channels", 1).rows.size(), 1U) << "2.1 million, but nothing else runs";
}

/// On each of several topologies, whose meshes are searched, `auto` is as fast as on the fastest of its meshes alone, on the first that is so fast; no row where a name says the same.
TEST(CompareSearch, AutoIsThatOfTheFastestMesh) {
  int as_named = 0, by_itself = 0;
  for (const char* bytes : {"4KiB", "64MiB"})
    for (const char* algorithm : {"auto", "all"}) {
      SCOPED_TRACE(std::string{bytes} + " " + algorithm);
      const auto setup = read_comparison(testing::fields({{"machine", "tpu_v4"}, {"slice", "2x2x4,2x8"}, {"topology", "torus,crossbar,fat-tree:4"}, {"collective", "all-reduce"}, {"bytes", bytes},
                                                          {"algorithm", algorithm}}), std::vector<std::vector<Override>>(1));
      ASSERT_TRUE(setup) << to_text(setup.error());
      const auto searched = compare(setup->systems, {});
      ASSERT_TRUE(searched) << to_text(searched.error());
      std::map<std::size_t, std::pair<double, std::string>> fastest;  // by topology: time and mesh
      for (ComparedSystem on : setup->systems) {
        ASSERT_TRUE(on.is_mesh_searched);
        on.is_mesh_searched = false;
        for (Variant& variant : on.variants) variant.unless_named = false;
        const auto alone = compare({on}, {});
        ASSERT_TRUE(alone) << to_text(alone.error());
        for (const Row& row : alone->rows) {
          if (!row.problem.algorithm.starts_with("auto")) continue;
          const auto [known, is_first] = fastest.try_emplace(on.topology, row.result.makespan_s, to_text(on.system.mesh));
          if (!is_first && row.result.makespan_s < known->second.first) known->second = {row.result.makespan_s, to_text(on.system.mesh)};
        }
      }
      for (const RankedGroup& topology : searched->by_system) {
        const auto& [time, mesh] = fastest.at(setup->systems[topology.system].topology);
        const auto found = std::ranges::find_if(topology.rows, [](const Row& row) { return row.problem.algorithm.starts_with("auto"); });
        if (found == topology.rows.end()) {
          EXPECT_DOUBLE_EQ(topology.rows.front().result.makespan_s, time) << "by a name";
          ++as_named;
          continue;
        }
        std::string own;
        for (const auto& [axis, size] : found->result.mesh) own += (own.empty() ? "" : ",") + axis + "=" + std::to_string(size);
        EXPECT_DOUBLE_EQ(found->result.makespan_s, time);
        EXPECT_EQ(own, mesh);
        ++by_itself;
      }
    }
  EXPECT_GE(as_named, 2);
  EXPECT_GE(by_itself, 12);
}

/// What is slower than `auto` and long to simulate is left out with what it takes at least; everything else has its row, with any number of threads. `force`: all have.
TEST(CompareSearch, LeavesOutWhatIsLongToSimulateIfItIsSlowerThanAuto) {
  for (const char* topologies : {"mesh,torus", "mesh"}) {  // on searched meshes, and on one
    SCOPED_TRACE(topologies);
    const auto setup = read_comparison(testing::fields({{"machine", "tpu_v5p"}, {"slice", "4x4x2"}, {"topology", topologies}, {"collective", "all-reduce"}, {"bytes", "1MiB"}, {"algorithm", "all"}}),
                                       std::vector<std::vector<Override>>(1));
    ASSERT_TRUE(setup) << to_text(setup.error());
    const auto name_of = [&](std::size_t topology, const std::string& algorithm) { return std::to_string(topology) + " " + algorithm.substr(0, algorithm.find(':')); };
    const auto rows_of = [&](const ComparedResults& results) {
      std::map<std::string, double> rows;
      for (const RankedGroup& group : results.by_system)
        for (const Row& row : group.rows) rows.emplace(name_of(setup->systems[group.system].topology, row.problem.algorithm), row.result.makespan_s);
      return rows;
    };
    RunOptions options;
    options.force = true;
    const auto all = compare(setup->systems, options);
    ASSERT_TRUE(all);
    const auto of_all = rows_of(*all);
    options.force = false;
    options.most_work_beside_auto = 1'000;
    std::map<std::string, double> of_one_thread;
    for (const int threads : {1, 3}) {
      options.threads = threads;
      const auto some = compare(setup->systems, options);
      ASSERT_TRUE(some);
      const auto of_some = rows_of(*some);
      if (threads == 1) of_one_thread = of_some;
      EXPECT_EQ(of_some, of_one_thread);
      std::map<std::string, double> least;
      for (const Skipped& skipped : some->skipped)
        if (skipped.why.cause == Cause::too_large) {
          const std::string text = to_text(skipped.why);
          const auto at_least = parse_seconds(text.substr(text.find("at least ") + 9, text.find(", longer") - text.find("at least ") - 9), {});
          ASSERT_TRUE(at_least) << text;
          const auto on = std::ranges::find_if(setup->systems, [&](const ComparedSystem& system) { return skipped.what.starts_with(system.name + ","); });
          ASSERT_NE(on, setup->systems.end()) << skipped.what;
          least.emplace(name_of(on->topology, skipped.what.substr(skipped.what.rfind(" by ") + 4)), at_least->count());
        }
      EXPECT_GE(least.size(), 2U);
      for (const auto& [variant, time] : of_all) {
        SCOPED_TRACE(variant);
        if (const auto row = of_some.find(variant); row != of_some.end()) {
          EXPECT_GE(row->second, time) << "on another mesh at best";
          continue;
        }
        ASSERT_TRUE(least.contains(variant)) << ::testing::PrintToString(least);
        EXPECT_LE(least.at(variant), time * 1.001) << "printed with four digits";
        double best = time;
        for (const auto& [other, other_time] : of_all)
          if (other.substr(0, 1) == variant.substr(0, 1)) best = std::min(best, other_time);
        EXPECT_GE(least.at(variant), best * 0.999);
        EXPECT_GT(time, best);
      }
    }
  }
}

TEST(CompareSearch, LeavesOutNothingThatIsNamed) {
  const auto setup = read_comparison(testing::fields({{"machine", "tpu_v5p"}, {"slice", "4x4x2"}, {"topology", "mesh,torus"}, {"collective", "all-reduce"}, {"bytes", "1MiB"}, {"algorithm", "auto,direct,hierarchical-direct"}}),
                                     std::vector<std::vector<Override>>(1));
  ASSERT_TRUE(setup) << to_text(setup.error());
  RunOptions options;
  options.most_work_beside_auto = 0;
  const auto compared = compare(setup->systems, options);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->rows.size(), 6U);
  EXPECT_TRUE(compared->skipped.empty());
}

int plays = 0;
constexpr EngineEntry counting{"des", "des, counting its plays", true, [](const Model& model, const RunControl& control) {
                                 ++plays;
                                 return run_des(model, control);
                               }};

TEST(Compare, PlaysMeshesOnceThatDifferInTheNamesOfAxesOnly) {
  for (const char* broken : {"", "2-3"}) {
    SCOPED_TRACE(broken);
    std::vector<std::pair<std::string, std::string>> given{{"machine", "tpu_v4"}, {"slice", "8"}, {"mesh", "all"}, {"collective", "all-reduce"}, {"bytes", "1MiB"}, {"algorithm", "all"}};
    if (*broken != '\0') given.emplace_back("fail", broken);
    const auto setup = read_comparison(testing::fields(given), std::vector<std::vector<Override>>(1));
    ASSERT_TRUE(setup) << to_text(setup.error());
    const ComparedSystem &first = setup->systems.front(), &last = setup->systems.back();
    ASSERT_EQ(to_text(first.system.mesh) + " " + to_text(last.system.mesh), "row=8,col=1 row=1,col=8");
    RunOptions options;
    options.engine = &counting;
    const auto counted = [&](const std::vector<ComparedSystem>& systems) {
      plays = 0;
      auto compared = compare(systems, options);
      EXPECT_TRUE(compared);
      return *std::move(compared);
    };
    const ComparedResults one = counted({first});
    const int plays_of_one = plays;
    const ComparedResults other = counted({last});
    const ComparedResults both = counted({first, last});
    EXPECT_EQ(plays, plays_of_one);
    ASSERT_EQ(both.by_system.size(), 2U);
    EXPECT_EQ(texts_of(both.by_system[0].rows), texts_of(one.rows));
    EXPECT_EQ(texts_of(both.by_system[1].rows), texts_of(other.rows));
    ASSERT_EQ(both.by_system[1].rows.size(), other.rows.size());
    for (std::size_t r = 0; r < other.rows.size(); ++r) {
      const Row &copied = both.by_system[1].rows[r], &played = other.rows[r];
      EXPECT_EQ(copied.rings, played.rings);
      EXPECT_EQ(copied.axes, played.axes);
      EXPECT_EQ(copied.problem.collective->axes, "col");
      EXPECT_EQ(copied.result.peak_memory_bytes, played.result.peak_memory_bytes);
      EXPECT_EQ(copied.result.trust, played.result.trust);
    }
    ASSERT_EQ(both.skipped.size(), one.skipped.size() + other.skipped.size());
    for (std::size_t i = 0; i < other.skipped.size(); ++i) EXPECT_EQ(both.skipped[one.skipped.size() + i].why.message, other.skipped[i].why.message);
  }
}

}  // namespace
}  // namespace podsim
