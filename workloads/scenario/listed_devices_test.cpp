// Meshes on part of a slice: folded as unfolded, des as simgrid, right numbers on any subset of devices in any order; and what idle devices change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/check.hpp"
#include "tools/command/test_command.hpp"
#include "workloads/scenario/alignment.hpp"
#include "workloads/scenario/coverage.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/testing.hpp"
#include "workloads/scenario/trust.hpp"

namespace podsim {
namespace {

using test::json_of;
using ::testing::ElementsAre;
using testing::system_with;

struct SomeSlice {
  std::string machine, slice;
  int devices = 0;
  std::vector<std::pair<std::string, std::string>> more{};
};
const std::vector<SomeSlice>& some_slices() {
  static const std::vector<std::pair<std::string, std::string>> links{{"set", "link.bandwidth=45GB/s"}, {"set", "link.latency=1us"}, {"set", "chip.hbm_bandwidth=1TB/s"}};
  static const std::vector<SomeSlice> all{{"tpu_v4", "2x2x2", 8},
                                      {"tpu_v4", "4x4", 16},
                                      {"tpu_v5e", "4x4", 16},
                                      {"tpu_v3", "2x2", 8},
                                      {"tpu_v3", "2x4", 16},
                                      {"dgx_h100", "2x8", 16},
                                      {"ideal", "3x5", 15, links},
                                      {"ideal", "8", 8, links},
                                      {"ideal", "12", 12, {{"set", "link.bandwidth=45GB/s"}, {"wrap", "none"}}},
                                      {"tpu_v5p", "4x4x8", 128, {{"topology", "twisted"}}},
                                      {"tpu_v4", "2x2x1", 8, {{"pods", "2"}}},
                                      {"tpu_v4", "4x4", 16, {{"fail", "0.0-0.1"}, {"straggler", "1.1=0.5"}}}};
  return all;
}

std::string listed(const std::vector<int>& devices) {
  std::string text;
  for (const int device : devices) text += (text.empty() ? "" : ",") + std::to_string(device);
  return text;
}

/// So many devices below `all`, in some order.
std::vector<int> some_devices(int count, int all, Rng& rng) {
  std::vector<int> devices(static_cast<std::size_t>(all));
  std::iota(devices.begin(), devices.end(), 0);
  for (int i = 0; i < count; ++i) std::swap(devices[static_cast<std::size_t>(i)], devices[static_cast<std::size_t>(i) + rng.below(static_cast<std::uint64_t>(all - i))]);
  devices.resize(static_cast<std::size_t>(count));
  if (rng.below(2) == 0) std::sort(devices.begin(), devices.end());
  return devices;
}

System random_part(Rng& rng) {
  const SomeSlice& place = some_slices()[rng.below(some_slices().size())];
  const int rows = rng.between(1, 3), cols = rng.between(1, std::min(4, place.devices / rows));
  std::vector<std::pair<std::string, std::string>> given = place.more;
  given.insert(given.end(), {{"machine", place.machine}, {"slice", place.slice}, {"devices", listed(some_devices(rows * cols, place.devices, rng))},
                             {"mesh", "row=" + std::to_string(rows) + ",col=" + std::to_string(cols)}});
  return system_with(given);
}

ProblemSpec random_problem_on(const System& system, Rng& rng) {
  if (rng.below(3) == 0) {
    GemmSpec spec;
    spec.algorithm = &gemm_algorithms()[rng.below(gemm_algorithms().size())];
    spec.problem = {24, 48, 24, DType::f32, spec.algorithm->only.value_or(std::array{Dataflow::os, Dataflow::ls, Dataflow::rs}.at(rng.below(3)))};
    spec.pad = true;
    if (spec.algorithm->takes_slice_count || spec.algorithm->needs_slice_count) spec.options.slice_count = 2;
    return spec;
  }
  CollectiveSpec spec;
  using enum CollectiveKind;
  spec.kind = std::array{all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, reduce}.at(rng.below(6));
  if (rng.below(3) == 0) spec.axes = {rng.below(2) == 0 ? "row" : "col"};
  spec.dtype = DType::f32;
  spec.input = Bytes{std::int64_t{4} * system.mesh.devices() * system.mesh.devices() << rng.between(0, 10)};
  const auto algorithms = collective_algorithms();
  if (rng.below(2) == 0) spec.policy.algorithm = algorithms[rng.below(algorithms.size())].name;
  else spec.policy.algorithm = "auto";
  return spec;
}

Picoseconds played(const System& system, const Problem& problem, std::string_view engine, bool fold) {
  RunOptions options;
  options.engine = *timing_engine(engine);
  options.fold = fold;
  const auto run = simulate(system, problem, options);
  EXPECT_TRUE(run) << to_text(run.error());
  return run ? run->timeline.makespan : Picoseconds{};
}

TEST(ListedDevices, FoldedIsUnfoldedDesIsSimgridAndNumbersAreRight) {
  int compared = 0, folded = 0;
  std::set<std::string> algorithms;
  for (std::uint64_t seed = 0; compared < test::cases(250, 50); ++seed) {
    Rng rng{seed, 16};
    const System whole = random_part(rng);
    const ProblemSpec spec = random_problem_on(whole, rng);
    const auto system = system_for(spec, whole);
    ASSERT_TRUE(system) << to_text(system.error());
    const auto problem = make_problem(*system, spec);
    if (!problem) continue;
    const auto lowered = lower_problem(*system, *problem, {});
    if (!lowered) continue;  // an algorithm that does not take the mesh
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_text(*system) + " " + listed(system->devices) + " " + problem->summary.algorithm);
    RunOptions options;
    const auto run = simulate(*system, *problem, options);
    if (!run) {  // only what needs switches that add up
      EXPECT_NE(to_text(run.error()).find("a switch can add up"), std::string::npos) << to_text(run.error());
      continue;
    }
    ++compared;
    folded += run->row.result.device_classes < run->row.result.devices;
    algorithms.insert(problem->summary.algorithm);
    EXPECT_EQ(run->row.result.devices, system->mesh.devices());
    EXPECT_EQ(run->row.result.devices + run->row.changes.idle_devices, system->layout.chips());
    const Picoseconds des = played(*system, *problem, "des", false);
    EXPECT_EQ(run->timeline.makespan, des);
    const auto seconds = [](Picoseconds p) { return to_seconds(p).count(); };
    EXPECT_NEAR(seconds(des), seconds(played(*system, *problem, "simgrid", true)), 1e-6 * seconds(des) + 1e-9);
    EXPECT_LE(seconds(played(*system, *problem, "analytic", true)), seconds(des) * (1 + 1e-9) + 1e-9);
    if (run->row.problem.collective && run->row.problem.collective->bound) {
      EXPECT_LE(run->row.problem.collective->bound->count(), seconds(des) * (1 + 1e-9) + 1e-12);
    }
    const auto checked = check(lowered->lowered, {});
    ASSERT_TRUE(checked) << to_text(checked.error());
    EXPECT_TRUE(checked->ok);
  }
  EXPECT_GT(folded, test::cases(20, 2)) << "of " << compared;
  EXPECT_GT(algorithms.size(), test::cases(25U, 10U));
}

TEST(ListedDevices, AllInOrderAreTheSliceItself) {
  for (const char* mesh : {"row=2,col=4", "row=8"}) {
    const System plain = system_with({{"machine", "tpu_v5e"}, {"slice", "2x4"}, {"mesh", mesh}});
    const System all = system_with({{"machine", "tpu_v5e"}, {"slice", "2x4"}, {"mesh", mesh}, {"devices", "0,1,2,3,4,5,6,7"}});
    EXPECT_EQ(all.mesh, plain.mesh);
    EXPECT_EQ(all.placement, plain.placement);
    EXPECT_TRUE(all.devices.empty());
  }
  EXPECT_EQ(to_text(system_with({{"machine", "tpu_v5e"}, {"slice", "2x4"}, {"devices", "0,1,2,3,4,5,6,7"}}).mesh), "row=8");
}

TEST(ListedDevices, AMeshThatMakesUpASmallerSliceTakesItsTime) {
  const std::string gather = " --collective all-gather --axis row,col --bytes 1MiB --algorithm ring";
  const auto part = json_of("run --machine tpu_v4 --slice 4x4 --wrap none --devices 5,6,9,10 --mesh row=2,col=2" + gather);
  const auto own = json_of("run --machine tpu_v4 --slice 2x2 --wrap none" + gather);
  EXPECT_EQ(part["makespan_s"], own["makespan_s"]);
  EXPECT_EQ(part["devices"], 4);
  EXPECT_EQ(part["idle_devices"], 12);
  EXPECT_EQ(own["idle_devices"], 0);
}

TEST(ListedDevices, CountInMfuAndIdleOnesDoNot) {
  const std::string gemm = " --mesh row=1,col=1 --gemm m=1024,n=1024,k=1024 --algorithm collective";
  const auto core = json_of("run --machine tpu_v3 --slice 1x1 --devices 1" + gemm);
  EXPECT_EQ(core["devices"], 1);
  EXPECT_EQ(core["idle_devices"], 1);
  const auto chip = json_of("run --machine tpu_v4 --slice 1x1" + gemm), of_many = json_of("run --machine tpu_v4 --slice 4x4x4 --devices 17" + gemm);
  EXPECT_EQ(of_many["makespan_s"], chip["makespan_s"]);
  EXPECT_EQ(of_many["mfu"], chip["mfu"]);
}

TEST(ListedDevices, AStragglerOnAnIdleChipSlowsNobody) {
  const std::string run = "run --machine tpu_v5e --slice 2x4 --devices 0,2,5,7 --mesh row=2,col=2 --gemm m=2048,n=2048,k=2048 --algorithm collective";
  const double healthy = json_of(run)["makespan_s"];
  const auto idle = json_of(run + " --straggler 0.1=0.25");
  EXPECT_EQ(idle["makespan_s"].get<double>(), healthy);
  EXPECT_FALSE(idle.contains("slow_devices"));
  const auto busy = json_of(run + " --straggler 0.2=0.25");
  EXPECT_GT(busy["makespan_s"].get<double>(), 1.5 * healthy);
  EXPECT_EQ(busy["slow_devices"], 1);
  EXPECT_EQ(json_of(run + " --straggler random:50%=0.25")["slow_devices"], 2) << "of the mesh";
}

TEST(ListedDevices, ABrokenCableOfAnIdleChipCountsIfARouteCrossesIt) {
  const std::string run = "run --machine ideal --slice 8 --wrap none --set link.bandwidth=10GB/s --devices 0,2,4 --collective all-gather --bytes 1MB";
  EXPECT_EQ(json_of(run + " --fail 6-7")["makespan_s"], json_of(run)["makespan_s"]);
  const test::Outcome cut = test::podsim(run + " --fail 1-2");
  EXPECT_EQ(cut.status, exit_bad_input) << "no way around on a line";
}

TEST(ListedDevices, RingsAreOpenedOnlyOnWholeSlices) {
  std::vector<std::pair<std::string, std::string>> given{{"machine", "tpu_v3"}, {"slice", "4"}, {"mesh", "row=4,col=2"}, {"fail", "0-1"}, {"topology", "torus"}};
  EXPECT_EQ(alternatives(system_with(given)).size(), 2U);
  given.emplace_back("devices", "1,0,2,3,4,5,6,7");
  EXPECT_EQ(alternatives(system_with(given)).size(), 1U) << "the mesh says where cables are no more";
}

TEST(ListedDevices, OneAxisOverThemKeepsTheirOrder) {
  const System square = system_with({{"machine", "tpu_v5e"}, {"slice", "2x4"}, {"mesh", "row=2,col=2"}, {"devices", "0,1,5,4"}});
  const System line = system_with({{"machine", "tpu_v5e"}, {"slice", "2x4"}, {"mesh", "row=2,col=2"}, {"devices", "0,1,2,3"}});
  EXPECT_TRUE(on_axes(square, {{"ring", square.mesh.devices()}})->mesh.axes().front().wraps) << "a square of neighbours";
  EXPECT_FALSE(on_axes(line, {{"ring", line.mesh.devices()}})->mesh.axes().front().wraps);
  EXPECT_EQ(on_axes(square, {{"ring", square.mesh.devices()}})->placement, square.placement);
}

TEST(ListedDevices, LieAlongEveryDimensionThatOneOfTheirGroupsDoes) {
  // Groups along col: {0, 1} along y, {5, 9} along x.
  const System system = system_with({{"machine", "tpu_v5e"}, {"slice", "4x4"}, {"mesh", "row=2,col=2"}, {"devices", "0,1,5,9"}});
  CollectiveSpec spec;
  spec.axes = {"col"};
  spec.input = Bytes{1024};
  const auto problem = make_problem(system, spec);
  ASSERT_TRUE(problem);
  EXPECT_EQ(operations_in(problem->schedule, system).front().along, "x,y");
  EXPECT_TRUE(misalignments(system).empty());
}

TEST(ListedDevices, GoBeyondAFitToWholeSlicesIfTheyCommunicate) {
  const auto trusted = [](const std::string& devices, const std::string& mesh) {
    System system = system_with({{"machine", "tpu_v5e"}, {"slice", "2x4"}, {"mesh", mesh}, {"devices", devices}});
    system.machine.trust = {TrustLevel::fitted, "data.csv", 0.03, {{CostKind::all_gather, 2, "y", {1, 1 << 20}, {}, {}, {}}, {CostKind::matmul, 1, "", {}, {1, 99}, {1, 99}, {1, 99}}}};
    system.hypothetical = false;
    const std::vector<Coverage> run = mesh == "row=1" ? std::vector<Coverage>{{CostKind::matmul, 1, "", {}, {9, 9}, {9, 9}, {9, 9}}}
                                                      : std::vector<Coverage>{{CostKind::all_gather, 2, "y", {1024, 1024}, {}, {}, {}}};
    return trust_of(system, run).beyond;
  };
  EXPECT_THAT(trusted("0,2", "row=2"), ElementsAre("a mesh on listed devices, fitted on all of a slice"));
  EXPECT_TRUE(trusted("3", "row=1").empty());
}

}  // namespace
}  // namespace podsim
