// What validate() says of machines that are known, and of the datasets that come with podsim.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <map>
#include <set>

#include "sim/base/statistics.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/base/test_files.hpp"
#include "sim/base/text.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"
#include "workloads/scenario/trust.hpp"
#include "validation/validate/validate.hpp"

namespace podsim {
namespace {

using testing::observed;
using testing::pod_with;
using testing::product;
using testing::some_machine;

/// Rows of a machine, on lines of a file of their own.
std::vector<Observation> rows_on(const System& system, std::vector<Observation> rows, const PredictOptions& options = {}) {
  rows = testing::times_on(system, std::move(rows), 0, 0, options);
  int line = 1;
  for (Observation& row : rows) {
    row.where = {"rows.csv", ++line, 1};
    if (row.op != ObservedOp::matmul && row.op != ObservedOp::hbm_copy) row.schedule = ObservedSchedule::plain;
  }
  return rows;
}

Study study_of(const std::string& text) {
  const auto study = read_study("format_version: 1\nmachine: \"ideal\"\npod { slice: \"8\" }\n" + text, "study");
  if (!study) throw std::runtime_error(to_text(study.error()));
  return *study;
}

DatasetValidation validated(const Dataset& dataset) {
  auto found = validate({dataset});
  if (!found) throw std::runtime_error(to_text(found.error()));
  return found->front();
}

std::vector<Observation> gathers_and_reductions() {
  std::vector<Observation> rows;
  for (const ObservedOp op : {ObservedOp::all_gather, ObservedOp::reduce_scatter, ObservedOp::all_reduce})
    for (std::int64_t bytes = 4096; bytes <= (64 << 20); bytes *= 4) rows.push_back(observed(op, "", 8, bytes));
  return rows;
}

/// Its base differs from the machine that the rows are from in what is to be fitted.
Dataset known_dataset(const std::string& cases) {
  const Machine machine = some_machine();
  Dataset dataset{"known", rows_on(pod_with(machine, "8"), gathers_and_reductions()), study_of(cases), machine};
  testing::set(dataset.machine, {{"link.bandwidth", "20 GB/s"}, {"software.launch", "50 us"}});
  return dataset;
}

TEST(Validate, FindsAKnownMachineAgainOnEveryRung) {
  const DatasetValidation found = validated(known_dataset(R"(
case { name: "sizes" rung: other_sizes parts: 2 bound { median: 1e-6 p95: 1e-6 } }
case { name: "operation" rung: other_operation fit { op: "all-gather" op: "reduce-scatter" } predict { op: "all-reduce" }
       bound { median: 1e-6 p95: 1e-6 } }
case { name: "scale" rung: other_scale fit { op: "all-gather" } predict { op: "reduce-scatter" } bound { median: 1e-6 p95: 1e-6 } }
)"));
  ASSERT_EQ(found.cases.size(), 3U);
  for (const ValidatedCase& c : found.cases) EXPECT_TRUE(c.ok) << c.name << " " << c.errors.median << " " << c.errors.p95;
  EXPECT_TRUE(found.ok());
  EXPECT_EQ(found.cases[0].errors.rows, 24U) << "every row is predicted once: by the part that it is not in";
  EXPECT_EQ(found.cases[0].fitted, 12U);
  EXPECT_EQ(found.cases[1].errors.rows, 8U);
  EXPECT_EQ(found.cases[1].fitted, 16U);
  EXPECT_EQ(counted_errors(found).size(), 24U + 8 + 8);
  EXPECT_EQ(counted_errors(found, Tier::other_scale).size(), 8U);
}

TEST(Validate, WithOneTurnOnlyTheFirstPartIsFitted) {
  const DatasetValidation found = validated(known_dataset("case { name: \"c\" rung: other_sizes parts: 3 turns: 1 bound { median: 1 p95: 1 } }"));
  EXPECT_EQ(found.cases[0].fitted, 9U) << "of each operation rows 1, 4 and 7 of 8";
  EXPECT_EQ(found.cases[0].rows.size(), 15U);
  for (const ValidatedRow& row : found.cases[0].rows) EXPECT_NE((row.observation.where.line - 2) % 8 % 3, 0) << row.observation.where.line;
}

TEST(Validate, AnErrorIsSignedAndABoundIsABound) {
  Dataset dataset = known_dataset(
      "case { name: \"c\" rung: other_operation fit { op: \"all-gather\" } predict { op: \"all-reduce\" } "
      "bound { median: 0.1 p95: 0.1 } }");
  for (Observation& row : dataset.observations)
    if (row.op == ObservedOp::all_reduce) row.time = 2 * row.time;
  const DatasetValidation found = validated(dataset);
  EXPECT_FALSE(found.ok());
  for (const ValidatedRow& row : found.cases[0].rows) EXPECT_NEAR(row.error, -0.5, 1e-4);
  EXPECT_NEAR(found.cases[0].errors.median, 0.5, 1e-4);
}

TEST(Validate, WhatIsNotKnownIsPredictedUnderEachHypothesisAndNotCounted) {
  Dataset dataset = known_dataset(R"(
hypothesis { name: "both ways" }
hypothesis { name: "one way" choice { collective: "all-gather" algorithm: "ring-one-way" } }
case { name: "c" rung: other_sizes predict { op: "all-gather" } parts: 2 hold: "link.bandwidth" bound { median: 1e-6 p95: 1 } }
)");
  testing::set(dataset.machine, {{"link.bandwidth", "50 GB/s"}});
  for (Observation& row : dataset.observations) row.schedule = ObservedSchedule::unknown;
  const DatasetValidation found = validated(dataset);
  ASSERT_EQ(found.cases.size(), 2U);
  EXPECT_EQ(found.cases[0].hypothesis, "both ways");
  EXPECT_EQ(found.cases[1].hypothesis, "one way");
  EXPECT_TRUE(found.cases[0].ok);
  EXPECT_FALSE(found.cases[0].counted || found.cases[1].counted);
  EXPECT_TRUE(counted_errors(found).empty());
  EXPECT_NEAR(found.cases[1].rows[7].error, 1, 0.1) << "twice as long over a link that is known";
}

TEST(Validate, FitsOnOnePodAndPredictsOnAnother) {
  const Machine machine = some_machine();
  std::vector<Observation> rows;
  for (const auto& [slice, devices] : {std::pair{"4", 4}, {"16", 16}}) {
    std::vector<Observation> some;
    for (std::int64_t bytes = 4096; bytes <= (16 << 20); bytes *= 8) some.push_back(observed(ObservedOp::all_gather, "", devices, bytes));
    const std::vector<Observation> timed = rows_on(pod_with(machine, slice), some);
    rows.insert(rows.end(), timed.begin(), timed.end());
  }
  int line = 1;
  for (Observation& row : rows) row.where.line = ++line;
  Dataset dataset{"scale", rows, study_of(R"(
case { name: "c" rung: other_scale fit { devices: 4 } fit_system { slice: "4" } predict { devices: 16 system { slice: "16" } } bound { median: 1e-6 p95: 1e-6 } }
)"),
                  machine};
  testing::set(dataset.machine, {{"link.bandwidth", "20 GB/s"}});
  const DatasetValidation found = validated(dataset);
  EXPECT_TRUE(found.ok()) << found.cases[0].errors.p95;
  EXPECT_EQ(found.cases[0].errors.rows, 5U);
}

TEST(Validate, RefusesToFitWhatItPredictsAndToPredictNothing) {
  const auto problem = [](const std::string& cases) {
    const auto found = validate({known_dataset(cases)});
    return found ? "none" : to_text(found.error());
  };
  EXPECT_EQ(problem("case { name: \"c\" rung: other_sizes fit { op: \"all-gather\" } bound { median: 1 p95: 1 } }"),
            "study:4:1: case \"c\" is fitted to what it predicts: rows.csv:2");
  EXPECT_EQ(problem("case { name: \"c\" rung: other_sizes predict { op: \"matmul\" } bound { median: 1 p95: 1 } }"),
            "study:4:36: no row of the dataset is of this");
  EXPECT_NE(
      problem("case { name: \"c\" rung: other_sizes fit { dataset: \"a100_gem\" } bound { median: 1 p95: 1 } }").find("did you mean \"a100_gemm\""),
      std::string::npos);
  EXPECT_NE(problem("case { name: \"c\" rung: other_sizes predict { system { slice: \"8y\" } } bound { median: 1 p95: 1 } }").find("study:4:55: "),
            std::string::npos);
  EXPECT_NE(problem("case { name: \"c\" rung: other_sizes predict { system { slice: \"4\" } } bound { median: 1 p95: 1 } }").find("rows.csv:2"),
            std::string::npos);
}

TEST(Validate, AMachineAsItStandsPredictsEveryRow) {
  const System system = pod_with(some_machine(), "8");
  std::vector<Observation> rows = rows_on(system, gathers_and_reductions());
  auto found = validate_on(rows, system, ErrorBound{1e-9, 1e-9});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->ok);
  EXPECT_EQ(found->rows.size(), rows.size());
  for (std::size_t i = 0; i < 2; ++i) rows[i].time = 3 * rows[i].time;
  found = validate_on(rows, system, ErrorBound{1e-9, 1e-9});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->ok) << "the 95th percentile is above its bound, the median is not";
}

TEST(Validate, IsTheSameWithAnyNumberOfThreads) {
  const Dataset dataset = known_dataset("case { name: \"c\" rung: other_sizes parts: 4 bound { median: 1 p95: 1 } }");
  std::set<std::string> texts;
  for (const int threads : {1, 2, 5}) {
    ValidateControl control;
    control.threads = threads;
    const auto found = validate({dataset, dataset}, control);
    ASSERT_TRUE(found);
    std::string text;
    for (const DatasetValidation& one : *found)
      for (const ValidatedRow& row : one.cases[0].rows)
        text += fmt::format("{} {} {}\n", row.observation.where.line, row.predicted.count(), row.error);
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), 1U);
}

