// Every algorithm takes the time that its header says, on every engine that is exact there: on rings, lines, tori and a switch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "algorithms/collectives/testing.hpp"
#include "sim/base/test_cases.hpp"

namespace podsim {
namespace {

using enum CollectiveKind;
using testing::ideal_machine;
using testing::small_system;
using testing::SmallSystem;

constexpr double bandwidth = 45e9, in_switch_efficiency = 0.75;
double alpha(int hops) { return 0.5e-6 + hops * 1e-6; }
double seconds(double bytes) { return bytes / bandwidth; }

Machine machine() {
  Machine machine = ideal_machine(bandwidth, 1e-6);
  machine.software.per_message = Seconds{0.5e-6};
  machine.link[0].in_switch_efficiency = in_switch_efficiency;
  return machine;
}

constexpr int chunks = 16;

/// An algorithm on one axis.
struct Case {
  std::string_view algorithm;
  CollectiveKind kind;
  CollectiveAxis axis;
  std::int64_t root = 0, shift = 1;
};

std::string describe(const Case& c) {
  static constexpr std::array links{"ring", "line", "switch"};
  const std::string_view on = links.at(static_cast<std::size_t>(c.axis.links));
  return fmt::format("{} {} on a {} of {}, root {}, shift {}", c.algorithm, name_of(c.kind), on, c.axis.size, c.root, c.shift);
}

/// A MiB for each device of the group, or from each.
Bytes input_of(CollectiveKind kind, int P) {
  const bool cut = kind == reduce_scatter || kind == all_reduce || kind == all_to_all;
  return Bytes{(cut ? P : 1) * (std::int64_t{1} << 20)};
}

std::optional<CollectiveSteps> form_of(const Case& c) {
  const CollectiveSize size{c.kind, static_cast<double>(input_of(c.kind, c.axis.size).count()), 4, chunks, c.root, c.shift};
  return closed_form_of(*collective_algorithm_named(c.algorithm), {c.axis}, size);
}

double time_of(const CollectiveSteps& steps) {
  Seconds time;
  for (const CollectiveStep& step : steps) time += podsim::time_of(step, {Seconds{0.5e-6}, Seconds{1e-6}, BytesPerSecond{bandwidth}, in_switch_efficiency});
  return time.count();
}

double time_on(const Case& c, std::string_view engine, std::vector<Collective::Pair> pairs = {}) {
  const int P = c.axis.size;
  const bool wraps = c.axis.links != AxisLinks::line;
  const SmallSystem pod = small_system(machine(), {P}, wraps, {{"row", P}});
  const SmallSystem wrapped{pod.machine, pod.grid, *Mesh::make({{"row", P, wraps}}), pod.placement};
  if (pairs.empty()) pairs = shift_pairs(P, c.shift);
  const CollectiveDetails details{c.root, c.kind == permute ? std::move(pairs) : std::vector<Collective::Pair>{}};
  const Schedule schedule =
      testing::lowered_collective(wrapped, c.kind, {"row"}, input_of(c.kind, P), c.algorithm, details, in_chunks(chunks));
  if (c.axis.links != AxisLinks::one_switch) return testing::seconds_of(wrapped, schedule, engine);
  const testing::Switch hub{P, pod.machine.link[0]};
  const auto model = make_model(schedule, pod.machine, hub, pod.placement);
  EXPECT_TRUE(model) << to_text(model.error());
  if (!model) return 0;
  const auto timeline = (*timing_engine(engine))->run(*model, {});
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline ? to_seconds(timeline->makespan).count() : 0;
}

const double MiB = 1 << 20;

void expect_form_met(const Case& c, const CollectiveSteps& steps) {
  const bool shares = std::any_of(steps.begin(), steps.end(), [](const CollectiveStep& step) { return step.shares; });
  const double expected = time_of(steps);
  for (const EngineEntry& engine : all_timing_engines()) {
    if (shares && engine.name == "analytic") continue;
    const double tolerance = 1e-12 * 64 * c.axis.size + 1e-9 * expected;  // 1 ps per event
    EXPECT_NEAR(time_on(c, engine.name), expected, tolerance) << describe(c) << ", " << engine.name;
  }
}

TEST(Collectives, EveryEngineMeetsTheClosedFormOfEveryRow) {
  std::set<std::pair<std::string_view, CollectiveKind>> without;
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms())
    for (int k = 0; k < collective_kind_count; ++k) {
      const auto kind = static_cast<CollectiveKind>(k);
      if (!entry.kinds.has(kind) || entry.needs.axes > 1 || entry.closed_form == &closed_forms::none) continue;
      int forms = 0;
      const bool placed = kind == broadcast || kind == reduce || kind == permute;  // depends on the root, or the distance
      for (const AxisLinks links : {AxisLinks::ring, AxisLinks::line, AxisLinks::one_switch})
        for (const int P : test::sanitized ? std::vector{2, 3, 4, 5} : std::vector{2, 3, 4, 5, 7, 8, 16})
          for (const std::int64_t other : placed ? std::vector<std::int64_t>{0, 1, 3} : std::vector<std::int64_t>{0}) {
            Case c{entry.name, kind, {P, links, entry.needs.in_switch && links == AxisLinks::one_switch}};
            (kind == permute ? c.shift : c.root) = other % P;
            const auto steps = form_of(c);
            if (!steps) continue;
            expect_form_met(c, *steps);
            ++forms;
          }
      if (forms == 0) without.emplace(entry.name, kind);
    }
  EXPECT_EQ(without, (std::set<std::pair<std::string_view, CollectiveKind>>{{"line", all_to_all}}));
}

/// The formulas in the words of collectives.hpp, for the algorithms that most runs use.
TEST(Collectives, TheClosedFormsAreThoseOfTheLiterature) {
  const auto found = [](std::string_view algorithm, CollectiveKind kind, AxisLinks links, int P) {
    const auto steps = form_of({algorithm, kind, {P, links}});
    return steps ? time_of(*steps) : 0;
  };
  using enum AxisLinks;
  for (const int P : {2, 3, 4, 8, 16}) {
    const double a = alpha(1), V = seconds(MiB), half = P == 2 ? V : V / 2;
    EXPECT_DOUBLE_EQ(found("ring-one-way", all_gather, ring, P), (P - 1) * (a + V));
    EXPECT_DOUBLE_EQ(found("ring", reduce_scatter, ring, P), (P - 1) * (a + half));
    EXPECT_DOUBLE_EQ(found("ring", all_reduce, ring, P), 2 * (P - 1) * (a + half));
    EXPECT_DOUBLE_EQ(found("line", all_gather, line, P), (P - 1) * (a + V));
    EXPECT_NEAR(found("ring-shortest", all_gather, ring, P), (P / 2) * (a + V), 1e-15);
    EXPECT_DOUBLE_EQ(found("direct", all_to_all, one_switch, P), a + (P - 1) * V);
    EXPECT_NEAR(found("pairwise", all_to_all, one_switch, P), (P - 1) * (a + V), 1e-15);
    EXPECT_DOUBLE_EQ(found("ring", broadcast, ring, P), (P - 2 + chunks) * (a + V / chunks));
    EXPECT_NEAR(found("halving-doubling", all_gather, one_switch, P), P == 3 ? 0 : std::log2(P) * a + (P - 1) * V, 1e-15);
  }
}

TEST(Collectives, APermuteOfPairsThatShareNoLinkTakesOneTransfer) {
  for (const int P : {4, 7})
    for (const EngineEntry& engine : all_timing_engines())
      EXPECT_NEAR(time_on({"direct", permute, {P, AxisLinks::ring}}, engine.name, {{0, 1}, {1, 0}, {2, 3}, {3, 2}}), alpha(1) + seconds(MiB), 1e-10);
}

TEST(Collectives, OnAnOpenAxisTheMiddleLinksOfAnAllToAllBoundIt) {
  for (const int P : {2, 3, 4, 7, 8, 16}) {
    double latencies = 0;
    for (int k = 1; k < P; ++k) latencies += alpha(k);
    const double middle = seconds(MiB * (P * P / 4)), found = time_on({"line", all_to_all, {P, AxisLinks::line}}, "simgrid");
    EXPECT_GE(found, middle);
    EXPECT_LE(found, (latencies + middle) * (1 + 1e-6)) << P;
  }
}

TEST(Collectives, PhasesTakeTheSumOfTheirAxes) {
  const int p = 4, q = 3;
  const SmallSystem pod = small_system(machine(), {p, q});
  const auto step = [](int devices, double V) { return (devices - 1) * (alpha(1) + seconds(V / 2)); };
  const auto chain = [](int devices, double V) { return (devices - 2 + default_chunks) * (alpha(1) + seconds(V / default_chunks)); };
  const double gather = step(q, MiB) + step(p, q * MiB);
  const Bytes shard{1 << 20}, all{p * q << 20};
  for (const EngineEntry& engine : all_timing_engines())
    for (const auto& [kind, bytes, expected] : {std::tuple{all_gather, shard, gather}, {reduce_scatter, all, gather}, {all_reduce, all, 2 * gather},
                                                {broadcast, shard, chain(p, MiB) + chain(q, MiB)}, {reduce, shard, chain(p, MiB) + chain(q, MiB)}}) {
      const auto form = closed_form_of(*collective_algorithm_named("ring"), {{p}, {q}}, {kind, static_cast<double>(bytes.count()), 4});
      ASSERT_TRUE(form);
      EXPECT_DOUBLE_EQ(time_of(*form), expected) << name_of(kind);
      const double found = testing::seconds_of(pod, testing::lowered_collective(pod, kind, {"row", "col"}, bytes, "ring"), engine.name);
      EXPECT_NEAR(found, expected, 50e-12) << name_of(kind) << " " << engine.name;
    }
}

/// d rings of p: 1/d of the phases' bytes; an all-gather takes (P-1) V / (2 d) of link time, what the 2 d links into a device need at least.
TEST(Collectives, RotationsKeepAllLinksOfATorusBusy) {
  for (const std::vector<int>& extents : {std::vector<int>{4, 4}, {5, 5}, {4, 4, 4}, {3, 3, 3}, {2, 2, 2}, {1, 4, 4}}) {
    const SmallSystem pod = small_system(machine(), extents);
    std::vector<std::string> names;
    std::vector<CollectiveAxis> axes;
    double devices = 1, d = 0, p = 1;
    for (const MeshAxis& axis : pod.mesh.axes()) {
      names.push_back(axis.name), axes.push_back({axis.size}), devices *= axis.size;
      if (axis.size > 1) d += 1, p = axis.size;
    }
    const double shard = 4 * 6 * 1000, links = p > 2 ? 2 * d : d, phases = d * (p - 1) * alpha(1), gather = phases + seconds((devices - 1) * shard / links);
    const Bytes all{static_cast<std::int64_t>(devices * shard)};
    for (const EngineEntry& engine : all_timing_engines())
      for (const auto& [kind, bytes, expected] : {std::tuple{all_gather, Bytes{static_cast<std::int64_t>(shard)}, gather}, {reduce_scatter, all, gather}, {all_reduce, all, 2 * gather}}) {
        const auto form = closed_form_of(*collective_algorithm_named("rotations"), axes, {kind, static_cast<double>(bytes.count()), 4});
        ASSERT_TRUE(form);
        EXPECT_NEAR(time_of(*form), expected, 1e-15) << name_of(kind);
        const double found = testing::seconds_of(pod, testing::lowered_collective(pod, kind, names, bytes, "rotations"), engine.name);
        EXPECT_NEAR(found, expected, 100e-12) << name_of(kind) << " " << to_text(pod.mesh) << " " << engine.name;
      }
    const auto form = closed_form_of(*collective_algorithm_named("rotations"), axes, {all_to_all, static_cast<double>(all.count()), 4});
    ASSERT_TRUE(form);
    for (const EngineEntry& engine : all_timing_engines())
      EXPECT_NEAR(testing::seconds_of(pod, testing::lowered_collective(pod, all_to_all, names, all, "rotations"), engine.name), time_of(*form), 100e-12) << to_text(pod.mesh) << " " << engine.name;
  }
}

/// Without latencies, in units of what the links into a device need at least.
TEST(Collectives, RotationsOnUnequalAxesLeaveFewLinksIdle) {
  const auto stretch = [](const std::vector<int>& extents, bool wraps, CollectiveKind kind) {
    const SmallSystem pod = small_system(ideal_machine(bandwidth), extents, wraps);
    std::vector<std::string> names;
    std::int64_t devices = 1, links = 0;
    for (const MeshAxis& axis : pod.mesh.axes()) names.push_back(axis.name), devices *= axis.size, links += wraps && axis.size > 2 ? 2 : 1;
    const std::int64_t shard = 1 << 24;
    const Bytes bytes{kind == all_gather ? shard : devices * shard};
    const double least = seconds(static_cast<double>((devices - 1) * shard)) / static_cast<double>(links) * (kind == all_reduce ? 2 : 1);
    return testing::seconds_of(pod, testing::lowered_collective(pod, kind, names, bytes, "rotations"), "des") / least;
  };
  for (const CollectiveKind kind : {all_gather, reduce_scatter, all_reduce}) {
    for (const std::vector<int>& extents : {std::vector<int>{4, 8}, {8, 4}, {8, 16}, {4, 4, 8}, {8, 4, 4}, {4, 8, 8}, {2, 4, 8}, {2, 2, 2, 4}})
      EXPECT_LE(stretch(extents, true, kind), 1.04) << extents.front();
    for (const std::vector<int>& extents : {std::vector<int>{2, 16}, {4, 4, 16}, {4, 8, 16}, {16, 4}}) EXPECT_LE(stretch(extents, true, kind), 1.09) << extents.front();
    for (const std::vector<int>& extents : {std::vector<int>{4, 4}, {4, 8}, {8, 16}, {3, 3, 3}}) EXPECT_LE(stretch(extents, false, kind), 1.02) << "open";
    for (const std::vector<int>& extents : {std::vector<int>{2, 4}, {2, 3, 4}}) EXPECT_LE(stretch(extents, false, kind), 1.17) << "open";
    EXPECT_GE(stretch({4, 4, 8}, true, kind), 1);
  }
}

/// An axis that folds dimensions is as good as a mesh axis for each.
TEST(Collectives, RotationsRunOnTheDimensionsThatAnAxisFolds) {
  const SmallSystem folded = small_system(machine(), {4, 2, 4}, true, {{"row", 32}}), apart = small_system(machine(), {4, 2, 4});
  for (const CollectiveKind kind : {all_gather, reduce_scatter, all_reduce, all_to_all}) {
    const double together = testing::seconds_of(folded, testing::lowered_collective(folded, kind, {"row"}, Bytes{32 << 12}, "rotations"), "des");
    EXPECT_EQ(together, testing::seconds_of(apart, testing::lowered_collective(apart, kind, {"row", "col", "depth"}, Bytes{32 << 12}, "rotations"), "des"));
  }
}

TEST(Collectives, ThreeAxesGatherInPhasesOnEveryKindOfAxis) {
  const SmallSystem pod = small_system(machine(), {2, 3, 4}, false);  // 2 counts as wrapped
  const double expected = 3 * (alpha(1) + seconds(MiB)) + 2 * (alpha(1) + seconds(4 * MiB)) + alpha(1) + seconds(12 * MiB);
  const auto schedule = lower(*collective_schedule(pod.mesh, all_gather, testing::axes_of(pod.mesh, {"row", "col", "depth"}), Bytes{1 << 20}, DType::f32), ring_or_line());
  ASSERT_TRUE(schedule);
  for (const EngineEntry& engine : all_timing_engines()) EXPECT_NEAR(testing::seconds_of(pod, *schedule, engine.name), expected, 50e-12) << engine.name;
}

TEST(Collectives, MoreChunksThanElementsAreAsManyAsThereAreElements) {
  const SmallSystem pod = small_system(machine(), {4});
  const auto schedule = testing::lowered_collective(pod, broadcast, {"row"}, Bytes{12}, "ring", {}, in_chunks(64));
  EXPECT_NEAR(testing::seconds_of(pod, schedule, "simgrid"), (4 - 2 + 3) * (alpha(1) + seconds(4)), 1e-11);
}

}  // namespace
}  // namespace podsim
