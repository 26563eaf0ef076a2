// GEMMs on pods that are not perfect: the max-plus pass gives the picoseconds of events.
#include <gtest/gtest.h>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/engine/des/des_engine.hpp"
#include "sim/engine/max_plus/max_plus.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "topologies/machines.hpp"

namespace podsim {
namespace {

using testing::small_system;
using testing::SmallSystem;

constexpr MeetingLimits any_meetings{0, 1, 1, 1e9, 64};

struct Imperfect {
  int cables = 0, stragglers = 0;
  bool memory_shared = true;
};

/// A product on a damaged pod, both ways. How the pass computed it; empty: it gave up.
std::string pass_of(const std::string& algorithm, const std::vector<int>& extents, const std::vector<std::pair<std::string, int>>& axes, std::int64_t slices,
                    const Imperfect& imperfect, Rng& rng) {
  Machine machine = *find_machine("tpu_v4");
  machine.chip.memory_shared = imperfect.memory_shared;
  machine.slices.any_shape = true;
  SmallSystem pod = small_system(machine, extents, true, axes);
  Damage damage;
  for (int c = 0; c < imperfect.cables; ++c)
    testing::cut(damage, pod.grid, ChipId{rng.between(0, pod.grid.chips() - 1)}, rng.between(0, static_cast<int>(extents.size()) - 1), 1);
  if (imperfect.stragglers > 0) pod.placement.speed.assign(pod.placement.chip_of.size(), 1);
  for (int s = 0; s < imperfect.stragglers; ++s) pod.placement.speed[rng.below(pod.placement.speed.size())] = 0.8;
  const GemmAlgorithmEntry& entry = **gemm_algorithm(algorithm);
  GemmOptions options;
  options.slice_count = slices;
  const auto multiples = required_multiples(entry, pod.mesh, Dataflow::os, options);
  EXPECT_TRUE(multiples) << to_text(multiples.error());
  const auto rounded = [](std::int64_t extent, std::int64_t multiple) { return (extent + multiple - 1) / multiple * multiple; };
  const GemmProblem problem{rounded(8192, multiples->m), rounded(4096, multiples->n), rounded(8192, multiples->k), DType::bf16, Dataflow::os};
  const auto schedule = make_gemm(entry, pod.mesh, problem, options);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  const auto lowered = lower(*schedule, ring_or_line(in_chunks(3)));
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  const auto topology = testing::damaged(pod.grid, damage);
  const auto model = make_model(*lowered, pod.machine, *topology, pod.placement);
  EXPECT_TRUE(model) << to_text(model.error());
  const auto events = run_events(*model, {});
  EXPECT_TRUE(events) << to_text(events.error());
  const auto passed = run_max_plus(*model, {}, any_meetings);
  if (!passed) return "";
  EXPECT_EQ(passed->makespan, events->makespan);
  EXPECT_EQ(testing::times_of(*passed), testing::times_of(*events));
  return std::string{passed->pass};
}

TEST(GemmPass, TakesDetoursAroundFailedCables) {
  Rng rng{1, stream_of("detours")};
  int mixed = 0;
  for (const auto& [extents, axes] : std::vector<std::pair<std::vector<int>, std::vector<std::pair<std::string, int>>>>{
           {{8, 8}, {{"row", 8}, {"col", 8}}}, {{8, 4, 2}, {{"row", 8}, {"col", 8}}}})
    for (const char* algorithm : {"meshslice", "collective", "wang"})
      for (const bool shared : {true, false})
        for (int cables = 1; cables <= 2; ++cables) {
          SCOPED_TRACE(std::string{algorithm} + " on " + std::to_string(extents.size()) + " dimensions, cables cut: " + std::to_string(cables));
          const std::string pass = pass_of(algorithm, extents, axes, algorithm == std::string{"meshslice"} ? 4 : 0, {cables, cables - 1, shared}, rng);
          if (::testing::Test::HasFailure()) return;
          mixed += pass == "mixed";
        }
  EXPECT_GE(mixed, 16);
}

TEST(GemmPass, TakesBroadcastsThatDevicesPassOn) {
  Rng rng{2, stream_of("detours")};
  for (const bool shared : {true, false}) {
    EXPECT_EQ(pass_of("summa", {4, 4}, {{"row", 4}, {"col", 4}}, 4, {0, 0, shared}, rng), "max-plus");
    EXPECT_EQ(pass_of("summa", {3, 5}, {{"row", 3}, {"col", 5}}, 15, {0, 2, shared}, rng), "max-plus");
    EXPECT_EQ(pass_of("summa", {8, 8}, {{"row", 8}, {"col", 8}}, 8, {1, 0, shared}, rng), "mixed");
  }
}

}  // namespace
}  // namespace podsim