TEST(Validate, KindsThatAreEqualOnTheBaseStayEqualIfNotObserved) {
  const Machine machine = some_machine();
  const System system = pod_with(machine, "8");
  std::vector<Observation> gathers;
  for (std::int64_t bytes = 4096; bytes <= (16 << 20); bytes *= 8) gathers.push_back(observed(ObservedOp::all_gather, "", 8, bytes));
  gathers = testing::times_on(system, gathers);
  System base = system;
  testing::set(base.machine, {{"software.launch", "50 us"}, {"software.launch[broadcast]", "70 us"}});
  CalibrateOptions options;
  options.hold = {"software.launch[reduce]"};
  const auto found = calibrate(gathers, base, options);
  ASSERT_TRUE(found) << to_text(found.error());
  const auto launch = [&](const char* kind) { return testing::number_at(found->machine, fmt::format("software.launch[{}]", kind)); };
  EXPECT_NEAR(launch("all-gather"), 5e-6, 1e-9);
  EXPECT_EQ(launch("all-reduce"), launch("all-gather"));
  EXPECT_EQ(launch("all-to-all"), launch("all-gather"));
  EXPECT_EQ(launch("broadcast"), 70e-6) << "the base tells it apart";
  EXPECT_EQ(launch("reduce"), 50e-6) << "held";
  EXPECT_EQ(launch("matmul"), 50e-6) << "no collective";
  const Undetermined* said = testing::undetermined_of(*found, "software.launch[all-reduce]");
  ASSERT_NE(said, nullptr);
  EXPECT_EQ(said->why, "not observed: it goes with software.launch[all-gather], as on the base machine");
}

