#include <algorithm>

#include "algorithms/collectives/testing.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::ideal_machine;
using testing::small_system;
using testing::SmallSystem;

Schedule lowered(const SmallSystem& pod, CollectiveKind kind, std::string_view axis, Bytes bytes, std::string_view algorithm, DType dtype = DType::f32) {
  const auto schedule = collective_schedule(pod.mesh, kind, {*pod.mesh.axis(axis)}, bytes, dtype);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  const auto result = lower(*schedule, *always(algorithm));
  EXPECT_TRUE(result) << to_text(result.error());
  return *result;
}

double seconds(const SmallSystem& pod, const Schedule& schedule, std::string_view engine) {
  const auto timeline = testing::run(pod, schedule, engine);
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline ? to_seconds(timeline->makespan).count() : 0;
}

TEST(Collectives, TheIssuesFiguresOnSixteenChips) {
  Machine machine = ideal_machine(45e9, 1e-6);
  const SmallSystem ring = small_system(machine, {16}), open = small_system(machine, {16}, false);
  for (const EngineEntry& engine : all_timing_engines()) {
    const auto gather = [&](const SmallSystem& pod, std::string_view algorithm) {
      return seconds(pod, lowered(pod, CollectiveKind::all_gather, "row", Bytes{16 << 20}, algorithm), engine.name);
    };
    const auto scatter = [&](const SmallSystem& pod, std::string_view algorithm) {
      return seconds(pod, lowered(pod, CollectiveKind::reduce_scatter, "row", Bytes{256 << 20}, algorithm), engine.name);
    };
    const double whole = 15 * (1e-6 + 16777216 / 45e9), half = 15 * (1e-6 + 8388608 / 45e9);
    for (const auto& [found, expected] : {std::pair{gather(ring, "ring-one-way"), whole}, {gather(ring, "ring"), half}, {gather(open, "line"), whole},
                                          {scatter(ring, "ring-one-way"), whole}, {scatter(ring, "ring"), half}, {scatter(open, "line"), whole}})
      EXPECT_NEAR(found, expected, engine.name == "simgrid" ? 1e-9 * expected : 30e-12) << engine.name;  // others round each event up to 1 ps
  }
}

TEST(Collectives, ARowAndAColumnGatherAtOnceTakeAsLongAsOne) {
  const SmallSystem pod = small_system(ideal_machine(45e9, 1e-6), {16, 16});
  for (const EngineEntry& engine : all_timing_engines()) {
    const auto one = collective_schedule(pod.mesh, CollectiveKind::all_gather, {*pod.mesh.axis("row")}, Bytes{1 << 20}, DType::f32);
    auto both = collective_schedule(pod.mesh, CollectiveKind::all_gather, {*pod.mesh.axis("col")}, Bytes{1 << 20}, DType::f32);
    // The second gather beside the first, on buffers of its own.
    Program& program = both->programs.front();
    Task second = one->programs.front().tasks.front();
    Collective& collective = std::get<Collective>(second.op);
    collective.input.buffer = BufferId{2}, collective.output.buffer = BufferId{3};
    for (Buffer buffer : one->programs.front().buffers) {
      buffer.name += " 2", buffer.tensor += "2";
      program.buffers.push_back(buffer);
    }
    program.tasks.push_back(second);
    const auto single = lower(*one, *always("ring")), together = lower(*both, *always("ring"));
    ASSERT_TRUE(single && together);
    EXPECT_TRUE(validate(*together).ok());
    const auto time_one = testing::run(pod, *single, engine.name), time_together = testing::run(pod, *together, engine.name);
    ASSERT_TRUE(time_one && time_together);
    EXPECT_EQ(time_one->makespan, time_together->makespan) << engine.name;
  }
}

TEST(Collectives, ARingOnAnOpenAxisIsAnErrorThatNamesLine) {
  const SmallSystem pod = small_system(ideal_machine(), {4}, false);
  const auto schedule = collective_schedule(pod.mesh, CollectiveKind::all_gather, {*pod.mesh.axis("row")}, Bytes{64}, DType::f32);
  const auto result = lower(*schedule, *always("ring"));
  ASSERT_FALSE(result);
  EXPECT_EQ(to_text(result.error()), "task 0 \"all-gather\": a ring needs an axis that wraps, row is open; `line` is the algorithm for open axes");
}

