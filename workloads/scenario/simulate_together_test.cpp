// Problems on machines with other values, simulated together, give the rows that each gives alone.
#include <gtest/gtest.h>

#include "workloads/scenario/compare.hpp"
#include "workloads/scenario/explain.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using Given = std::vector<std::pair<std::string, std::string>>;

/// A GEMM on pods whose links differ in bandwidth.
std::vector<PosedProblem> posed_on(const Given& pod, const std::vector<std::string>& bandwidths, const char* algorithm) {
  std::vector<PosedProblem> problems;
  for (const std::string& bandwidth : bandwidths) {
    Given given = pod;
    given.emplace_back("set", "link.bandwidth=" + bandwidth);
    GemmSpec spec;
    spec.algorithm = *gemm_algorithm(algorithm);
    spec.problem = {65536, 8192, 8192, DType::bf16, Dataflow::os};
    if (spec.algorithm->takes_slice_count) spec.options.slice_count = 2;
    System system = testing::system_with(given);
    Problem problem = *make_problem(system, spec);
    problems.push_back({std::move(system), std::move(problem)});
  }
  return problems;
}

/// Time that it took aside.
Result without_seconds(Result result) {
  result.wall_s = result.build_s = 0;
  return result;
}

int expect_equal_alone(const std::vector<PosedProblem>& problems, const RunOptions& options) {
  std::vector<const PosedProblem*> together;
  for (const PosedProblem& posed : problems) together.push_back(&posed);
  const auto rows = simulate_together(together, options);
  EXPECT_EQ(rows.size(), problems.size());
  int max_plus = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    const auto alone = simulate(problems[i].system, problems[i].problem, options);
    EXPECT_TRUE(rows[i]) << to_text(rows[i].error());
    EXPECT_TRUE(alone) << to_text(alone.error());
    EXPECT_EQ(without_seconds(rows[i]->result), without_seconds(alone->row.result));
    EXPECT_EQ(rows[i]->axes, alone->row.axes);
    EXPECT_EQ(rows[i]->over_hbm, alone->row.over_hbm);
    EXPECT_EQ(rows[i]->changes.slow_devices, alone->row.changes.slow_devices);
    max_plus += rows[i]->result.pass == "max-plus" && rows[i]->result.device_classes == rows[i]->result.devices ? 1 : 0;
  }
  return max_plus;
}

TEST(SimulateTogether, GivesTheRowsOfEachAlone) {
  const std::vector<std::string> bandwidths{"20GB/s", "30GB/s", "40GB/s", "45GB/s", "50GB/s", "60GB/s", "70GB/s", "80GB/s", "90GB/s"};
  RunOptions options;
  options.control.record = false;
  const Given straggler{{"machine", "tpu_v4"}, {"slice", "4x8"}, {"straggler", "1.2=0.8"}};
  for (const char* algorithm : {"meshslice", "collective", "wang"}) {
    SCOPED_TRACE(algorithm);
    EXPECT_GE(expect_equal_alone(posed_on(straggler, bandwidths, algorithm), options), 8) << "no device is like another one; few flows meet";
    expect_equal_alone(posed_on({{"machine", "tpu_v4"}, {"slice", "4x8"}}, bandwidths, algorithm), options);                        // folds
    expect_equal_alone(posed_on({{"machine", "tpu_v4"}, {"slice", "4x8"}, {"degrade", "0.0-0.1=0.3"}}, bandwidths, algorithm), options);
  }
  expect_equal_alone(posed_on({{"machine", "tpu_v4"}, {"slice", "4x8"}, {"mesh", "row=8,col=4"}}, bandwidths, "collective"), options);  // flows meet
}

TEST(SimulateTogether, SystemsOfOtherShapesShareNothing) {
  // Both have as many links; another one of them is slow.
  std::vector<PosedProblem> problems = posed_on({{"machine", "tpu_v4"}, {"slice", "4x4"}, {"straggler", "1.2=0.8"}, {"degrade", "0.0-0.1=0.3"}}, {"40GB/s"}, "collective");
  problems.push_back(posed_on({{"machine", "tpu_v4"}, {"slice", "4x4"}, {"straggler", "1.2=0.8"}, {"degrade", "0.1-0.2=0.3"}}, {"40GB/s"}, "collective").front());
  EXPECT_FALSE(differ_in_machine_only(problems[0].system, problems[1].system));
  RunOptions options;
  options.control.record = false;
  expect_equal_alone(problems, options);
}

TEST(SimulateTogether, SensitivitiesAreThoseOfRunsAlone) {
  // The sensitivity to the peak, by a run of its own on a machine with 1 % more.
  const Given given{{"machine", "tpu_v4"}, {"slice", "4x8"}, {"straggler", "1.2=0.8"}};
  const PosedProblem posed = posed_on(given, {"45GB/s"}, "meshslice").front();
  const auto run = simulate(posed.system, posed.problem);
  ASSERT_TRUE(run);
  const auto told = explain(*run, {});
  ASSERT_TRUE(told) << to_text(told.error());
  Machine faster = posed.system.machine;
  for (FlopsPerSecond& peak : faster.chip.peak) peak = 1.01 * peak;
  const auto alone = simulate(*with_machine(posed.system, faster), posed.problem);
  ASSERT_TRUE(alone);
  const auto found = std::find_if(told->sensitivities.begin(), told->sensitivities.end(), [](const Sensitivity& s) { return s.parameter == "peak FLOP/s"; });
  ASSERT_NE(found, told->sensitivities.end());
  EXPECT_LT(found->effect, 0);
  EXPECT_EQ(found->effect, alone->row.result.makespan_s / run->row.result.makespan_s - 1);
}

}  // namespace
}  // namespace podsim
