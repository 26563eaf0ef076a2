#include "validation/validate/explain_rows.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "topologies/machines.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"

namespace podsim {
namespace {

using testing::observed;
using testing::pod_with;

ExplainedRow explained(Observation o, const System& system, double seconds) {
  o.time = Seconds{seconds};
  const auto rows = explain_rows({o}, system);
  if (!rows) throw std::runtime_error(to_text(rows.error()));
  return rows->front();
}

double time_on(const Machine& machine, const std::string& slice, const Observation& o, const PredictOptions& options = {}) {
  return predict(o, pod_with(machine, slice), options)->count();
}

TEST(ExplainRows, OneOfEightInterfacesWorked) {
  const Machine machine = *find_machine("dgx_h100");
  Machine broken = machine;
  broken.link[0].bandwidth = BytesPerSecond{machine.link[0].bandwidth.count() / 8};
  const Observation o = observed(ObservedOp::all_reduce, "", 16, 1 << 30);
  const ExplainedRow row = explained(o, pod_with(machine, "2x8"), time_on(broken, "2x8", o));
  EXPECT_EQ(row.sentence, "as if one of eight interfaces worked");
  EXPECT_EQ(row.expected.count(), time_on(machine, "2x8", o));
}

TEST(ExplainRows, NamesTheBoundAndTheAlgorithmThatGivesTheMeasuredTime) {
  const Machine machine = *find_machine("dgx_h100");
  const System node = pod_with(machine, "1x8");
  const Observation small = observed(ObservedOp::all_reduce, "", 8, 4096), large = observed(ObservedOp::all_reduce, "", 8, 1 << 30);
  PredictOptions direct;
  direct.algorithm.fill("direct");
  const ExplainedRow other = explained(small, node, time_on(machine, "1x8", small, direct));
  EXPECT_EQ(other.nearest, "direct");
  EXPECT_EQ(other.sentence, "as `direct` would take");
  EXPECT_TRUE(std::is_sorted(other.algorithms.begin(), other.algorithms.end(), [](const auto& a, const auto& b) { return a.second < b.second; }));
  EXPECT_GE(other.algorithms.size(), 3U);
  const ExplainedRow same = explained(large, node, 1.02 * time_on(machine, "1x8", large));
  EXPECT_EQ(same.sentence, "as expected");
  EXPECT_TRUE(same.bound.starts_with("link[y].bandwidth, 9")) << same.bound;
  EXPECT_TRUE(explained(observed(ObservedOp::all_gather, "", 8, 64), node, 1).bound.starts_with("software.launch, ")) << "6.6 of 10.8 us";
}

/// The axes of a row on several nodes are in the order of calibrate's phases, GPUs of a node first; levels are in the other one.
TEST(ExplainRows, AlgorithmsOfSeveralLevelsAreTriedInBothOrders) {
  const System system = pod_with(*find_machine("dgx_h100"), "2x8");
  const Observation o = observed(ObservedOp::all_reduce, "", 16, 1 << 30);
  PredictOptions levels;
  levels.algorithm.fill("hierarchical over row,col");
  const auto measured = predict(o, system, levels);
  ASSERT_TRUE(measured) << to_text(measured.error());
  const ExplainedRow row = explained(o, system, measured->count());
  EXPECT_LT(measured->count(), 0.7 * row.expected.count());
  EXPECT_EQ(row.sentence, "as `hierarchical over row,col` would take");
  std::set<std::string> names;
  for (const auto& [name, time] : row.algorithms) names.insert(name.substr(0, name.find(' ')));
  EXPECT_EQ(names.size(), row.algorithms.size()) << "of both orders the faster one";
  EXPECT_TRUE(names.contains("hierarchical-in-switch"));
  levels.algorithm.fill("hierarchical over rails");
  EXPECT_FALSE(predict(observed(ObservedOp::all_reduce, "", 8, 1 << 30), pod_with(*find_machine("dgx_h100"), "1x8"), levels)) << "one level";
}

TEST(ExplainRows, AFactorThatNoAlgorithmGivesIsToldOfTheLargestCost) {
  const Machine machine = *find_machine("dgx_h100");
  const Observation o = observed(ObservedOp::all_gather, "", 8, 128 << 20);
  EXPECT_EQ(explained(o, pod_with(machine, "1x8"), 0.5 * time_on(machine, "1x8", o)).sentence.substr(0, 27), "as if link[y].bandwidth wer");
}

}  // namespace
}  // namespace podsim