TEST(Collectives, AnUnknownAlgorithmNamesTheNearOne) {
  const auto chooser = always("rings");
  ASSERT_FALSE(chooser);
  EXPECT_EQ(to_text(chooser.error()), "there is no collective algorithm \"rings\", did you mean \"ring\"?");
}

/// What lowering says, without the task's name.
std::string problem_of(const SmallSystem& pod, CollectiveKind kind, const std::vector<std::string>& axes, std::string_view algorithm, const CollectiveDetails& details = {}) {
  const auto result = testing::try_collective(pod, kind, axes, Bytes{64 * 60}, algorithm, details);
  EXPECT_FALSE(result) << algorithm << " " << name_of(kind);
  if (result) return "";
  const std::string text = to_text(result.error());
  return text.starts_with("task ") ? text.substr(text.find("\": ") + 3) : text;
}

TEST(Collectives, WhatDoesNotApplySaysWhatItWouldNeed) {
  using enum CollectiveKind;
  const SmallSystem ring = small_system(ideal_machine(), {6}), open = small_system(ideal_machine(), {6}, false), torus = small_system(ideal_machine(), {6, 5});
  const std::string needs_ring = "a ring needs an axis that wraps, row is open; `line` is the algorithm for open axes";
  for (const auto& [kind, algorithm] : {std::pair{all_reduce, "ring"}, {all_to_all, "ring"}, {broadcast, "ring"}, {reduce, "ring-one-way"}, {all_gather, "ring-shortest"},
                                        {all_gather, "pallas-ring"}, {reduce_scatter, "pallas-alternating"}})
    EXPECT_EQ(problem_of(open, kind, {"row"}, algorithm), needs_ring) << algorithm;
  EXPECT_EQ(problem_of(ring, permute, {"row"}, "ring"), "`ring` does every kind but permute, which is `direct`, not permute");
  EXPECT_EQ(problem_of(ring, all_to_all, {"row"}, "ring-one-way"), "`ring-one-way` does all-gather, reduce-scatter, all-reduce, broadcast and reduce, not all-to-all");
  EXPECT_EQ(problem_of(ring, broadcast, {"row"}, "ring-shortest"), "`ring-shortest` does all-gather, reduce-scatter and all-reduce, not broadcast");
  EXPECT_EQ(problem_of(ring, all_gather, {"row"}, "pairwise"), "`pairwise` does all-to-all, not all-gather");
  EXPECT_EQ(problem_of(ring, all_reduce, {"row"}, "pallas-bidirectional"), "`pallas-bidirectional` does all-gather, not all-reduce");
  EXPECT_EQ(problem_of(ring, all_gather, {"row"}, "halving-doubling"), "halving and doubling needs a power of two of devices, row has 6");
  EXPECT_EQ(problem_of(ring, all_gather, {"row"}, "rotations"), "`rotations` runs rotated orders of the axes, so it needs two axes with more than one device");
  EXPECT_EQ(problem_of(torus, broadcast, {"row", "col"}, "halves"), "`rotations` does all-gather, reduce-scatter, all-reduce and all-to-all, not broadcast") << "its former name";
}

TEST(Collectives, AScheduleOfOneSaysWhatTheBytesMustBe) {
  using enum CollectiveKind;
  const SmallSystem pod = small_system(ideal_machine(), {4, 2});
  const auto problem = [&](CollectiveKind kind, std::int64_t bytes, const CollectiveDetails& details = {}) {
    const auto result = collective_schedule(pod.mesh, kind, testing::axes_of(pod.mesh, {"row", "col"}), Bytes{bytes}, DType::bf16, details);
    return result ? std::string{} : to_text(result.error());
  };
  for (const CollectiveKind kind : {reduce_scatter, all_to_all})
    EXPECT_EQ(problem(kind, 24), "the bytes on each device must be a positive multiple of 16 (bf16 elements for each of 8 devices), found 24");
  for (const CollectiveKind kind : {all_gather, all_reduce, broadcast, reduce, permute}) {
    EXPECT_EQ(problem(kind, 3), "the bytes on each device must be a positive multiple of 2 (bf16 elements), found 3");
    EXPECT_EQ(problem(kind, 24), "");
  }
  EXPECT_EQ(problem(broadcast, 2, {8, {}}), "the root must be among 8 devices, found 8");
  EXPECT_EQ(problem(permute, 2, {0, {{0, 8}}}), "a pair must be among 8 devices, found 0 to 8");
  EXPECT_EQ(problem(permute, 2, {0, {{0, 1}, {0, 2}}}), "each device sends once, 0 sends twice");
  EXPECT_EQ(problem(permute, 2, {0, {{0, 1}, {2, 1}}}), "each device receives once, 1 receives twice");
}

