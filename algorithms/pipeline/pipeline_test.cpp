// Task lists against those that JaxPP itself prints, closed forms, and what holds for any pipeline.
#include "algorithms/pipeline/pipeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "algorithms/pipeline/pipeline_times.hpp"
#include "algorithms/pipeline/testing.hpp"
#include "sim/base/rng.hpp"

namespace podsim {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::random_pipeline;

json read_testdata(const std::string& name) {
  std::ifstream file{PODSIM_SOURCE_DIR "/algorithms/pipeline/testdata/" + name};
  return json::parse(file);
}

PipelineSpec spec_of(const json& entry) {
  return {*pipeline_schedule_named(entry.at("schedule").get<std::string>()), entry.at("stages"), entry.at("ranks"), entry.at("microbatches"),
          entry.value("fuse", false)};
}

json codes_of(const PipelineLists& lists) {
  json ranks = json::array();
  for (const auto& list : lists.ranks) {
    json units = json::array();
    for (const PipelineUnit& unit : list) {
      json codes = json::array();
      for (const PipelineTask& task : unit) codes.push_back(code_of(task));
      units.push_back(codes.size() == 1 ? codes.front() : codes);
    }
    ranks.push_back(units);
  }
  return ranks;
}

std::string text_of(const PipelineSpec& spec) {
  return std::string{name_of(spec.schedule)} + " " + std::to_string(spec.stages) + "," + std::to_string(spec.ranks) + "," +
         std::to_string(spec.microbatches) + (spec.fuse_steady_state ? " fused" : "");
}

TEST(Pipeline, ListsAndFiguresAreThoseOfJaxPP) {
  int complete = 0, errors = 0;
  const json data = read_testdata("jaxpp_schedules.json");
  for (const json& entry : data.at("cases")) {
    const PipelineSpec spec = spec_of(entry);
    SCOPED_TRACE(text_of(spec));
    const auto lists = pipeline_lists(spec);
    if (entry.contains("error")) {
      EXPECT_FALSE(lists);
      ++errors;
      continue;
    }
    ++complete;
    ASSERT_TRUE(lists) << to_text(lists.error());
    EXPECT_EQ(codes_of(*lists), entry.at("tasks"));
    for (int stage = 0; stage < spec.stages; ++stage)
      EXPECT_EQ(rank_of_stage(spec, stage), entry.at("stage_to_rank").at(static_cast<std::size_t>(stage)));

    // JaxPP keeps the name of stage 0's half backward when it stands for both.
    const auto executed = executed_lists(spec, false);
    ASSERT_TRUE(executed) << to_text(executed.error());
    json codes = codes_of(*executed);
    if (splits_backward(spec.schedule))
      for (json& rank : codes)
        for (json& code : rank)
          if (const auto text = code.get<std::string>(); text.starts_with("B0.")) code = "BI" + text.substr(1);
    EXPECT_EQ(codes, entry.at("executed"));

    for (const PipelineLists& apart : {*executed, unfused(*lists)}) {
      const auto times = pipeline_times(apart);
      ASSERT_TRUE(times) << to_text(times.error());
      EXPECT_EQ(times->makespan, entry.at("makespan"));
      EXPECT_EQ(json(times->finish), entry.at("finish"));
      EXPECT_NEAR(times->bubble_fraction, entry.at("bubble_fraction").get<double>(), 0.5e-6);  // printed with six digits
      EXPECT_EQ(json(times->peak_live_forwards), entry.at("peak_live_forwards"));
    }
  }
  EXPECT_EQ(complete, 59);
  EXPECT_EQ(errors, 6);
}

TEST(Pipeline, NamesAreThoseOfTheTutorial) {
  const json data = read_testdata("jaxpp_tutorial.json");
  ASSERT_EQ(data.at("lists").size(), 4u);
  for (const json& entry : data.at("lists")) {
    const auto lists = pipeline_lists(spec_of(entry));
    ASSERT_TRUE(lists);
    json names = json::array();
    for (const PipelineUnit& unit : lists->ranks[entry.at("rank").get<std::size_t>()]) names.push_back(name_of(unit));
    EXPECT_EQ(names, entry.at("tasks"));
  }
  EXPECT_EQ(name_of(PipelineTask{PipelineTaskKind::backward_inputs, 1, 12}), "bwdA_1__12");
  EXPECT_EQ(name_of(PipelineTask{PipelineTaskKind::backward_weights, 0, 3}), "bwdW_0__3");
}

TEST(Pipeline, ATaskIsFoundByItsName) {
  for (const PipelineTask& task : {PipelineTask{PipelineTaskKind::forward, 0, 0}, {PipelineTaskKind::backward, 12, 3}, {PipelineTaskKind::backward_inputs, 1, 20},
                                   {PipelineTaskKind::backward_weights, 2, 7}})
    EXPECT_EQ(pipeline_task_named(name_of(task)), task);
  for (const char* other : {"", "_", "__", "fwd", "fwd_", "fwd_1", "fwd__1", "fwd_1__", "fwd_1_2", "fwd_1__2x", "fwd_01__2", "fwd_-1__2", "bwdC_1__2", "fwd_1__99999999999"})
    EXPECT_EQ(pipeline_task_named(other), std::nullopt) << other;
}

TEST(Pipeline, MakespansMeetTheClosedForms) {
  const auto makespan = [](const PipelineSpec& spec) {
    const auto lists = pipeline_lists(spec);
    EXPECT_TRUE(lists) << to_text(lists.error());
    const auto times = pipeline_times(unfused(*lists));
    EXPECT_TRUE(times) << to_text(times.error());
    return times->makespan;
  };
  for (int S = 1; S <= 9; ++S)
    for (int m = 1; m <= 20; ++m) {
      for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::eager_one_f_one_b})
        EXPECT_EQ(makespan({schedule, S, S, m}), 3 * (m + S - 1)) << name_of(schedule) << ' ' << S << ' ' << m;
      if (S >= 2 && m >= S) {
        EXPECT_EQ(makespan({PipelineSchedule::zero_bubble, S, S, m}), 3 * m + S - 1) << S << ' ' << m;
      }
    }
  for (int D = 1; D <= 6; ++D)
    for (int v = 1; v <= 4; ++v)
      for (int rounds = 1; rounds <= 4; ++rounds)
        for (const PipelineSchedule schedule : {PipelineSchedule::interleaved, PipelineSchedule::kimi_k2})
          EXPECT_EQ(makespan({schedule, D * v, D, D * rounds}), 3 * (D * rounds * v + D - 1)) << D << ' ' << v << ' ' << rounds;
}

