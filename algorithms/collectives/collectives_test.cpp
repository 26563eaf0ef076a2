#include "algorithms/collectives/collectives.hpp"

#include <gtest/gtest.h>

#include "sim/engines/testing.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::ideal_machine;
using testing::make_pod;
using testing::Pod;

Schedule lowered(const Pod& pod, CollectiveKind kind, std::string_view axis, Bytes bytes, std::string_view algorithm, DType dtype = DType::f32) {
  const auto schedule = collective_schedule(pod.mesh, kind, {*pod.mesh.axis(axis)}, bytes, dtype);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  const auto result = lower(*schedule, *always(algorithm));
  EXPECT_TRUE(result) << to_text(result.error());
  return *result;
}

double seconds(const Pod& pod, const Schedule& schedule, std::string_view engine) {
  const auto timeline = testing::run(pod, schedule, engine);
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline ? to_seconds(timeline->makespan).count() : 0;
}

struct ClosedForm {
  std::string_view algorithm;
  bool wraps;
  double (*seconds)(int P, double alpha, double shard_bytes, double bytes_per_second);
};

const std::vector<ClosedForm> closed_forms{
    {"ring-one-way", true, [](int P, double alpha, double V, double B) { return (P - 1) * (alpha + V / B); }},
    {"ring", true, [](int P, double alpha, double V, double B) { return (P - 1) * (alpha + (P == 2 ? V : V / 2) / B); }},
    {"line", false, [](int P, double alpha, double V, double B) { return (P - 1) * (alpha + V / B); }},
};

TEST(Collectives, EveryEngineMeetsTheClosedForms) {
  for (const ClosedForm& form : closed_forms)
    for (const int P : {2, 3, 4, 7, 16})
      for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter})
        for (const EngineEntry& engine : all_timing_engines()) {
          SCOPED_TRACE(std::string{form.algorithm} + " P=" + std::to_string(P) + " " + std::string{name_of(kind)} + " " + std::string{engine.name});
          Machine machine = ideal_machine(45e9, 1e-6);
          machine.software.per_message = Seconds{0.5e-6};
          const Pod pod = make_pod(machine, {P}, form.wraps);
          const Bytes shard{1 << 20};
          const Schedule schedule = lowered(pod, kind, "row", kind == CollectiveKind::all_gather ? shard : P * shard, form.algorithm);
          const double expected = form.seconds(P, 1.5e-6, 1 << 20, 45e9);
          EXPECT_NEAR(seconds(pod, schedule, engine.name), expected, 1e-12 * 3 * P + 1e-12 * expected);  // 1 ps per event
        }
}

TEST(Collectives, TheIssuesFiguresOnSixteenChips) {
  Machine machine = ideal_machine(45e9, 1e-6);
  const Pod ring = make_pod(machine, {16}), open = make_pod(machine, {16}, false);
  for (const EngineEntry& engine : all_timing_engines()) {
    const auto gather = [&](const Pod& pod, std::string_view algorithm) {
      return seconds(pod, lowered(pod, CollectiveKind::all_gather, "row", Bytes{16 << 20}, algorithm), engine.name);
    };
    const auto scatter = [&](const Pod& pod, std::string_view algorithm) {
      return seconds(pod, lowered(pod, CollectiveKind::reduce_scatter, "row", Bytes{256 << 20}, algorithm), engine.name);
    };
    const double whole = 15 * (1e-6 + 16777216 / 45e9), half = 15 * (1e-6 + 8388608 / 45e9);
    for (const auto& [found, expected] : {std::pair{gather(ring, "ring-one-way"), whole}, {gather(ring, "ring"), half}, {gather(open, "line"), whole},
                                          {scatter(ring, "ring-one-way"), whole}, {scatter(ring, "ring"), half}, {scatter(open, "line"), whole}})
      EXPECT_NEAR(found, expected, engine.name == "simgrid" ? 1e-9 * expected : 30e-12) << engine.name;  // others round each event up to 1 ps
  }
}

TEST(Collectives, ARowAndAColumnGatherAtOnceTakeAsLongAsOne) {
  const Pod pod = make_pod(ideal_machine(45e9, 1e-6), {16, 16});
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
    const auto alone = lower(*one, *always("ring")), together = lower(*both, *always("ring"));
    ASSERT_TRUE(alone && together);
    EXPECT_TRUE(validate(*together).ok());
    const auto time_alone = testing::run(pod, *alone, engine.name), time_together = testing::run(pod, *together, engine.name);
    ASSERT_TRUE(time_alone && time_together);
    EXPECT_EQ(time_alone->makespan, time_together->makespan) << engine.name;
  }
}

TEST(Collectives, ARingOnAnOpenAxisIsAnErrorThatNamesLine) {
  const Pod pod = make_pod(ideal_machine(), {4}, false);
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

TEST(Collectives, RingAllGatherOnFourChipsReadsLikeThis) {
  const Pod pod = make_pod(ideal_machine(), {4});
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