TEST(Validate, AnAllReduceThatNobodyObservedHasTheEfficiencyOfItsTwoPhases) {
  Machine machine = some_machine();
  testing::set(machine, {{"collective[all-gather].efficiency", "0.2 at 4 KiB, 1 at 16 MiB"}, {"collective[reduce-scatter].efficiency", "0.1 at 32 KiB, 0.5 at 128 MiB"}});
  const System system = pod_with(machine, "8");
  std::vector<Observation> rows;
  for (std::int64_t bytes = 4096; bytes <= (16 << 20); bytes *= 2) {
    rows.push_back(observed(ObservedOp::all_gather, "", 8, bytes));
    rows.push_back(observed(ObservedOp::reduce_scatter, "", 8, 8 * bytes));
  }
  rows = testing::times_on(system, rows);
  const auto found = calibrate(rows, pod_with(some_machine(), "8"));
  ASSERT_TRUE(found) << to_text(found.error());
  for (const std::int64_t bytes : {64 << 10, 1 << 20, 64 << 20}) {
    const auto time = [&](ObservedOp op, std::int64_t size) {
      const auto predicted = predict(observed(op, "", 8, size), system);
      return predicted ? predicted->count() : 0;
    };
    const auto reduced = predict(observed(ObservedOp::all_reduce, "", 8, bytes), pod_with(found->machine, "8"));
    ASSERT_TRUE(reduced);
    const double launch = 5e-6;  // once, not twice
    EXPECT_NEAR(reduced->count() / (time(ObservedOp::reduce_scatter, bytes) + time(ObservedOp::all_gather, bytes / 8) - launch), 1, 0.03) << bytes;
  }
}