TEST(Pipeline, OneFOneBHoldsAsManyMicrobatchesAsThereAreStagesBehind) {
  for (int S = 1; S <= 8; ++S) {
    const auto live = [&](PipelineSchedule schedule, int m) { return pipeline_times(*pipeline_lists({schedule, S, S, m}))->peak_live_forwards; };
    for (const int m : {1, 3, 40})
      for (int s = 0; s < S; ++s) {
        const auto at = static_cast<std::size_t>(s);
        EXPECT_EQ(live(PipelineSchedule::gpipe, m)[at], m);
        EXPECT_EQ(live(PipelineSchedule::one_f_one_b, m)[at], std::min(m, S - s));
        EXPECT_EQ(live(PipelineSchedule::eager_one_f_one_b, m)[at], std::min(m, 2 * (S - 1 - s) + 1));
        if (S >= 2 && m >= S) {
          EXPECT_EQ(live(PipelineSchedule::zero_bubble, m)[at], S);
        }
      }
  }
}

TEST(Pipeline, SeveralStagesPerRankHoldMore) {
  const auto live = [](const PipelineSpec& spec) { return pipeline_times(*pipeline_lists(spec))->peak_live_forwards; };
  for (int D = 1; D <= 5; ++D)
    for (int v = 1; v <= 3; ++v)
      for (int m = 1; m <= 20; ++m)
        for (int r = 0; r < D; ++r) {
          const auto at = static_cast<std::size_t>(r);
          const int rounds = std::max(1, m / D);
          if (m % rounds == 0) {
            const int ahead = (v - 1) * (m / rounds) + 2 * (D - 1 - r) + 1;
            EXPECT_EQ(live({PipelineSchedule::interleaved, D * v, D, m})[at], std::min(ahead, m * v)) << D << ' ' << v << ' ' << m;
            EXPECT_EQ(live({PipelineSchedule::kimi_k2, D * v, D, m})[at], std::min(ahead + 1, m * v)) << D << ' ' << v << ' ' << m;
          }
          if (v == 1 && m >= 2 * D) {
            EXPECT_EQ(live({PipelineSchedule::dual_pipe_v, 2 * D, D, m})[at], 2 * D + 1) << D << ' ' << m;
          }
        }
}

