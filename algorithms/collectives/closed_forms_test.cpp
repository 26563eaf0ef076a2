// Every algorithm takes the time that its header says, on every engine that is exact there: on rings, lines, tori and a switch.
#include <algorithm>
#include <cmath>
#include <functional>

#include "algorithms/collectives/testing.hpp"

namespace podsim {
namespace {

using enum CollectiveKind;
using testing::ideal_machine;
using testing::make_pod;
using testing::Pod;

constexpr double bandwidth = 45e9;
double alpha(int hops) { return 0.5e-6 + hops * 1e-6; }
double seconds(double bytes) { return bytes / bandwidth; }

Machine machine() {
  Machine machine = ideal_machine(bandwidth, 1e-6);
  machine.software.per_message = Seconds{0.5e-6};
  return machine;
}

enum class Net { ring, line, hub };

struct Form {
  std::string algorithm;
  std::vector<CollectiveKind> kinds;
  Net net;
  std::vector<int> devices;
  std::function<double(int P, double bytes)> seconds;  // bytes: of a shard, an all-to-all's block, or all that is sent
  bool exact_without_sharing = true;                   // else for simgrid only
  CollectiveDetails details{};
};

/// V of the header for an input of P << 20 bytes; an all-gather gets 1 << 20.
Bytes input_of(CollectiveKind kind, int P) {
  const bool cut = kind == reduce_scatter || kind == all_reduce || kind == all_to_all;
  return Bytes{(cut ? P : 1) * (std::int64_t{1} << 20)};
}

double time_on(Net net, const Form& form, CollectiveKind kind, int P, std::string_view engine) {
  const Pod pod = make_pod(machine(), {P}, net != Net::line, {{"row", P}});
  const Pod wrapped{pod.machine, pod.grid, *Mesh::make({{"row", P, net != Net::line}}), pod.placement};
  const auto chunks = [](int, Bytes) { return 16; };
  const Schedule schedule = testing::lowered_collective(wrapped, kind, {"row"}, input_of(kind, P), form.algorithm, form.details, chunks);
  if (net != Net::hub) return testing::seconds_of(wrapped, schedule, engine);
  const testing::Switch hub{P, pod.machine.link[0]};
  const auto model = make_model(schedule, pod.machine, hub, pod.placement);
  EXPECT_TRUE(model) << to_text(model.error());
  if (!model) return 0;
  const auto timeline = (*timing_engine(engine))->run(*model, {});
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline ? to_seconds(timeline->makespan).count() : 0;
}

const double MiB = 1 << 20;
const std::vector<int> many{2, 3, 4, 5, 7, 8, 16}, powers{2, 4, 8, 16};

const std::vector<Form> forms{
    {"ring-one-way", {all_gather, reduce_scatter}, Net::ring, many, [](int P, double V) { return (P - 1) * (alpha(1) + seconds(V)); }},
    {"ring", {all_gather, reduce_scatter}, Net::ring, many, [](int P, double V) { return (P - 1) * (alpha(1) + seconds(P == 2 ? V : V / 2)); }},
    {"line", {all_gather, reduce_scatter}, Net::line, many, [](int P, double V) { return (P - 1) * (alpha(1) + seconds(V)); }},
    {"ring-one-way", {all_reduce}, Net::ring, many, [](int P, double V) { return 2 * (P - 1) * (alpha(1) + seconds(V)); }},
    {"ring", {all_reduce}, Net::ring, many, [](int P, double V) { return 2 * (P - 1) * (alpha(1) + seconds(P == 2 ? V : V / 2)); }},
    {"line", {all_reduce}, Net::line, many, [](int P, double V) { return 2 * (P - 1) * (alpha(1) + seconds(V)); }},
    {"ring-shortest", {all_gather, reduce_scatter}, Net::ring, many, [](int P, double V) { return (P / 2) * (alpha(1) + seconds(V)); }},
    {"ring-shortest", {all_reduce}, Net::ring, many, [](int P, double V) { return 2 * (P / 2) * (alpha(1) + seconds(V)); }},
    {"halving-doubling", {all_gather, reduce_scatter}, Net::hub, powers,
     [](int P, double V) { return std::log2(P) * alpha(1) + (P - 1) * seconds(V); }},
    {"halving-doubling", {all_reduce}, Net::hub, powers, [](int P, double V) { return 2 * (std::log2(P) * alpha(1) + (P - 1) * seconds(V)); }},
    {"halving-doubling", {all_gather, reduce_scatter}, Net::ring, {4},  // at distance 2 two flows share every link
     [](int, double V) { return alpha(1) + seconds(V) + alpha(2) + 2 * 2 * seconds(V); }, false},
    {"direct", {all_gather, reduce_scatter, all_to_all, broadcast, reduce}, Net::hub, many,
     [](int P, double V) { return alpha(1) + (P - 1) * seconds(V); }, false},
    {"direct", {all_reduce}, Net::hub, many, [](int P, double V) { return 2 * (alpha(1) + (P - 1) * seconds(V)); }, false},
    {"direct", {all_gather, reduce_scatter, all_to_all, broadcast, reduce}, Net::ring, {2, 3}, [](int, double V) { return alpha(1) + seconds(V); }},
    {"pairwise", {all_to_all}, Net::hub, {2, 3, 5, 7}, [](int P, double E) { return (P - 1) * (alpha(1) + seconds(E)); }},
    {"pairwise", {all_to_all}, Net::hub, {4, 8, 16}, [](int P, double E) { return (P - 1) * (alpha(1) + seconds(E)); }, false},  // two halves on one link
    {"ring", {all_to_all}, Net::ring, many,
     [](int P, double E) {
       const int h = P / 2;
       return h * alpha(1) + seconds(E) * (P == 2 ? 1 : P % 2 == 1 ? h * (h + 1) / 2.0 : h * h / 2.0);
     }},
    {"pairwise", {all_to_all}, Net::ring, many,  // step k: min(k, P-k) flows on every link
     [](int P, double E) {
       double total = 0;
       for (int k = 1; k < P; ++k) {
         const int d = std::min(k, P - k);
         total += alpha(d) + d * seconds(2 * k == P && P > 2 ? E / 2 : E);
       }
       return total;
     },
     false},
    {"line", {broadcast, reduce}, Net::line, many, [](int P, double V) { return (P - 2 + 16) * (alpha(1) + seconds(V / 16)); }},
    {"line", {broadcast, reduce}, Net::line, {5, 8, 16}, [](int P, double V) { return (std::max(4, P - 1 - 4) - 1 + 16) * (alpha(1) + seconds(V / 16)); }, true, {4, {}}},
    {"ring-one-way", {broadcast, reduce}, Net::ring, many, [](int P, double V) { return (P - 2 + 16) * (alpha(1) + seconds(V / 16)); }, true, {1, {}}},
    {"ring", {broadcast, reduce}, Net::ring, many, [](int P, double V) { return (P - 2 + 16) * (alpha(1) + seconds(V / 16)); }},
    {"direct", {permute}, Net::ring, many, [](int, double V) { return alpha(1) + seconds(V); }},
    {"direct", {permute}, Net::ring, {7, 8, 16}, [](int, double V) { return alpha(3) + 3 * seconds(V); }, false, {0, shift_pairs(7 * 8 * 2, 3)}},
    {"direct", {permute}, Net::ring, {4, 7}, [](int, double V) { return alpha(1) + seconds(V); }, true, {0, {{0, 1}, {1, 0}, {2, 3}, {3, 2}}}},
};

TEST(Collectives, EveryEngineMeetsTheClosedForms) {
  for (const Form& form : forms)
    for (const CollectiveKind kind : form.kinds)
      for (const int P : form.devices)
        for (const EngineEntry& engine : all_timing_engines()) {
          SCOPED_TRACE(form.algorithm + " " + std::string{name_of(kind)} + " P=" + std::to_string(P) + " " + std::string{engine.name});
          if (!form.exact_without_sharing && engine.name == "analytic") continue;
          Form own = form;
          if (own.details.pairs.size() > 100) own.details.pairs = shift_pairs(P, 3);
          const double expected = form.seconds(P, MiB);
          EXPECT_NEAR(time_on(form.net, own, kind, P, engine.name), expected, 1e-12 * 64 * P + 1e-9 * expected);  // 1 ps per event
        }
}

TEST(Collectives, OnAnOpenAxisTheMiddleLinksOfAnAllToAllBoundIt) {
  for (const int P : {2, 3, 4, 7, 8, 16}) {
    const Form form{"line", {all_to_all}, Net::line, {}, {}};
    double latencies = 0;
    for (int k = 1; k < P; ++k) latencies += alpha(k);
    const double middle = seconds(MiB * (P * P / 4)), found = time_on(Net::line, form, all_to_all, P, "simgrid");
    EXPECT_GE(found, middle);
    EXPECT_LE(found, (latencies + middle) * (1 + 1e-6)) << P;
  }
}

TEST(Collectives, PhasesTakeTheSumOfTheirAxes) {
  const int p = 4, q = 3;
  const Pod pod = make_pod(machine(), {p, q});
  const auto step = [](int devices, double V) { return (devices - 1) * (alpha(1) + seconds(V / 2)); };
  const auto chain = [](int devices, double V) { return (devices - 2 + 8) * (alpha(1) + seconds(V / 8)); };
  const double gather = step(q, MiB) + step(p, q * MiB);
  const Bytes shard{1 << 20}, all{p * q << 20};
  for (const EngineEntry& engine : all_timing_engines())
    for (const auto& [kind, bytes, expected] : {std::tuple{all_gather, shard, gather}, {reduce_scatter, all, gather}, {all_reduce, all, 2 * gather},
                                                {broadcast, shard, chain(p, MiB) + chain(q, MiB)}, {reduce, shard, chain(p, MiB) + chain(q, MiB)}}) {
      const double found = testing::seconds_of(pod, testing::lowered_collective(pod, kind, {"row", "col"}, bytes, "ring"), engine.name);
      EXPECT_NEAR(found, expected, 50e-12) << name_of(kind) << " " << engine.name;
    }
}

TEST(Collectives, HalvesKeepTwoAxesBusyAndTakeHalfOfThePhasesBytes) {
  const int p = 4;
  const Pod pod = make_pod(machine(), {p, p});
  const double gather = (p - 1) * (alpha(1) + seconds(MiB / 4)) + (p - 1) * (alpha(1) + seconds(p * MiB / 4));
  for (const EngineEntry& engine : all_timing_engines())
    for (const auto& [kind, bytes, expected] : {std::tuple{all_gather, 1 << 20, gather}, {reduce_scatter, p * p << 20, gather}, {all_reduce, p * p << 20, 2 * gather}}) {
      const double found = testing::seconds_of(pod, testing::lowered_collective(pod, kind, {"row", "col"}, Bytes{bytes}, "halves"), engine.name);
      EXPECT_NEAR(found, expected, 50e-12) << name_of(kind) << " " << engine.name;
    }
}

TEST(Collectives, ThreeAxesGatherInPhasesOnEveryKindOfAxis) {
  const Pod pod = make_pod(machine(), {2, 3, 4}, false);  // 2 counts as wrapped
  const double expected = 3 * (alpha(1) + seconds(MiB)) + 2 * (alpha(1) + seconds(4 * MiB)) + alpha(1) + seconds(12 * MiB);
  const auto schedule = lower(*collective_schedule(pod.mesh, all_gather, testing::axes_of(pod.mesh, {"row", "col", "depth"}), Bytes{1 << 20}, DType::f32), ring_or_line());
  ASSERT_TRUE(schedule);
  for (const EngineEntry& engine : all_timing_engines()) EXPECT_NEAR(testing::seconds_of(pod, *schedule, engine.name), expected, 50e-12) << engine.name;
}

TEST(Collectives, MoreChunksThanElementsAreAsManyAsThereAreElements) {
  const Pod pod = make_pod(machine(), {4});
  const auto schedule = testing::lowered_collective(pod, broadcast, {"row"}, Bytes{12}, "ring", {}, [](int, Bytes) { return 64; });
  EXPECT_NEAR(testing::seconds_of(pod, schedule, "simgrid"), (4 - 2 + 3) * (alpha(1) + seconds(4)), 1e-11);
}

}  // namespace
}  // namespace podsim