TEST(Validate, ACurveOfMessagesOfLessThanAByteIsOneOfAByte) {
  // An all-reduce of 4 bytes on 8 devices sends half a byte at a time, one of 16 as much as an all-gather of 2.
  Machine machine = some_machine();
  testing::set(machine, {{"collective.efficiency", "0.1 at 4 B, 0.2 at 16 B, 1 at 1 MiB"}});
  const System system = pod_with(machine, "8");
  std::vector<Observation> rows;
  for (std::int64_t bytes = 4; bytes <= (1 << 20); bytes *= 4) rows.push_back(observed(ObservedOp::all_reduce, "", 8, bytes));
  CalibrateOptions options;
  options.hold = {"link.bandwidth"};
  const auto found = calibrate(testing::times_on(system, rows), system, options);
  ASSERT_TRUE(found) << to_text(found.error());
  const auto& gather = found->machine.software.efficiency.at(static_cast<std::size_t>(CostKind::all_gather));
  ASSERT_EQ(gather.size(), 3U);
  EXPECT_EQ(gather[0].input, Bytes{1});
  EXPECT_EQ(gather[1].input, Bytes{2});
  EXPECT_EQ(gather[2].input, Bytes{128 << 10});
}

/// Three digits, so that other orders of summation do not show.
std::string predictions_text(const std::vector<DatasetValidation>& validations) {
  std::string text;
  for (const DatasetValidation& validation : validations)
    for (const ValidatedCase& found : validation.cases) {
      text += fmt::format("{}: {}{}{}\n", validation.dataset, found.name, found.hypothesis.empty() ? "" : ", ", found.hypothesis);
      for (const ValidatedRow& row : found.rows) text += fmt::format("{} {:.2e}\n", row.observation.where.line, row.predicted.count());
    }
  return text;
}

/// Sanitized builds take minutes for these; others take the same paths.
bool left_out(std::string_view dataset) {
  return test::sanitized && (dataset == "tpu_v5e_training" || dataset == "tpu_v5p_training" || dataset == "megatron_a100" || dataset == "megatron_a100_2021" ||
                             dataset == "bloom_a100" || dataset == "nemo_h100" || dataset == "palm_540b" || dataset == "mpi_2_ranks" ||
                             dataset == "tpu_v5p_2x2_maxtext" || dataset == "tpu_v4_training" || dataset == "fsdp_h200" || dataset == "xla_gb200");
}

/// The predictions in a file, without those of what is left out.
std::string expected_predictions(const std::string& file) {
  std::string kept, line;
  bool keep = true;
  for (std::istringstream lines{test::bytes_of_file(file)}; std::getline(lines, line);) {
    if (const std::size_t colon = line.find(": "); colon != std::string::npos) keep = !left_out(line.substr(0, colon));
    if (keep) kept += line + "\n";
  }
  return kept;
}