// Random pipelines of all schedules: every task once, on its rank; never before what it needs; fused or not.
TEST(Pipeline, RandomPipelinesAreCompleteAndRun) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const PipelineSpec spec = random_pipeline(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text_of(spec));
    const auto lists = pipeline_lists(spec);
    ASSERT_TRUE(lists) << to_text(lists.error());

    std::set<PipelineTask> tasks;
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < lists->ranks.size(); ++rank)
      for (const PipelineUnit& unit : lists->ranks[rank])
        for (const PipelineTask& task : unit) {
          EXPECT_EQ(rank_of_stage(spec, task.stage), static_cast<int>(rank));
          tasks.insert(task);
          ++count;
        }
    const std::size_t kinds = splits_backward(spec.schedule) ? 3 : 2;
    EXPECT_EQ(count, kinds * static_cast<std::size_t>(spec.stages) * static_cast<std::size_t>(spec.microbatches));
    EXPECT_EQ(tasks.size(), count) << "a task twice";

    const auto apart = executed_lists(spec, false), fused = executed_lists(spec);
    ASSERT_TRUE(apart && fused);
    std::int64_t makespan = 0;
    for (const PipelineLists& variant : {*apart, *fused, *lists}) {
      const auto times = pipeline_times(variant);
      ASSERT_TRUE(times) << to_text(times.error());
      std::map<PipelineTask, PipelineSpan> spans;
      for (const auto& rank : times->spans)
        for (std::size_t i = 0; i < rank.size(); ++i) {
          spans[rank[i].task] = rank[i];
          EXPECT_EQ(rank[i].end - rank[i].begin, units_of(rank[i].task.kind));
          if (i > 0) {
            EXPECT_GE(rank[i].begin, rank[i - 1].end) << "two tasks at once on a rank";
          }
        }
      for (const auto& [task, span] : spans)
        for (const PipelineTask& needed : dependencies_of(task, spec)) {
          ASSERT_TRUE(spans.contains(needed)) << name_of(task) << " needs " << name_of(needed);
          EXPECT_GE(span.begin, spans[needed].end) << name_of(task) << " needs " << name_of(needed);
        }
      for (const std::int64_t busy : times->busy) EXPECT_EQ(busy, 3 * spec.microbatches * (spec.stages / spec.ranks));
      if (makespan == 0) makespan = times->makespan;
      EXPECT_EQ(times->makespan, makespan) << "fusing costs nothing while transfers take no time";
    }
  }
}

TEST(Pipeline, StagesOfARankAreThoseThatLieOnIt) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const PipelineSpec spec = random_pipeline(seed);
    std::vector<std::vector<int>> expected(static_cast<std::size_t>(spec.ranks));
    for (int stage = 0; stage < spec.stages; ++stage) expected[static_cast<std::size_t>(rank_of_stage(spec, stage))].push_back(stage);
    for (int rank = 0; rank < spec.ranks; ++rank) EXPECT_EQ(stages_of_rank(spec, rank), expected[static_cast<std::size_t>(rank)]) << text_of(spec);
  }
}

