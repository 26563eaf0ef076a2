// Races within one task, and what a search for races costs.
#include "sim/schedule/races.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "sim/schedule/happens_before.hpp"
#include "sim/schedule/testing.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::copy;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::part;
using testing::ring;
using testing::shift;
using testing::texts;
using testing::Writer;

// ---- One task -------------------------------------------------------------------------------------------------------------------------

TEST(Races, AProductDoesNotWriteOverItsOperands) {
  Writer w{ring(1)};
  const BufferId a = w.scratch("a", {3, 3}), b = w.scratch("b", {3, 3});
  const Region x{a, {all(3), all(3)}}, y{b, {all(3), all(3)}};
  w.add("square", Matmul{x, y, x, 1, 1, 1, false, false, false});
  EXPECT_THAT(texts(validate(w.schedule).races), ElementsAre("race on device 0 (x=0): task 0 \"square\" writes over parts of buffer \"a\" that it reads; "
                                                             "expected regions that do not overlap"));
  std::get<Matmul>(w.task(TaskId{0}).op) = {y, x, x, 1, 1, 1, false, false, true};
  EXPECT_EQ(validate(w.schedule).races.size(), 1u) << "whether it accumulates or not";
  std::get<Matmul>(w.task(TaskId{0}).op) = {y, y, x, 1, 1, 1, false, false, true};
  EXPECT_TRUE(validate(w.schedule).ok()) << "what it accumulates onto is no operand";
}

TEST(Races, ElementwiseKindsWorkInPlaceInTheSameRegionAlone) {
  const auto races_of = [](LocalKind kind, std::vector<std::int64_t> reads, std::vector<std::int64_t> writes) {
    Writer w{ring(1)};
    const BufferId a = w.scratch("a", {40});
    Local local{kind, {}, {}};
    for (const std::int64_t begin : reads) local.reads.push_back(part(a, begin, 10));
    for (const std::int64_t begin : writes) local.writes.push_back(part(a, begin, 10));
    w.add("task", local);
    const Validation validation = validate(w.schedule);
    EXPECT_THAT(validation.shapes, IsEmpty()) << to_text(validation.shapes);
    return validation.races.size();
  };
  using enum LocalKind;
  for (const LocalKind kind : {copy, scale, alias, gelu}) {
    EXPECT_EQ(races_of(kind, {0}, {0}), 0u) << traits_of(kind).name;
    EXPECT_EQ(races_of(kind, {0}, {5}), 1u) << traits_of(kind).name;
    EXPECT_EQ(races_of(kind, {0}, {10}), 0u) << traits_of(kind).name;
  }
  for (const LocalKind kind : {add, gelu_grad, swiglu}) {
    EXPECT_EQ(races_of(kind, {0, 10}, {10}), 0u) << traits_of(kind).name;
    EXPECT_EQ(races_of(kind, {0, 0}, {0}), 0u) << traits_of(kind).name;
    EXPECT_EQ(races_of(kind, {0, 5}, {0}), 1u) << traits_of(kind).name << ": one operand is the result, the other lies across it";
  }
  EXPECT_EQ(races_of(swiglu_grad, {0, 10, 20}, {20, 10}), 0u);
  EXPECT_EQ(races_of(swiglu_grad, {0, 10, 20}, {20, 5}), 2u);
}

TEST(Races, OpaqueOperationsWriteOverTheirOperandsAsTheirCompilerSays) {
  Writer w{ring(1)};
  const BufferId a = w.scratch("a", {40});
  const TaskId fusion = w.add("fusion", Local{LocalKind::opaque, {part(a, 0, 10)}, {part(a, 5, 10)}});
  EXPECT_TRUE(validate(w.schedule).ok());
  w.add("twice", Local{LocalKind::opaque, {part(a, 20, 5)}, {part(a, 25, 10), part(a, 30, 10)}}, {after(fusion)});
  EXPECT_EQ(validate(w.schedule).races.size(), 1U) << "results never overlap";
}

TEST(Races, AnOptimiserWorksInPlace) {
  const auto races_of = [](std::int64_t parameters, std::int64_t m, std::int64_t v) {
    Writer w{ring(1)};
    const BufferId a = w.scratch("a", {80});
    Local step{LocalKind::adamw, {part(a, 0, 10), part(a, 10, 10), part(a, 20, 10), part(a, 30, 10)}, {part(a, parameters, 10), part(a, m, 10), part(a, v, 10)}};
    step.optimiser = {1, 0.5, 0.5, 1};
    w.add("task", step);
    const Validation validation = validate(w.schedule);
    EXPECT_THAT(validation.shapes, IsEmpty()) << to_text(validation.shapes);
    return validation.races.size();
  };
  EXPECT_EQ(races_of(0, 20, 30), 0u);
  EXPECT_EQ(races_of(40, 50, 60), 0u);
  EXPECT_EQ(races_of(5, 50, 60), 2u) << "across the parameters and the gradient";
}

