#include "workloads/scenario/crossover.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "sim/machine/machine_fields.hpp"
#include "sim/engine/table/engines.hpp"
#include "tools/command/command.hpp"

namespace podsim {
namespace {

Pod square_pod() {
  PodRequest request;
  request.machine = "ideal";
  request.slice = "4x4";
  auto made = make_pod(request);
  EXPECT_TRUE(made) << to_text(made.error());
  return *std::move(made);
}

std::vector<Variant> variants() {
  std::vector<Variant> result;
  for (const std::string_view name : {"collective", "wang"})
    result.push_back(
        gemm_variant({*gemm_algorithm(name), {262144, 16384, 8192, DType::bf16, Dataflow::os}, Pass::forward, {}, false}, std::string{name}));
  return result;
}

Manner analytic() {
  Manner manner;
  manner.engine = *timing_engine("analytic");
  return manner;
}

/// Time of one variant with a machine value, asked for directly.
double seconds(const std::string& path, const std::string& value, std::size_t variant) {
  Pod pod = square_pod();
  EXPECT_TRUE(set_machine_value(pod.machine, path, value, "test", {}));
  EXPECT_TRUE(rebuild(pod));
  const auto problem = variants()[variant].problem(pod, analytic());
  return simulate(pod, *problem, analytic())->row.result.makespan_s;
}

TEST(Crossover, LiesWhereTheTimesOfTheTwoAlgorithmsCross) {
  // Every hop of Wang is a launch of its own: from some launch time on, gathering everything first is faster.
  const auto found = find_crossovers(square_pod(), "here", variants(), analytic(), *parse_crossover("software.launch[permute]=0us..100000us"));
  ASSERT_TRUE(found) << to_text(found.error());
  ASSERT_EQ(found->reigns.size(), 2U);
  const Reign &wang = found->reigns[0], &collective = found->reigns[1];
  EXPECT_EQ(wang.first.algorithm, "wang");
  EXPECT_EQ(collective.first.algorithm, "collective");
  EXPECT_EQ(wang.from, 0);
  EXPECT_EQ(collective.to, 100000);
  EXPECT_LT(wang.to, collective.from);
  EXPECT_LE(collective.from - wang.to, 0.02 * collective.from);
  const auto at = [](double value, std::size_t variant) { return seconds("software.launch[permute]", std::to_string(value) + "us", variant); };
  EXPECT_LT(at(wang.to, 1), at(wang.to, 0));
  EXPECT_GT(at(collective.from, 1), at(collective.from, 0));
}

TEST(Crossover, OfLinksChangesTheGridAndNotOnlyTheMachine) {
  const auto found = find_crossovers(square_pod(), "here", variants(), analytic(), *parse_crossover("link.bandwidth=10GB/s..400GB/s"));
  ASSERT_TRUE(found) << to_text(found.error());
  const Reign& first = found->reigns.front();
  EXPECT_NEAR(first.first.result.makespan_s, seconds("link.bandwidth", "10GB/s", 1), 1e-15);
  EXPECT_GT(first.first.result.makespan_s, found->reigns.back().last.result.makespan_s);
}

TEST(Crossover, OverAWholeNumberTakesWholeNumbers) {
  const auto found = find_crossovers(square_pod(), "here", variants(), analytic(), *parse_crossover("chip.matmul_tile_m=1..3"));
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_EQ(found->reigns.front().from, 1);
  EXPECT_EQ(found->reigns.back().to, 3);
}

TEST(Crossover, SaysWhatItExpects) {
  const auto error = [](const std::string& text) { return to_text(parse_crossover(text).error()); };
  EXPECT_EQ(error("link.bandwidth"), "--crossover: expected PATH=lo..hi, as link.bandwidth=10GB/s..400GB/s, found \"link.bandwidth\"");
  EXPECT_EQ(error("a=1GB/s..2MB/s"), "--crossover: expected one unit at both ends, found \"GB/s\" and \"MB/s\"");
  EXPECT_EQ(error("a=2us..1us"), "--crossover: expected lo below hi, found \"a=2us..1us\"");
  EXPECT_EQ(error("a=x..1us"), "--crossover: expected a number with its unit, found \"x\"");
  const auto unknown = find_crossovers(square_pod(), "here", variants(), analytic(), *parse_crossover("link.bandwith=1GB/s..2GB/s"));
  ASSERT_FALSE(unknown);
  EXPECT_NE(to_text(unknown.error()).find("link.bandwidth"), std::string::npos);
}

}  // namespace
}  // namespace podsim
