#include "workloads/scenario/crossover.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/machine/machine_fields.hpp"
#include "sim/engine/table/engines.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

ComparedSystem square() {
  ComparedSystem on{testing::system_with({{"machine", "ideal"}, {"slice", "4x4"}}), "here", {}, {}};
  for (const std::string_view name : {"collective", "wang"}) {
    GemmSpec spec;
    spec.algorithm = *gemm_algorithm(name);
    spec.problem = {262144, 16384, 8192, DType::bf16, Dataflow::os};
    on.variants.push_back({std::string{name}, std::move(spec)});
  }
  return on;
}

RunOptions analytic() {
  RunOptions options;
  options.engine = *timing_engine("analytic");
  return options;
}

CrossoverRange range(const std::string& text) { return *parse_crossover(text, of_field("crossover")); }

/// Time of one variant with a machine value, asked for directly.
double seconds(const std::string& path, const std::string& value, std::size_t variant) {
  const ComparedSystem on = square();
  Machine machine = on.system.machine;
  EXPECT_TRUE(set_machine_value(machine, path, value, "test", {}));
  const auto system = with_machine(on.system, machine);
  EXPECT_TRUE(system) << to_text(system.error());
  return simulate(*system, *make_problem(*system, on.variants[variant].problem), analytic())->row.result.makespan_s;
}

TEST(Crossover, LiesWhereTheTimesOfTheTwoAlgorithmsCross) {
  // Every hop of Wang is a launch of its own: from some launch time on, gathering everything first is faster.
  const auto found = find_crossovers(square(), range("software.launch[permute]=0us..100000us"), analytic());
  ASSERT_TRUE(found) << to_text(found.error());
  ASSERT_EQ(found->intervals.size(), 2U);
  const WinningInterval &wang = found->intervals[0], &collective = found->intervals[1];
  EXPECT_EQ(wang.first.problem.algorithm, "wang");
  EXPECT_EQ(collective.first.problem.algorithm, "collective");
  EXPECT_EQ(wang.from, 0);
  EXPECT_EQ(collective.to, 100000);
  EXPECT_LT(wang.to, collective.from);
  EXPECT_LE(collective.from - wang.to, 0.02 * collective.from);
  const auto at = [](double value, std::size_t variant) { return seconds("software.launch[permute]", std::to_string(value) + "us", variant); };
  EXPECT_LT(at(wang.to, 1), at(wang.to, 0));
  EXPECT_GT(at(collective.from, 1), at(collective.from, 0));
}

TEST(Crossover, OfLinksChangesTheGridAndNotOnlyTheMachine) {
  const auto found = find_crossovers(square(), range("link.bandwidth=10GB/s..400GB/s"), analytic());
  ASSERT_TRUE(found) << to_text(found.error());
  const WinningInterval& first = found->intervals.front();
  EXPECT_NEAR(first.first.result.makespan_s, seconds("link.bandwidth", "10GB/s", 1), 1e-15);
  EXPECT_GT(first.first.result.makespan_s, found->intervals.back().last.result.makespan_s);
}

TEST(Crossover, OverAWholeNumberTakesWholeNumbers) {
  const auto found = find_crossovers(square(), range("chip.matmul_tile_m=1..3"), analytic());
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_EQ(found->intervals.front().from, 1);
  EXPECT_EQ(found->intervals.back().to, 3);
}

TEST(Crossover, SaysWhatItExpects) {
  const auto error = [](const std::string& text) { return to_text(parse_crossover(text, {"--crossover"}).error()); };
  EXPECT_EQ(error("link.bandwidth"), "--crossover: expected PATH=lo..hi, as link.bandwidth=10GB/s..400GB/s, found \"link.bandwidth\"");
  EXPECT_EQ(error("a=1GB/s..2MB/s"), "--crossover: expected one unit at both ends, found \"GB/s\" and \"MB/s\"");
  EXPECT_EQ(error("a=2us..1us"), "--crossover: expected lo below hi, found \"a=2us..1us\"");
  EXPECT_EQ(error("a=x..1us"), "--crossover: expected a number with its unit, found \"x\"");
  const auto unknown = find_crossovers(square(), range("link.bandwith=1GB/s..2GB/s"), analytic());
  ASSERT_FALSE(unknown);
  EXPECT_NE(to_text(unknown.error()).find("link.bandwidth"), std::string::npos);
}

}  // namespace
}  // namespace podsim
