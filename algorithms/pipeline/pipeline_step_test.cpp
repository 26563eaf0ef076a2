// Whole steps, replayed by an interpreter that knows names only: every rank alone, receives that wait.
#include "algorithms/pipeline/pipeline_step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "algorithms/pipeline/testing.hpp"

namespace podsim {
namespace {

using Kind = PipelineCommand::Kind;
using testing::random_pipeline;
using Names = std::vector<std::string>;

std::string at(const char* name, int stage, int microbatch) {
  return std::string{name} + "_" + std::to_string(stage) + "__" + std::to_string(microbatch);
}
std::string at(const char* name, int number, const char* between = "__") { return std::string{name} + between + std::to_string(number); }

/// What a task needs and leaves, by the mathematics of a chain of S stages.
void execute(const PipelineTask& task, int S, Names& reads, Names& makes) {
  const auto [kind, s, k] = task;
  using enum PipelineTaskKind;
  if (kind == forward) {
    reads.push_back(s == 0 ? at("inputs", k) : at("act", s - 1, k));
    if (s == S - 1) reads.push_back(at("targets", k));
    makes.push_back(at("res", s, k));
    if (s < S - 1) makes.push_back(at("act", s, k));
    return;
  }
  reads.push_back(at("res", s, k));
  if (kind == backward_weights) {
    reads.push_back(at("resW", s, k));
  } else {
    if (s < S - 1) reads.push_back(at("dact", s, k));
    if (s > 0) makes.push_back(at("dact", s - 1, k));
    if (kind == backward_inputs) makes.push_back(at("resW", s, k));
  }
  if (kind != backward_inputs) reads.push_back(at("grads", s, "_"));
}

/// Executes the commands of all ranks. Returns what is wrong, or nothing.
class Replay {
 public:
  explicit Replay(const PipelineStep& step) : step_{step}, live_(step.loop.size()) {}

  std::string run() {
    std::vector<std::vector<PipelineCommand>> commands;
    for (std::size_t rank = 0; rank < live_.size(); ++rank) {
      commands.push_back(step_.before[rank]);
      for (const auto* part : {&step_.loop[rank], &step_.after[rank]}) commands.back().insert(commands.back().end(), part->begin(), part->end());
    }
    std::vector<std::size_t> next(live_.size());
    for (bool moved = true; moved && wrong_.empty();) {
      moved = false;
      for (std::size_t rank = 0; rank < live_.size(); ++rank)
        while (wrong_.empty() && next[rank] < commands[rank].size() && perform(static_cast<int>(rank), commands[rank][next[rank]]))
          ++next[rank], moved = true;
    }
    for (std::size_t rank = 0; rank < live_.size() && wrong_.empty(); ++rank) {
      if (next[rank] < commands[rank].size()) wrong_ = "stuck at " + name_of(commands[rank][next[rank]]);
      if (!live_[rank].empty()) wrong_ = "rank " + std::to_string(rank) + " keeps " + *live_[rank].begin();
    }
    for (const auto& [pair, queue] : channels_)
      if (!queue.empty()) wrong_ = "nobody receives " + queue.front();
    return wrong_;
  }

  std::size_t made = 0, deleted = 0;
  std::vector<PipelineTask> executed;