TEST(Races, KindsThatReadAllForEachElementDoNotWorkInPlace) {
  const auto races_of = [](LocalKind kind, const std::vector<std::vector<std::int64_t>>& reads, const std::vector<std::int64_t>& write,
                           std::size_t over) {
    Writer w{ring(1)};
    Local local{kind, {}, {}, 4};
    std::vector<BufferId> buffers;
    const auto whole = [](BufferId buffer, const std::vector<std::int64_t>& extents) {
      Region region{buffer, {}};
      for (const std::int64_t extent : extents) region.dims.push_back(all(extent));
      return region;
    };
    for (std::size_t r = 0; r < reads.size(); ++r) {
      buffers.push_back(w.scratch(std::to_string(r), reads[r]));
      local.reads.push_back(whole(buffers.back(), reads[r]));
    }
    local.writes.push_back(over < buffers.size() ? local.reads[over] : whole(w.scratch("apart", write), write));
    w.add("task", local);
    const Validation validation = validate(w.schedule);
    EXPECT_THAT(validation.shapes, IsEmpty()) << to_text(validation.shapes);
    return validation.races.size();
  };
  using enum LocalKind;
  EXPECT_EQ(races_of(transpose, {{3, 3}}, {3, 3}, 0), 1u);
  EXPECT_EQ(races_of(transpose, {{3, 3}}, {3, 3}, 1), 0u);
  EXPECT_EQ(races_of(attention_grad, {{1, 2, 1, 1, 2}, {1, 2, 1, 3, 2}}, {1, 2, 1, 3, 2}, 1), 1u);
  EXPECT_EQ(races_of(norm_sums, {{3, 1}}, {3, 1}, 0), 1u);
  EXPECT_EQ(races_of(norm, {{3, 4}, {3, 1}}, {3, 4}, 0), 0u) << "over x";
  EXPECT_EQ(races_of(norm_grad, {{3, 1}, {3, 1}, {3, 1}, {3, 1}}, {3, 1}, 1), 0u) << "over x";
  EXPECT_EQ(races_of(norm_grad, {{3, 1}, {3, 1}, {3, 1}, {3, 1}}, {3, 1}, 2), 1u) << "over the sums";
}

TEST(Races, EndsWhenTold) {
  Writer w{ring(2)};
  const BufferId a = w.scratch("a", {2});
  w.add("one", copy(part(a, 0, 1), part(a, 1, 1)));
  const std::atomic<bool> stop = true;
  EXPECT_TRUE(validate(w.schedule).ok());
  const Validation validation = validate(w.schedule, &stop);
  EXPECT_TRUE(validation.cancelled);
  EXPECT_FALSE(validation.ok());
  const auto audits = audit_edges(w.schedule, &stop);
  EXPECT_TRUE(audits) << "there is no edge";
}

// ---- What it costs ----------------------------------------------------------------------------------------------------------------------

/// Each block goes round the ring and is added to on every device.
Schedule ring_reduce_scatter(int P) {
  Writer w{ring(P)};
  const AxisView x = w.axis(0);
  const BufferId sums = w.scratch("sums", {P}), result = w.scratch("result", {1});
  const auto at = [&](std::int64_t add) { return Region{sums, {block(own(x, add), 1)}}; };
  TaskId last = w.add("own terms", Local{LocalKind::scale, {part(sums, 0, P)}, {part(sums, 0, P)}, 2});
  for (int step = 1; step < P; ++step) last = w.add("step", shift(x, 1, at(-step), at(-step - 1), Combine::add), {after(last)});
  w.add("result", copy(at(0), {result, {all(1)}}), {after(last)});
  return w.schedule;
}

Races races_of(const Schedule& schedule) {
  const Unrolled unrolled = unroll(schedule);
  return find_races(schedule, unrolled.graph, topological_order(unrolled.graph, schedule, false).order);
}

TEST(Races, CostNotMuchMoreToFindThanNotToFind) {
  const Schedule right = ring_reduce_scatter(64);
  const Races none = races_of(right);
  EXPECT_THAT(none.found, IsEmpty());
  // The first step is missing on two devices, on half of them, on all; or nothing is ordered.
  for (const std::int64_t devices : {2, 32, 64}) {
    Schedule wrong = right;
    wrong.programs[0].tasks[1].where = {{own(wrong.mesh.whole(0), 0, false), devices, 64}};
    const Races races = races_of(wrong);
    EXPECT_FALSE(races.found.empty()) << devices;
    EXPECT_LT(races.waits_looked_at, 3 * none.waits_looked_at) << devices;
  }
  Schedule unordered = right;
  for (Task& task : unordered.programs[0].tasks) task.after.clear();
  const Races races = races_of(unordered);
  EXPECT_LT(races.waits_looked_at, 3 * none.waits_looked_at);
  EXPECT_FALSE(races.all);
  EXPECT_EQ(texts(validate(unordered).races).back(), "... and at least 80 more races");
}

TEST(Races, WaysRoundTheRingAreFoundHoweverLong) {
  // What device 0 writes first, it overwrites when a message has gone round the ring; or one device does not wait for the message.
  for (const bool ordered : {true, false}) {
    Writer w{ring(96)};
    const AxisView x = w.axis(0);
    const BufferId a = w.scratch("a", {1}), b = w.scratch("b", {1}), c = w.scratch("c", {2});
    TaskId last = w.add("first", copy(part(c, 0, 1), part(a, 0, 1)));
    for (int step = 0; step < 96; ++step) {
      std::vector<Edge> edges{after(last)};
      if (!ordered && step == 48) edges.clear();
      last = w.add("pass on", shift(x, 1, part(c, 0, 1), part(b, 0, 1)), edges, testing::between(x, step, step + 1));
    }
    w.add("last", copy(part(c, 1, 1), part(a, 0, 1)), {after(last)}, testing::between(x, 0, 1));
    const Races races = races_of(w.schedule);
    if (ordered)
      EXPECT_THAT(races.found, IsEmpty()) << to_text(races.found);
    else
      EXPECT_THAT(texts(races.found), ElementsAre(::testing::HasSubstr("task 0 \"first\" writes and task 97 \"last\" writes")));
  }
}

}  // namespace
}  // namespace podsim