/// The halo exchange that XLA writes where a sliced dimension is sharded: devices at the end of the axis send nothing.
TEST(Collectives, AShiftOfAllButTheLastIsOneTransfer) {
  for (const bool wraps : {true, false})
    for (const int by : {1, -1, 3}) {
      const SmallSystem pod = small_system(ideal_machine(45e9, 1e-6), {2, 5}, wraps);
      CollectiveDetails details;
      for (int row = 0; row < 2; ++row)
        for (int col = 0; col < 5; ++col)
          if (col + by >= 0 && col + by < 5) details.pairs.push_back({row * 5 + col, row * 5 + col + by});
      const Schedule schedule = testing::lowered_collective(pod, CollectiveKind::permute, {"row", "col"}, Bytes{1024}, "direct", details);
      const auto& tasks = schedule.programs.front().tasks;
      EXPECT_EQ(std::count_if(tasks.begin(), tasks.end(), [](const Task& task) { return std::holds_alternative<Shift>(task.op); }), 1) << to_text(schedule);
      EXPECT_TRUE(std::none_of(tasks.begin(), tasks.end(), [](const Task& task) { return std::holds_alternative<Send>(task.op); })) << to_text(schedule);
      const auto report = check(schedule, {});
      ASSERT_TRUE(report);
      EXPECT_TRUE(report->ok) << by << to_text(report->problems) << to_text(schedule);
    }
}

TEST(Collectives, EachDirectionOfAnAllReduceGathersWithoutWaitingForTheOther) {
  const SmallSystem pod = small_system(ideal_machine(), {5});
  const Schedule schedule = testing::lowered_collective(pod, CollectiveKind::all_reduce, {"row"}, Bytes{5 * 8}, "ring");
  const Program& program = schedule.programs.front();
  int followed = 0;
  for (const Task& task : program.tasks)
    if (const auto* shift = std::get_if<Shift>(&task.op))
      for (const Edge& edge : task.after)
        if (const auto* before = std::get_if<Shift>(&program.tasks[edge.task.index()].op)) {
          EXPECT_EQ(before->by, shift->by) << task.label;
          ++followed;
        }
  EXPECT_EQ(followed, 2 * (2 * 4 - 1));
}

TEST(Collectives, RingAllGatherOnFourChipsReadsLikeThis) {
  const SmallSystem pod = small_system(ideal_machine(), {4});
  EXPECT_EQ(to_text(lowered(pod, CollectiveKind::all_gather, "row", Bytes{8}, "ring")), R"(schedule "all-gather" on row=4
program 0 on devices 0..3
  computes all-gather over row dim 1: input[:,:,:] -> output[:,:,:]
  buffer input f32[1,1,2] input of input(row,-,-)
  buffer output f32[1,4,2] output of output(row,-,-)
     0 all-gather launch    dma launch of all-gather 0 on row
     1 all-gather place     dma place input[:,:,:] -> output[:,row,:] after 0 of all-gather 0 on row
     2 all-gather +0        shift row by 1: output[:,row,0] -> output[:,(row-1)%4,0] after 1 of all-gather 0 on row
     3 all-gather -0        shift row by -1: output[:,row,1] -> output[:,(row+1)%4,1] after 1 of all-gather 0 on row
     4 all-gather +1        shift row by 1: output[:,(row-1)%4,0] -> output[:,(row-2)%4,0] after 2 of all-gather 0 on row
     5 all-gather -1        shift row by -1: output[:,(row+1)%4,1] -> output[:,(row+2)%4,1] after 3 of all-gather 0 on row
     6 all-gather +2        shift row by 1: output[:,(row-2)%4,0] -> output[:,(row-3)%4,0] after 4 of all-gather 0 on row
     7 all-gather -2        shift row by -1: output[:,(row+2)%4,1] -> output[:,(row+3)%4,1] after 5 of all-gather 0 on row
)");
}

}  // namespace
}  // namespace podsim