 private:
  /// False: it waits.
  bool perform(int rank, const PipelineCommand& command) {
    const int S = step_.lists.spec.stages, m = step_.lists.spec.microbatches;
    Names reads, makes;
    const std::string value = name_of(command.value);
    const bool is_scalar = value == "loss";
    switch (command.kind) {
      case Kind::split_inputs:
      case Kind::split_targets:
        for (int k = 0; k < m; ++k) makes.push_back(at(command.kind == Kind::split_inputs ? "inputs" : "targets", k));
        break;
      case Kind::zero_gradients: makes.push_back(at("grads", command.task.stage, "_")); break;
      case Kind::zero_loss:
      case Kind::mean_loss: break;
      case Kind::execute:
        execute(command.task, S, reads, makes);
        executed.push_back(command.task);
        break;
      case Kind::send:
        if (!is_scalar) reads.push_back(value);
        channels_[{rank, command.peer}].push_back(value);
        break;
      case Kind::receive: {
        auto& channel = channels_[{command.peer, rank}];
        if (channel.empty()) return false;
        if (channel.front() != value) wrong_ = "receives " + value + ", got " + channel.front();
        channel.pop_front();
        if (!is_scalar) makes.push_back(value);
        break;
      }
      case Kind::erase:
        if (live_[static_cast<std::size_t>(rank)].erase(value) == 0) wrong_ = "deletes " + value + ", which is not there";
        ++deleted;
        break;
      case Kind::update: reads.push_back(at("grads", command.task.stage, "_")); break;
    }
    std::set<std::string>& live = live_[static_cast<std::size_t>(rank)];
    for (const std::string& name : reads)
      if (!live.contains(name)) wrong_ = name_of(command) + " reads " + name + ", which is not there";
    for (const std::string& name : makes) {
      if (!live.insert(name).second) wrong_ = name_of(command) + " makes " + name + " again";
      ++made;
    }
    return true;
  }

  const PipelineStep& step_;
  std::vector<std::set<std::string>> live_;
  std::map<std::pair<int, int>, std::deque<std::string>> channels_;
  std::string wrong_;
};

TEST(PipelineStep, EverythingMadeIsDeletedAndNothingIsUsedAfterwards) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const PipelineSpec spec = random_pipeline(seed);
    for (const bool keep_fused : {true, false}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (keep_fused ? " fused " : " ") + std::string{name_of(spec.schedule)});
      const auto step = pipeline_step(*executed_lists(spec, keep_fused), 2 * spec.stages);
      ASSERT_TRUE(step) << to_text(step.error());
      Replay replay{*step};
      ASSERT_EQ(replay.run(), "");
      EXPECT_EQ(replay.made, replay.deleted);
      std::vector<PipelineTask> all;
      for (const auto& list : step->lists.ranks)
        for (const PipelineUnit& unit : list) all.insert(all.end(), unit.begin(), unit.end());
      std::sort(all.begin(), all.end());
      std::sort(replay.executed.begin(), replay.executed.end());
      EXPECT_EQ(replay.executed, all);
    }
  }
}

TEST(PipelineStep, AMissingTransferOrDeletionIsSeenByTheReplay) {
  const PipelineStep step = *pipeline_step(*executed_lists({PipelineSchedule::one_f_one_b, 3, 3, 4}), 3);
  for (std::size_t rank = 0; rank < 3; ++rank)
    for (std::size_t i = 0; i < step.loop[rank].size(); ++i) {
      if (step.loop[rank][i].kind == Kind::execute) continue;
      PipelineStep broken = step;
      broken.loop[rank].erase(broken.loop[rank].begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_NE(Replay{broken}.run(), "") << "without " << name_of(step.loop[rank][i]);
    }
}

TEST(PipelineStep, EveryBorderBetweenRanksIsCrossedOncePerMicrobatchAndDirection) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const PipelineSpec spec = random_pipeline(seed);
    const auto step = pipeline_step(*executed_lists(spec), spec.stages);
    ASSERT_TRUE(step);
    std::size_t borders = 0;
    for (int stage = 0; stage + 1 < spec.stages; ++stage) borders += rank_of_stage(spec, stage) != rank_of_stage(spec, stage + 1) ? 1 : 0;
    EXPECT_EQ(step->transfers.size(), 2 * borders * static_cast<std::size_t>(spec.microbatches));
    std::set<PipelineValue> values;
    for (const auto& [from, to, value] : step->transfers) {
      EXPECT_NE(from, to);
      EXPECT_TRUE(values.insert(value).second) << name_of(value) << " is sent twice";
      const bool is_gradient = value.kind == PipelineValue::Kind::activation_gradient;
      EXPECT_EQ(rank_of_stage(spec, value.stage + (is_gradient ? 1 : 0)), from);
      EXPECT_EQ(rank_of_stage(spec, value.stage + (is_gradient ? 0 : 1)), to);
    }
  }
}