TEST(Pipeline, AFusedUnitWaitsForAllItsMembersAndHoldsItsRank) {
  // Rank 1 could start F1.1 at 2, but does it in one unit with B1.0, which waits for rank 2.
  PipelineLists lists{{PipelineSchedule::one_f_one_b, 3, 3, 2, false}, {}};
  using enum PipelineTaskKind;
  lists.ranks = {{{{forward, 0, 0}}, {{forward, 0, 1}}, {{backward, 0, 0}}, {{backward, 0, 1}}},
                 {{{forward, 1, 0}}, {{forward, 1, 1}, {backward, 1, 0}}, {{backward, 1, 1}}},
                 {{{forward, 2, 0}}, {{backward, 2, 0}}, {{forward, 2, 1}}, {{backward, 2, 1}}}};
  const auto times = pipeline_times(lists);
  ASSERT_TRUE(times) << to_text(times.error());
  EXPECT_EQ(times->spans[1][1].begin, 5);  // B2.0 ends at 5; apart, F1.1 would start at 2
  EXPECT_EQ(times->spans[2][2].begin, 6);  // F1.1 is seen at its own end, not at that of its unit, 8
  EXPECT_EQ(times->spans[1][2].begin, 6);
  EXPECT_EQ(times->spans[1][3].begin, 9);
  EXPECT_EQ(pipeline_times(unfused(lists))->spans[1][1].begin, 2);
}

TEST(Pipeline, AnOrderThatIsStuckIsAnError) {
  using enum PipelineTaskKind;
  PipelineLists lists = *pipeline_lists({PipelineSchedule::one_f_one_b, 2, 2, 2});
  std::swap(lists.ranks[1][0], lists.ranks[1][1]);
  const auto times = pipeline_times(lists);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().message, "no rank can go on: rank 0 waits at bwd_0__0 for bwd_1__0; rank 1 waits at bwd_1__0 for fwd_1__0");

  // Two units that each need a member of the other.
  lists.ranks = {{{{forward, 0, 0}, {backward, 0, 0}}}, {{{forward, 1, 0}, {backward, 1, 0}}}};
  lists.spec.microbatches = 1;
  EXPECT_THAT(to_text(pipeline_times(lists).error()), HasSubstr("waits at FusedTask(fwd_0__0, bwd_0__0) for bwd_1__0"));
}

TEST(Pipeline, ListsThatAreNoneAreErrors) {
  const PipelineLists good = *pipeline_lists({PipelineSchedule::one_f_one_b, 2, 2, 2});
  const auto message = [&](auto&& edit) {
    PipelineLists lists = good;
    edit(lists.ranks);
    const auto times = pipeline_times(lists);
    return times ? std::string{"no error"} : times.error().message;
  };
  EXPECT_EQ(message([](auto& ranks) { ranks[0].push_back(ranks[0].front()); }), "fwd_0__0 is there twice");
  EXPECT_EQ(message([](auto& ranks) { std::swap(ranks[0], ranks[1]); }), "fwd_1__0 is on rank 0; expected rank 1, which has its stage");
  EXPECT_EQ(message([](auto& ranks) { ranks[0][0][0].microbatch = 7; }), "fwd_0__7 is outside of 2 stages and 2 microbatches");
  EXPECT_EQ(message([](auto& ranks) { ranks[0][0].clear(); }), "a unit of no task on rank 0");
  EXPECT_EQ(message([](auto& ranks) { ranks.pop_back(); }), "lists of 1 ranks; expected 2");
  EXPECT_THAT(message([](auto& ranks) { ranks[1].erase(ranks[1].begin()); }), HasSubstr("rank 1 waits at bwd_1__0 for fwd_1__0"));
}

TEST(Pipeline, TheFirstStageIsMergedOnlyWithItsOwnWeights) {
  using enum PipelineTaskKind;
  PipelineLists lists = *pipeline_lists({PipelineSchedule::zero_bubble, 2, 2, 2});
  std::erase(lists.ranks[0], PipelineUnit{{backward_weights, 0, 0}});
  EXPECT_EQ(with_first_stage_merged(lists).error().message,
            "bwdA_0__0 is not followed by its backward of weights, which the first stage does with it");
  lists.ranks[0] = {{{backward_inputs, 0, 1}}};
  EXPECT_THAT(with_first_stage_merged(lists).error().message, HasSubstr("bwdA_0__1 is not followed"));
}