TEST(Datasets, EveryOneThatComesWithPodsimIsWithinItsBounds) {
  std::vector<Dataset> datasets;
  for (const std::string& name : shipped_datasets()) {
    if (left_out(name)) continue;
    auto dataset = find_dataset(name);
    ASSERT_TRUE(dataset) << to_text(dataset.error());
    datasets.push_back(*std::move(dataset));
  }
  ASSERT_GE(datasets.size(), 13U);
  const auto found = validate(datasets);
  ASSERT_TRUE(found) << to_text(found.error());
  for (const DatasetValidation& one : *found)
    for (const ValidatedCase& c : one.cases)
      EXPECT_TRUE(c.ok) << one.dataset << ", " << c.name << ", " << c.hypothesis << ": " << c.errors.median << " " << c.errors.p95;

  // Every prediction, line by line. A change that is meant is written anew, and told in CHANGELOG.md.
  const std::string golden = std::string{PODSIM_SOURCE_DIR} + "/validation/validate/predictions.golden", now = predictions_text(*found);
  if (expected_predictions(golden) != now) {
    const std::string written = ::testing::TempDir() + "predictions.golden";
    std::ofstream(written) << now;
    ADD_FAILURE() << "predictions changed: diff " << golden << " " << written << ", and copy it if the change is meant";
  }

  if (test::sanitized) return;  // errors are of all datasets
  // What runs that go beyond a fit say of their error.
  for (const TierError& stated : tier_errors()) {
    std::vector<double> counted, any;
    for (const DatasetValidation& one : *found) {
      const std::vector<double> more = counted_errors(one, stated.tier);
      counted.insert(counted.end(), more.begin(), more.end());
      for (const ValidatedCase& c : one.cases)
        for (const ValidatedRow& row : c.rows)
          if (c.tier == stated.tier && c.fitted > 0) any.push_back(row.error);
    }
    const ErrorSummary summary = summary_of(counted.empty() ? any : counted);
    EXPECT_NEAR(stated.median, summary.median, 0.05 * summary.median) << name_of(stated.tier) << ": change rung_errors() and the table of docs/calibration.md";
    EXPECT_NEAR(stated.p95, summary.p95, 0.05 * summary.p95) << name_of(stated.tier);
  }
  // And what training steps on machines as shipped say.
  for (const StepError& stated : step_errors()) {
    const std::vector<std::string> of = split(stated.datasets, ' ');
    std::vector<double> errors;
    for (const DatasetValidation& one : *found)
      for (const ValidatedCase& c : one.cases)
        if (std::ranges::find(of, one.dataset) != of.end() && stated.fitted_elsewhere == (c.fitted == 0))
          for (const ValidatedRow& row : c.rows) errors.push_back(row.error);
    const ErrorSummary summary = summary_of(errors);
    EXPECT_EQ(errors.size(), static_cast<std::size_t>(stated.predictions)) << stated.datasets;
    EXPECT_EQ(std::ranges::count_if(errors, [](double error) { return error < 0; }), stated.too_fast) << stated.datasets;
    EXPECT_NEAR(stated.median, summary.median, 0.05 * summary.median) << stated.datasets << ": change step_errors()";
    EXPECT_NEAR(stated.p95, summary.p95, 0.05 * summary.p95) << stated.datasets;
  }
}

TEST(Datasets, FftsArePredictedFromOneSize) {
  const auto dataset = find_dataset("a100_fft3d");
  ASSERT_TRUE(dataset) << to_text(dataset.error());
  const auto found = validate(std::vector{*dataset});
  ASSERT_TRUE(found) << to_text(found.error());
  const std::vector<ValidatedCase>& cases = found->front().cases;
  ASSERT_EQ(cases.size(), 4U);
  EXPECT_EQ(cases[0].fitted, 4U);
  EXPECT_EQ(cases[0].rows.size(), 12U);
  EXPECT_LE(cases[0].errors.median, 0.10);
  for (const ValidatedRow& row : cases[0].rows) EXPECT_LE(std::abs(row.error), 0.25) << row.observation.where.line;
  EXPECT_EQ(cases[1].rows.size(), 4U);
  for (const ValidatedRow& row : cases[1].rows) EXPECT_LE(std::abs(row.error), 0.05) << row.observation.where.line;
  EXPECT_EQ(cases[2].rows.size() + cases[3].rows.size(), 24U) << "inverses";
  for (const StudyCase& one : dataset->study.cases) EXPECT_LE(one.values.size(), 3U);
}

TEST(Datasets, TheCurveOfAllToAllsIsThatOfTheMeasuredOnes) {
  const auto dataset = find_dataset("a100_fft3d");
  const auto measured = find_observations("nccl_a100_sxm");
  ASSERT_TRUE(dataset && measured);
  const Machine& machine = dataset->machine;
  std::map<Bytes, std::vector<double>> times;
  for (const Observation& o : *measured)
    if (o.op == ObservedOp::all_to_all && o.devices == 8) times[o.bytes].push_back(o.time.count());
  const auto kind = static_cast<std::size_t>(CostKind::all_to_all);
  const auto rate = [&](Bytes bytes) {
    const double own = static_cast<double>(bytes.count()) / 8;
    return 7 * own / (median(times.at(bytes)) - machine.software.launch.at(kind).count() - 2 * machine.link[1].latency.count() - own / machine.chip.own_block_bandwidth.count());
  };
  const std::vector<EfficiencyPoint>& points = machine.software.efficiency.at(kind);
  ASSERT_EQ(points.size(), 10U);
  for (const EfficiencyPoint& point : points) EXPECT_NEAR(point.efficiency, rate(point.input) / rate(points.back().input), 0.0006) << point.input.count();
}

