// Every GEMM algorithm: des agrees with simgrid, and folded is unfolded.
#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/gemm/gemm.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "topologies/machines.hpp"

namespace podsim {
namespace {

using testing::small_system;
using testing::SmallSystem;
using testing::World;
using testing::world_of;

struct GemmTimingCase {
  std::string name;
  SmallSystem pod;
  Schedule schedule;
};

/// Meshes of R x C (or rings of as many), wrapped and open, and rows folded over two dimensions.
std::vector<SmallSystem> pods_for(const GemmAlgorithmEntry& entry, const Machine& machine) {
  std::vector<std::pair<int, int>> shapes{{1, 4}, {4, 1}, {2, 2}, {3, 5}, {4, 4}};
  if (entry.name == "cannon") shapes = {{1, 1}, {2, 2}, {3, 3}, {4, 4}};
  std::vector<SmallSystem> pods;
  for (const auto& [R, C] : shapes)
    for (const bool wraps : {true, false}) {
      if (entry.mesh == MeshUse::row_col)
        pods.push_back(small_system(machine, {R, C}, wraps));
      else
        pods.push_back(small_system(machine, {R, C}, wraps, {{"ring", R * C}}));
    }
  if (entry.mesh == MeshUse::row_col) {
    for (const bool wraps : {true, false}) pods.push_back(small_system(machine, {2, 2, 4}, wraps, {{"row", 4}, {"col", 4}}));
    if (entry.name != "cannon") pods.push_back(small_system(machine, {2, 4, 4}, true, {{"row", 8}, {"col", 4}}));
  }
  return pods;
}

std::vector<GemmTimingCase> cases_of(const GemmAlgorithmEntry& entry) {
  std::vector<GemmTimingCase> cases;
  const Machine tpu = *find_machine("tpu_v4");
  int count = 0;
  for (const Machine& machine : {testing::overhead_machine(), tpu})
    for (const SmallSystem& pod : pods_for(entry, machine))
      for (const Dataflow dataflow : {Dataflow::os, Dataflow::ls, Dataflow::rs}) {
        if (entry.only && dataflow != *entry.only) continue;
        GemmOptions options;
        if (entry.needs_slice_count) options.slice_count = 1 + count % 3;
        options.block = 2;
        options.prefetch = count % 2;
        options.slice_copies = machine.slice_copies;
        const auto multiples = required_multiples(entry, pod.mesh, dataflow, options);
        EXPECT_TRUE(multiples) << entry.name << ": " << to_text(multiples.error());
        if (!multiples) continue;
        const int factor = 1 + count++ % 2;
        const GemmProblem problem{multiples->m * factor, multiples->n * 2, multiples->k, DType::bf16, dataflow};
        const auto schedule = make_gemm(entry, pod.mesh, problem, options);
        EXPECT_TRUE(schedule) << to_text(schedule.error());
        if (!schedule) continue;
        const auto lowered = lower(*schedule, ring_or_line(in_chunks(2)));
        EXPECT_TRUE(lowered) << to_text(lowered.error());
        if (!lowered) continue;
        cases.push_back({std::string{entry.name} + " " + std::string{name_of(dataflow)} + " on " + to_text(pod.mesh) + ", " + machine.name + " " +
                             std::to_string(pod.grid.dimensions().front().wraps),
                         pod, *lowered});
      }
  return cases;
}

class GemmTiming : public ::testing::TestWithParam<std::string> {};
std::vector<std::string> gemm_names() {
  std::vector<std::string> result;
  for (const GemmAlgorithmEntry& entry : gemm_algorithms()) result.emplace_back(entry.name);
  return result;
}
INSTANTIATE_TEST_SUITE_P(Algorithms, GemmTiming, ::testing::ValuesIn(gemm_names()), [](const auto& algorithm) {
  std::string name = algorithm.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(GemmTiming, DesAgreesWithSimgrid) {
  testing::Agreement seen;
  for (const GemmTimingCase& c : cases_of(**gemm_algorithm(GetParam()))) {
    const auto model = testing::model_of(c.pod, c.schedule);
    ASSERT_TRUE(model) << c.name << ": " << to_text(model.error());
    ASSERT_TRUE(testing::engines_agree(*model, 1e-6, seen)) << c.name;
  }
  RecordProperty("worst", std::to_string(seen.worst));
  EXPECT_GE(seen.compared, 8);
}

TEST_P(GemmTiming, FoldedIsUnfolded) {
  testing::Folds seen;
  const bool unguarded = GetParam() != "cannon" && GetParam() != "summa";
  for (const GemmTimingCase& c : cases_of(**gemm_algorithm(GetParam()))) {
    const int into_one = seen.into_one;
    ASSERT_TRUE(testing::folding_changes_nothing(c.schedule, world_of(c.pod), seen)) << c.name;
    const auto& dimensions = c.pod.grid.dimensions();
    const bool torus = std::all_of(dimensions.begin(), dimensions.end(), [](const GridDimension& d) { return d.wraps || d.extent <= 2; });
    if (torus && unguarded && dimensions.size() == c.pod.mesh.axes().size() && c.pod.mesh.devices() > 1) {
      EXPECT_EQ(seen.into_one, into_one + 1) << c.name;
    }
    // Around a cable that is cut.
    Damage damage;
    testing::cut(damage, c.pod.grid, ChipId{0}, static_cast<int>(dimensions.size()) - 1, 1);
    ASSERT_TRUE(testing::folding_changes_nothing(c.schedule, {c.pod.machine, testing::damaged(c.pod.grid, damage), c.pod.placement}, seen)) << c.name << ", broken";
  }
  EXPECT_GE(seen.compared, 16);
  if (unguarded) {
    EXPECT_GE(seen.into_one, 6);
    EXPECT_GE(seen.partly, 6);
  }
}

}  // namespace
}  // namespace podsim
