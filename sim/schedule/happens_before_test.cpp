// Questions of order: one by one, by passes and by vector clocks.
#include "sim/schedule/happens_before.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "sim/base/rng.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::copy;
using testing::part;
using testing::ring;
using testing::shift;
using testing::Writer;

struct Ordered {
  explicit Ordered(const Schedule& schedule) : graph{unroll(schedule).graph}, order{topological_order(graph, schedule, false)} {}
  ActivityGraph graph;
  TopologicalOrder order;
};

/// Of all pairs, earlier ones first; of a transfer about its source and its target.
std::vector<OrderQuestion> all_questions(const Ordered& o) {
  std::vector<OrderQuestion> questions;
  const auto& order = o.order.order;
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      questions.push_back({order[i], false, order[j]});
      if (o.graph.activities[order[i]].kind == Activity::Kind::transfer) questions.push_back({order[i], true, order[j]});
    }
  return questions;
}

void expect_one_answer(const Ordered& o) {
  const std::vector<OrderQuestion> questions = all_questions(o);
  HappensBefore before{o.graph, o.order.order};
  const std::vector<bool> passes = before.by_passes(questions), together = before.together(questions);
  const auto clocks = HappensBefore{o.graph, o.order.order}.by_clocks(questions);
  ASSERT_TRUE(clocks);
  for (std::size_t q = 0; q < questions.size(); ++q) {
    const bool answer = before(questions[q]);
    ASSERT_EQ(passes[q], answer) << "question " << q;
    ASSERT_EQ((*clocks)[q], answer) << "question " << q;
    ASSERT_EQ(together[q], answer) << "question " << q;
    ASSERT_EQ(before.within(3, questions[q]).value_or(answer), answer);
  }
}

/// Edges between all sorts of halves, to some of the tasks shortly before.
Schedule random_halves(std::uint64_t seed) {
  Rng rng{seed, stream_of("questions")};
  Writer w{ring(rng.between(2, 5))};
  const AxisView x = w.axis(0);
  const BufferId a = w.scratch("a", {1}), b = w.scratch("b", {1});
  for (int t = 0; t < 12; ++t) {
    std::vector<Edge> edges;
    const bool moves = rng.below(2) == 0;
    for (int e = std::max(0, t - 4); e < t; ++e) {
      if (rng.below(3) != 0) continue;
      const bool from_shift = std::holds_alternative<Shift>(w.now().tasks[static_cast<std::size_t>(e)].op);
      edges.push_back(
          after(TaskId{e}, from_shift ? static_cast<Half>(rng.below(3)) : Half::both, moves ? static_cast<Half>(rng.below(3)) : Half::both));
    }
    if (moves)
      w.add("shift", shift(x, rng.between(-2, 2), part(a, 0, 1), part(b, 0, 1)), edges);
    else
      w.add("copy", copy(part(a, 0, 1), part(b, 0, 1)), edges);
  }
  return w.schedule;
}

/// In each step each device sends to one other, and all sends are ready from the beginning.
Schedule direct_all_to_all(int P) {
  Writer w{ring(P)};
  const BufferId a = w.scratch("a", {P}), b = w.scratch("b", {P});
  const TaskId launch = w.add("launch", copy(part(a, 0, 1), part(a, 1, 1)));
  std::vector<Edge> sends;
  for (int by = 1; by < P; ++by) sends.push_back(after(w.add("send", shift(w.axis(0), by, part(a, by, 1), part(b, by, 1)), {after(launch)})));
  w.add("use", copy(part(b, 0, 1), part(b, 0, 1)), sends);
  return w.schedule;
}

/// Passes a block round the ring, step after step.
Schedule relay(int P, int steps) {
  Writer w{ring(P)};
  const BufferId a = w.scratch("a", {1}), b = w.scratch("b", {1});
  TaskId last = w.add("first", copy(part(a, 0, 1), part(b, 0, 1)));
  for (int s = 0; s < steps; ++s) last = w.add("pass on", shift(w.axis(0), 1, part(a, 0, 1), part(b, 0, 1)), {after(last)});
  return w.schedule;
}

TEST(HappensBefore, SearchPassesAndClocksGiveOneAnswer) {
  int acyclic = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    for (const bool halves : {true, false}) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << (halves ? ", halves" : ""));
      testing::RandomScheduleOptions options;
      options.careless = false;
      options.edge_chance = 0.05 * static_cast<double>(seed % 8 + 1);
      options.most_tasks = 12;
      const Schedule schedule = halves ? random_halves(seed) : testing::random_schedule(seed, options);
      const Ordered o{schedule};
      if (!o.order.cycle.empty()) continue;
      ++acyclic;
      ASSERT_NO_FATAL_FAILURE(expect_one_answer(o));
    }
  EXPECT_GT(acyclic, 60);
  expect_one_answer(Ordered{direct_all_to_all(6)});
  expect_one_answer(Ordered{relay(4, 12)});
}