TEST(Pipeline, BadCountsNameWhatIsExpected) {
  const auto message = [](const PipelineSpec& spec) {
    const auto lists = pipeline_lists(spec);
    return lists ? std::string{"no error"} : to_text(lists.error());
  };
  using enum PipelineSchedule;
  EXPECT_EQ(message({gpipe, 0, 1, 1}), "stages: expected at least 1, got 0");
  EXPECT_EQ(message({gpipe, 1, -1, 1}), "ranks: expected at least 1, got -1");
  EXPECT_EQ(message({gpipe, 1, 1, 0}), "microbatches: expected at least 1, got 0");
  EXPECT_EQ(message({one_f_one_b, 8, 4, 8}),
            "stages: 8 stages on 4 ranks; expected one stage per rank with 1f1b; interleaved-1f1b and kimi-k2 take several");
  EXPECT_EQ(message({zero_bubble, 2, 4, 8}),
            "stages: 2 stages on 4 ranks; expected one stage per rank with zero-bubble; interleaved-1f1b and kimi-k2 take several");
  EXPECT_EQ(message({zero_bubble, 1, 1, 4}), "stages: expected at least 2 stages with zero-bubble, got 1");
  EXPECT_EQ(message({zero_bubble, 4, 4, 2}), "microbatches: expected at least as many as the 4 stages with zero-bubble, got 2");
  EXPECT_EQ(message({interleaved, 6, 4, 8}), "stages: 6 stages on 4 ranks; expected a multiple of 4");
  EXPECT_EQ(message({kimi_k2, 2, 4, 8}), "stages: 2 stages on 4 ranks; expected a multiple of 4");
  EXPECT_EQ(message({interleaved, 6, 3, 7}),
            "microbatches: 7 microbatches in 2 equal rounds over 3 ranks; expected a multiple of 3, or the nearest that divide: 6 or 8");
  EXPECT_EQ(message({dual_pipe_v, 4, 4, 4}), "stages: 4 stages on 4 ranks; expected 8, two per rank with dual-pipe-v");
  EXPECT_EQ(message({dual_pipe_v, 8, 4, 7}), "microbatches: expected at least as many as the 8 stages with dual-pipe-v, got 7");
  EXPECT_EQ(message({gpipe, 2, 2, 2, true}), "fuse_steady_state: expected interleaved-1f1b or kimi-k2, which alone fuse by choice, got gpipe");
  EXPECT_EQ(message({gpipe, INT_MAX, INT_MAX, INT_MAX}), "stages: expected at most 262144, got 2147483647");
  EXPECT_EQ(message({gpipe, 512, 512, 513}), "microbatches: expected at most 512, that is 262144 over 512 stages, got 513");
  EXPECT_EQ(message({dual_pipe_v, 4, INT_MAX, 4}), "stages: 4 stages on 2147483647 ranks; expected 4294967294, two per rank with dual-pipe-v");
  EXPECT_EQ(
      to_text(pipeline_schedule_named("interleaved", {"--schedule"}).error()),
      "--schedule: no pipeline schedule \"interleaved\", did you mean \"interleaved-1f1b\"?; expected gpipe, 1f1b, eager-1f1b, interleaved-1f1b, "
      "kimi-k2, zero-bubble, dual-pipe-v");
  EXPECT_FALSE(pipeline_schedule_named("interleaved-gpipe")) << "its lists are broken upstream";
}

TEST(Pipeline, TheLargestPipelinesAreListedAndTimed) {
  using enum PipelineSchedule;
  for (const PipelineSpec& spec : {PipelineSpec{gpipe, 1, 1, 1 << 18}, PipelineSpec{one_f_one_b, 1 << 18, 1 << 18, 1},
                                   PipelineSpec{zero_bubble, 512, 512, 512}, PipelineSpec{interleaved, 1 << 18, 2, 1}}) {
    const auto lists = pipeline_lists(spec);
    ASSERT_TRUE(lists) << to_text(lists.error());
    EXPECT_TRUE(pipeline_times(*lists)) << text_of(spec);
  }
}

}  // namespace
}  // namespace podsim