TEST(PipelineStep, ValuesAreSentRightAfterTheTaskThatMakesThemAlsoInsideAUnit) {
  const PipelineStep step = *pipeline_step(*executed_lists({PipelineSchedule::interleaved, 8, 4, 4, true}), 8);
  for (const auto& commands : step.loop)
    for (std::size_t i = 0; i < commands.size(); ++i)
      if (commands[i].kind == Kind::send) {
        ASSERT_GT(i, 0u);
        ASSERT_EQ(commands[i - 1].kind, Kind::execute);
        const std::vector<PipelineValue> made = made_by(commands[i - 1].task, step.lists.spec);
        EXPECT_NE(std::find(made.begin(), made.end(), commands[i].value), made.end());
      }
}

TEST(PipelineStep, AllRanksHoldTheLossInTheEnd) {
  const PipelineStep step = *pipeline_step(*executed_lists({PipelineSchedule::dual_pipe_v, 6, 3, 6}), 6);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const bool is_last = rank == 0;  // dual-pipe-v ends where it begins
    std::size_t sent = 0, received = 0;
    for (const PipelineCommand& command : step.after[rank])
      (command.kind == Kind::send ? sent : received) += command.kind == Kind::send || command.kind == Kind::receive ? 1u : 0u;
    EXPECT_EQ(sent, is_last ? 2u : 0u);
    EXPECT_EQ(received, is_last ? 0u : 1u);
  }
}

TEST(PipelineStep, LayersAreDividedEvenly) {
  const PipelineLists lists = *executed_lists({PipelineSchedule::interleaved, 4, 2, 4});
  const auto step = pipeline_step(lists, 12);
  ASSERT_TRUE(step);
  std::vector<int> ranks;
  for (int layer = 0; layer < 12; ++layer) ranks.push_back(rank_of_stage(lists.spec, stage_of_layer(*step, layer)));
  EXPECT_EQ(ranks, (std::vector<int>{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(to_text(pipeline_step(lists, 10).error()), "layers: 10 layers on 4 stages; expected a multiple of 4");
  EXPECT_EQ(to_text(pipeline_step(lists, 0).error()), "layers: expected 1 to 1048576, got 0");
}

TEST(PipelineStep, ALoopOfTwoStages) {
  const PipelineStep step = *pipeline_step(*executed_lists({PipelineSchedule::zero_bubble, 2, 2, 2}), 2);
  const auto names = [](const std::vector<PipelineCommand>& commands) {
    Names all;
    for (const PipelineCommand& command : commands) all.push_back(name_of(command));
    return all;
  };
  EXPECT_EQ(names(step.before[1]), (Names{"split_targets", "zero_loss", "zero_grads_1"}));
  EXPECT_EQ(names(step.loop[1]), (Names{"recv act_0__0 from 0",
                                        "fwd_1__0",
                                        "delete act_0__0",
                                        "delete targets__0",  //
                                        "bwdA_1__0",
                                        "send dact_0__0 to 0",
                                        "delete dact_0__0",  //
                                        "recv act_0__1 from 0",
                                        "fwd_1__1",
                                        "delete act_0__1",
                                        "delete targets__1",  //
                                        "bwdA_1__1",
                                        "send dact_0__1 to 0",
                                        "delete dact_0__1",  //
                                        "bwdW_1__0",
                                        "delete res_1__0",
                                        "delete resW_1__0",
                                        "bwdW_1__1",
                                        "delete res_1__1",
                                        "delete resW_1__1"}));
  EXPECT_EQ(names(step.after[1]), (Names{"mean_loss", "send loss to 0", "update_1", "delete grads_1"}));
}

}  // namespace
}  // namespace podsim