TEST(HappensBefore, ARingHasAChainPerDeviceAndClocksTakeOver) {
  const Ordered o{relay(32, 31)};
  const std::vector<OrderQuestion> questions = all_questions(o);
  const VectorClocks plan{o.graph, o.order.order};
  EXPECT_EQ(plan.chains().count, 32u);
  EXPECT_LE(plan.peak_clocks(), 64u + 1);
  EXPECT_EQ(plan.peak_bytes(), plan.peak_clocks() * 32 * 2);
  // Questions as find_races() asks them: in the order of the later ones, some thousands at a time.
  std::vector<OrderQuestion> forwards = questions;
  const auto position = [&](std::uint32_t activity) {
    return std::find(o.order.order.begin(), o.order.order.end(), activity) - o.order.order.begin();
  };
  std::vector<std::ptrdiff_t> positions(o.order.order.size());
  for (std::uint32_t a = 0; a < positions.size(); ++a) positions[a] = position(a);
  std::stable_sort(forwards.begin(), forwards.end(), [&](const auto& a, const auto& b) { return positions[a.then] < positions[b.then]; });
  HappensBefore some{o.graph, o.order.order}, passes{o.graph, o.order.order};
  for (std::size_t begin = 0; begin < forwards.size(); begin += 4096) {
    const auto asked = std::span{forwards}.subspan(begin, std::min<std::size_t>(4096, forwards.size() - begin));
    ASSERT_EQ(some.together(asked), passes.by_passes(asked)) << begin;
  }
  EXPECT_LT(20 * some.waits_looked_at(), passes.waits_looked_at());
}

TEST(HappensBefore, ClocksDoNotGoBackNorBeyondTheirMemory) {
  const Ordered o{relay(8, 40)};
  const std::vector<OrderQuestion> questions = all_questions(o);
  HappensBefore before{o.graph, o.order.order};
  const auto expected = before.by_passes(questions);
  EXPECT_EQ(before.by_clocks(questions), expected);
  EXPECT_EQ(before.by_clocks(std::span{questions}.first(1)), std::nullopt) << "they are past it";
  EXPECT_EQ(before.together(questions), expected) << "passes answer instead";

  const std::size_t bytes = VectorClocks{o.graph, o.order.order}.peak_bytes();
  EXPECT_EQ((HappensBefore{o.graph, o.order.order, bytes}.by_clocks(questions)), expected);
  HappensBefore tight{o.graph, o.order.order, bytes - 1};
  EXPECT_EQ(tight.by_clocks(questions), std::nullopt);
  EXPECT_EQ(tight.together(questions), expected);
}

TEST(HappensBefore, DirectAllToAllsStayWithPasses) {
  const Ordered o{direct_all_to_all(48)};
  const VectorClocks plan{o.graph, o.order.order};
  EXPECT_GT(plan.chains().count, o.graph.activities.size() / 2) << "no chains to speak of";
  Rng rng{1, stream_of("direct")};
  const int last = static_cast<int>(o.order.order.size()) - 1;
  std::vector<OrderQuestion> questions;
  for (int q = 0; q < 1 << 13; ++q) {
    const int first = rng.between(0, last - 1), then = rng.between(first + 1, last);
    questions.push_back({o.order.order[static_cast<std::size_t>(first)], false, o.order.order[static_cast<std::size_t>(then)]});
  }
  HappensBefore before{o.graph, o.order.order}, passes{o.graph, o.order.order};
  EXPECT_EQ(before.together(questions), passes.by_passes(questions));
  EXPECT_EQ(before.waits_looked_at(), passes.waits_looked_at());
}

TEST(HappensBefore, LongChainsAreCut) {
  Writer w{ring(1)};
  const BufferId a = w.scratch("a", {2});
  std::vector<Edge> edges;
  const int tasks = 2 * Chains::most_members + 2;
  for (int t = 0; t < tasks; ++t) edges = {after(w.add("", copy(part(a, 0, 1), part(a, 1, 1)), edges))};
  const Ordered o{w.schedule};
  EXPECT_EQ((Chains{o.graph, o.order.order}.count), 3u);
  std::vector<OrderQuestion> questions;
  for (std::uint32_t then = 1; then < o.order.order.size(); ++then)
    for (const std::uint32_t first : {std::uint32_t{0}, then / 2, then - 1}) questions.push_back({first, false, then});
  const auto answers = HappensBefore{o.graph, o.order.order}.by_clocks(questions);
  EXPECT_EQ(answers, std::vector<bool>(questions.size(), true));
}

TEST(HappensBefore, EndsWhenTold) {
  const Ordered o{relay(4, 8)};
  std::vector<OrderQuestion> questions = all_questions(o);
  const std::atomic<bool> stop = true;
  HappensBefore before{o.graph, o.order.order};
  const std::vector<bool> all(questions.size(), true);
  EXPECT_NE(before.together(questions), all);
  const std::uint64_t looks = before.waits_looked_at();
  EXPECT_EQ(before.by_passes(questions, &stop), all);
  EXPECT_EQ(before.by_clocks(questions, &stop), all);
  EXPECT_EQ(before.together(questions, &stop), all);
  EXPECT_EQ(before.waits_looked_at(), looks);
}

}  // namespace
}  // namespace podsim