TEST(Datasets, AFolderIsADatasetAndAnUnknownNameIsAnError) {
  const auto folder = find_dataset(PODSIM_SOURCE_DIR "/validation/datasets/a100_gemm");
  ASSERT_TRUE(folder) << to_text(folder.error());
  EXPECT_EQ(folder->name, "a100_gemm");
  EXPECT_EQ(folder->observations.size(), find_dataset("a100_gemm")->observations.size());
  EXPECT_NE(to_text(find_dataset("a100_gem").error()).find("did you mean \"a100_gemm\""), std::string::npos);
  EXPECT_EQ(to_text(find_dataset("/nowhere").error()),
            "/nowhere/observations.csv: cannot read the file: No such file or directory");
}

TEST(NoiseFloor, IsTheMedianOfEachOperationInEachSizeClass) {
  const auto row = [](ObservedOp op, std::int64_t bytes, double seconds) {
    Observation o = observed(op, "", 8, bytes);
    o.time = Seconds{seconds};
    return o;
  };
  const std::vector<Observation> one{row(ObservedOp::all_reduce, 4096, 1), row(ObservedOp::all_reduce, 8192, 1), row(ObservedOp::all_gather, 1 << 17, 4),
                                     row(ObservedOp::reduce_scatter, 1 << 27, 1), row(ObservedOp::all_reduce, 1 << 27, 2)};
  const std::vector<Observation> two{row(ObservedOp::all_reduce, 4096, 3), row(ObservedOp::all_reduce, 8192, 1.5), row(ObservedOp::all_gather, 1 << 17, 2),
                                     row(ObservedOp::reduce_scatter, 1 << 27, 1.1), row(ObservedOp::all_reduce, 1 << 27, 2.8), row(ObservedOp::all_reduce, 1, 9)};
  const NoiseFloor floor = noise_floor(one, "two", two);
  EXPECT_EQ(floor.by_size[0].rows, 2U);
  EXPECT_NEAR(floor.by_size[0].most, (2 + 0.5) / 2, 1e-12) << "the median of 200 and 50 %";
  EXPECT_EQ(floor.by_size[1].rows, 1U) << "an all-gather of 128 KiB on 8 has 1 MiB";
  EXPECT_NEAR(floor.by_size[1].least, 1, 1e-12) << "larger over smaller";
  EXPECT_NEAR(floor.by_size[2].least, 0.1, 1e-12);
  EXPECT_NEAR(floor.by_size[2].most, 0.4, 1e-12);
}

TEST(Pools, HaveTheRowsOfAllTheirCasesAndSayWhatTheyMiss) {
  const DatasetValidation found = validated(known_dataset(R"(
case { name: "right" rung: other_sizes parts: 2 no_bound: "test" pool { name: "both" bar { median: 1 p95: 2 } } pool { name: "one" bar { median: 0.01 p95: 0.01 } } }
case { name: "unfitted" rung: other_sizes no_bound: "test" pool { name: "both" } pool { name: "wrong" bar_large: 0.01 } })"));
  const std::vector<DatasetValidation> all{found};
  const auto pools = pooled(all);
  ASSERT_EQ(pools.size(), 3U);
  EXPECT_EQ(pools[0].pool.name, "both");
  EXPECT_EQ(pools[0].cases, 2U);
  EXPECT_EQ(pools[0].rows.size(), found.cases[0].rows.size() + found.cases[1].rows.size());
  EXPECT_FALSE(pools[1].misses_bar());
  EXPECT_TRUE(pools[2].misses_bar()) << "links of 20 instead of 50 GB/s";
  EXPECT_TRUE(found.ok()) << "a missed bar is no failure";
}

}  // namespace
}  // namespace podsim
