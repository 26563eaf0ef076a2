// What hypotheses predict is diagnosed as them, and the log of an operator as half an interface.
#include "validation/diagnose/diagnose.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "sim/base/test_cases.hpp"
#include "topologies/machines.hpp"
#include "validation/calibration/fit/predict.hpp"
#include "validation/calibration/importers/import.hpp"
#include "validation/diagnose/hypotheses.hpp"
#include "workloads/scenario/collective_candidates.hpp"
#include "workloads/scenario/collective_choice.hpp"

namespace podsim {
namespace {

System nodes(const char* slice) {
  SystemSpec spec;
  spec.machine = *find_machine("dgx_h100");
  spec.slice = *parse_slice(slice, spec.machine, {});
  return *make_system(spec);
}

/// All-reduces of all devices.
std::vector<Observation> rows_of(const System& system, std::initializer_list<int> megabytes) {
  std::vector<Observation> rows;
  for (const int size : megabytes) {
    Observation row;
    row.devices = system.mesh.devices();
    row.op = ObservedOp::all_reduce;
    row.bytes = Bytes{std::int64_t{size} << 20};
    row.time = Seconds{1e-3 * size};
    rows.push_back(row);
  }
  return rows;
}

/// By the algorithm that the library chooses on the healthy system.
PredictOptions as_chosen(const Observation& row, const System& healthy) {
  PredictOptions options;
  const auto best = fastest_within(Picoseconds{std::numeric_limits<std::int64_t>::max()}, healthy, *schedule_of(row, healthy), {std::string{auto_name}}, {});
  options.algorithm.at(static_cast<std::size_t>(CollectiveKind::all_reduce)) = (*best)->name;
  return options;
}

TEST(Diagnose, WhatAHypothesisPredictsIsDiagnosedAsIt) {
  const System healthy = nodes("2x8");
  std::vector<Observation> rows = rows_of(healthy, {16, 1024});
  const auto any = diagnose(rows, healthy);
  ASSERT_TRUE(any) << to_text(any.error());
  ASSERT_GT(any->fits.size(), 8U);
  for (std::size_t f = 0; f < any->fits.size(); f += test::cases<std::size_t>(1, 32)) {
    const HypothesisFit& fit = any->fits[f];
    SCOPED_TRACE(fit.name);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].time = fit.predicted[i];
    const auto diagnosis = diagnose(rows, healthy);
    ASSERT_TRUE(diagnosis) << to_text(diagnosis.error());
    EXPECT_LT(diagnosis->fits.front().error, 0.01);
    // It may be one of several that give these times, of which the simplest comes first.
    const auto own = std::ranges::find(diagnosis->fits, fit.name, &HypothesisFit::name);
    ASSERT_NE(own, diagnosis->fits.end());
    EXPECT_LT(own->error, 0.01);
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(diagnosis->fits.front().predicted[i].count() / rows[i].time.count(), 1, 0.02);
    EXPECT_TRUE(fit.name != "healthy" || diagnosis->fits.front().name == "healthy");
  }
}

TEST(Diagnose, TheLogOfAnOperator) {
  if (test::sanitized) return;  // minutes; the next test looks for a part of a rate as this one does
  const auto log = import_file("", PODSIM_SOURCE_DIR "/validation/diagnose/testdata/all_reduce_64.txt");
  ASSERT_TRUE(log) << to_text(log.error());
  const auto diagnosis = diagnose(log->observations, nodes("8x8"));
  ASSERT_TRUE(diagnosis) << to_text(diagnosis.error());
  EXPECT_EQ(diagnosis->fits.front().name, "one network interface (0.0-rail 0) at 0.43 of its rate");
  EXPECT_EQ(diagnosis->fits.front().option, "--degrade '0.0-rail 0=0.435'");
  EXPECT_LT(diagnosis->fits.front().error, 0.05);
  const auto healthy = std::ranges::find(diagnosis->fits, "healthy", &HypothesisFit::name);
  EXPECT_GT(healthy->error, 1.0);
  ASSERT_TRUE(diagnosis->next);
  EXPECT_EQ(diagnosis->next->observation.devices, 56);
  EXPECT_EQ(diagnosis->next->left_out, "0.0 to 0.7");
  EXPECT_EQ(diagnosis->next->other, "rail 0 (8 cables) at 0.43 of its rate");
}

// Between a quarter and a half: neither of them fits.
TEST(Diagnose, APartOfTheRateThatWasNotTriedIsFound) {
  const System healthy = nodes("4x8");
  std::vector<Observation> rows = rows_of(healthy, {16, 256, 1024});
  const auto hypotheses = hypotheses_of(rows, healthy);
  ASSERT_TRUE(hypotheses) << to_text(hypotheses.error());
  const auto half = std::ranges::find(*hypotheses, "--degrade '0.0-rail 0=0.5'", &MachineHypothesis::option);
  ASSERT_NE(half, hypotheses->end());
  const auto slow = at_share(*half, healthy, 0.3);
  ASSERT_TRUE(slow) << to_text(slow.error());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].time = *predict(rows[i], slow->system, as_chosen(rows[i], healthy));
  const auto diagnosis = diagnose(rows, healthy);
  ASSERT_TRUE(diagnosis) << to_text(diagnosis.error());
  const HypothesisFit& first = diagnosis->fits.front();
  EXPECT_EQ(first.name, "one network interface (0.0-rail 0) at 0.3 of its rate");
  EXPECT_LT(first.error, 0.02);
  ASSERT_TRUE(first.share);
  EXPECT_LE(first.share->first, 0.3);
  EXPECT_GE(first.share->second, 0.3);
  EXPECT_LT(first.share->second - first.share->first, 0.05);
}

TEST(Diagnose, SaysWhatMakesNoDifferenceAndWhatIsLeftOut) {
  const System healthy = nodes("4x8");
  std::vector<Observation> rows = rows_of(healthy, {64});
  rows.push_back(rows.front());
  rows.back().devices = 8;
  const auto diagnosis = diagnose(rows, healthy);
  ASSERT_TRUE(diagnosis) << to_text(diagnosis.error());
  EXPECT_NE(std::ranges::find(diagnosis->without_effect, "the device 0.0 at half its speed"), diagnosis->without_effect.end());
  EXPECT_EQ(diagnosis->notes, std::vector<std::string>{"1 row left out: only collectives of all 32 devices are diagnosed"});
  rows.erase(rows.begin(), rows.end() - 1);
  const auto none = diagnose(rows, healthy);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "expected a row of a collective of all 32 devices of the slice, found none");
}

TEST(Diagnose, ATorusHasItsOwnHypotheses) {
  SystemSpec spec;
  spec.machine = *find_machine("tpu_v4");
  spec.slice = *parse_slice("4x4x4", spec.machine, {});
  const System healthy = *make_system(spec);
  const auto hypotheses = hypotheses_of(rows_of(healthy, {64}), healthy);
  ASSERT_TRUE(hypotheses) << to_text(hypotheses.error());
  std::vector<std::string> options;
  for (const MachineHypothesis& hypothesis : *hypotheses) options.push_back(hypothesis.option);
  for (const char* option : {"--degrade '0.0.0-1.0.0=0.5'", "--fail '0.0.0-0.1.0'", "--set 'link[z].bandwidth=22.5 GB/s'", "--straggler 0.0.0=0.5", "--algorithm rotations"})
    EXPECT_NE(std::ranges::find(options, option), options.end()) << option;
}

}  // namespace
}  // namespace podsim
