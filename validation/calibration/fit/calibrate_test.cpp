#include "validation/calibration/fit/calibrate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/machine_config.hpp"
#include "validation/calibration/fit/test_calibrate.hpp"

namespace podsim {
namespace {

using testing::a_survey;
using ::testing::HasSubstr;
using testing::number_at;
using testing::observed;
using testing::pod_with;
using testing::product;
using testing::some_machine;
using testing::times_on;
using testing::undetermined_of;
using testing::value_of;
using testing::Values;

Calibration calibrated(const std::vector<Observation>& observations, const System& base, const CalibrateOptions& options = {}) {
  auto result = calibrate(observations, base, options);
  if (!result) throw std::runtime_error(to_text(result.error()));
  return *std::move(result);
}

/// Another machine than some_machine(), in all that a survey can tell.
const Values other{{"link.bandwidth", "43 GB/s"},
                   {"link.latency", "1.7 us"},
                   {"software.launch[all-gather]", "11 us"},
                   {"software.launch[reduce-scatter]", "3 us"},
                   {"software.launch[matmul]", "2 us"},
                   {"software.launch[local]", "4 us"},
                   {"chip.matmul_efficiency", "0.7"},
                   {"chip.hbm_bandwidth", "820 GB/s"}};

std::vector<Observation> gathers(const std::vector<std::pair<std::string, int>>& axes, const std::vector<std::int64_t>& sizes) {
  std::vector<Observation> all;
  for (const auto& [axis, devices] : axes)
    for (const std::int64_t bytes : sizes) all.push_back(observed(ObservedOp::all_gather, axis, devices, bytes));
  return all;
}
const std::vector<std::int64_t> many_sizes{4096, 65536, 1 << 20, 4 << 20, 16 << 20};

TEST(Calibrate, FindsTheMachineThatTheObservationsAreFrom) {
  const Calibration c = calibrated(times_on(pod_with(some_machine(other), "4x8"), a_survey()), pod_with(some_machine(), "4x8"));
  for (const auto& [path, text] : other) {
    const CalibratedValue* value = value_of(c, path);
    if (path == "link.bandwidth") {
      const std::string rest = path.substr(4);
      for (const char* axis : {"link[x]", "link[y]"}) {
        value = value_of(c, axis + rest);
        ASSERT_NE(value, nullptr) << axis << rest << "\n" << testing::to_text(c);
        EXPECT_NEAR(value->value / number_at(some_machine(other), axis + rest), 1, 1e-3);
      }
      continue;
    }
    ASSERT_NE(value, nullptr) << path << "\n" << testing::to_text(c);
    EXPECT_NEAR(value->value / number_at(some_machine(other), path), 1, 1e-3) << path << "\n" << testing::to_text(c);
  }
  EXPECT_LT(c.p95_abs_error, 1e-4);
  EXPECT_EQ(c.residuals.size(), a_survey().size());
}

/// Products with their gathers, one after the other and overlapped, and each alone.
std::vector<Observation> pairs_that_overlap() {
  std::vector<Observation> rows = gathers({{"", 8}}, many_sizes);
  for (const std::int64_t n : {512, 4096}) {
    rows.push_back(testing::product(8192, n, 2048));
    rows.push_back(testing::product(1024, n, 2048));
    for (const ObservedSchedule schedule : {ObservedSchedule::plain, ObservedSchedule::overlapped}) {
      rows.push_back(observed(ObservedOp::all_gather, "", 8, 1024 * 2048 * 2));
      rows.back().schedule = schedule;
      rows.back().m = 8192, rows.back().n = n, rows.back().k = 2048;
    }
  }
  return rows;
}

TEST(Calibrate, FindsTheCoreShareFromPairsThatOverlap) {
  const System truth = pod_with(some_machine({{"software.core_share[permute]", "0.3"}, {"link.bandwidth", "43 GB/s"}}), "8");
  const Calibration c = calibrated(times_on(truth, pairs_that_overlap()), pod_with(some_machine(), "8"));
  const CalibratedValue* found = value_of(c, "software.core_share[permute]");
  ASSERT_NE(found, nullptr) << testing::to_text(c);
  EXPECT_NEAR(found->value, 0.3, 0.003) << testing::to_text(c);
  EXPECT_LT(c.p95_abs_error, 1e-3);
}

TEST(Calibrate, WithoutOverlapTheCoreShareIsNoUnknown) {
  std::vector<Observation> rows = pairs_that_overlap();
  std::erase_if(rows, [](const Observation& o) { return o.schedule == ObservedSchedule::overlapped; });
  const Calibration c = calibrated(times_on(pod_with(some_machine(), "8"), rows), pod_with(some_machine(), "8"));
  EXPECT_EQ(value_of(c, "software.core_share[permute]"), nullptr);
  EXPECT_EQ(undetermined_of(c, "software.core_share[permute]"), nullptr);
}

/// A memory that is short slows products beside transfers too, but only by its rate, which copies tell.
TEST(Calibrate, TellsTheCoreShareFromAMemoryThatIsShort) {
  const Values truth_values{{"software.core_share[permute]", "0.2"}, {"chip.hbm_bandwidth", "260 GB/s"}};
  const auto rows = [&](bool copies) {
    std::vector<Observation> some = pairs_that_overlap();
    if (copies)
      for (const std::int64_t bytes : {16 << 20, 64 << 20, 256 << 20}) some.push_back(observed(ObservedOp::hbm_copy, "", 1, bytes));
    return times_on(pod_with(some_machine(truth_values), "8"), some);
  };
  const Calibration c = calibrated(rows(true), pod_with(some_machine({{"chip.hbm_bandwidth", "400 GB/s"}}), "8"));
  const CalibratedValue *share = value_of(c, "software.core_share[permute]"), *memory = value_of(c, "chip.hbm_bandwidth");
  ASSERT_TRUE(share != nullptr && memory != nullptr) << testing::to_text(c);
  EXPECT_NEAR(share->value, 0.2, 0.02) << testing::to_text(c);
  EXPECT_NEAR(memory->value, 260e9, 3e9);
}

TEST(Calibrate, WithTwoPercentNoiseTheMachineLiesWithinAllIntervalsIn95Of100Trials) {
  const System truth = pod_with(some_machine(other), "4x8"), base = pod_with(some_machine(), "4x8");
  const std::vector<Observation> clean = times_on(truth, a_survey());
  int within = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng{seed, 11};
    std::vector<Observation> observations = clean;
    for (Observation& o : observations) o.time = Seconds{o.time.count() * std::exp(0.02 * testing::normal(rng))};
    const Calibration c = calibrated(observations, base);
    bool all = true;
    for (const CalibratedValue& value : c.parameters) {
      const double known = number_at(truth.machine, value.path);  // at every size, where noise looked like a curve
      all = all && value.low <= known && known <= value.high;
    }
    EXPECT_GE(c.parameters.size(), 9u) << "seed " << seed << "\n" << testing::to_text(c);
    within += all ? 1 : 0;
  }
  EXPECT_GE(within, 95);
}

TEST(Calibrate, WhatTellsNothingFitsNothing) {
  // A gather of 4 GiB in no time: every value that it depends on would have to be better than it can be.
  Observation impossible = observed(ObservedOp::all_gather, "", 2, std::int64_t{1} << 32);
  impossible.time = Seconds{17e-6};
  const Calibration c = calibrated({impossible}, pod_with(some_machine(), "1x2"));
  EXPECT_GT(c.median_abs_error, 1);
}

TEST(Calibrate, OneSizeTellsNoLaunchFromBandwidth) {
  const System truth = pod_with(some_machine(other), "8");
  const Calibration c = calibrated(times_on(truth, gathers({{"", 8}}, {1 << 20, 1 << 20, 1 << 20})), pod_with(some_machine(), "8"));
  ASSERT_EQ(c.parameters.size(), 1u) << testing::to_text(c);
  EXPECT_EQ(c.parameters[0].path, "link.bandwidth");
  const Undetermined* launch = undetermined_of(c, "software.launch[all-gather]");
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch->why, "it moves every prediction as link.bandwidth does");
  EXPECT_THAT(launch->probe, HasSubstr("a few KiB and of tens of MiB"));
  EXPECT_EQ(number_at(c.machine, "software.launch[all-gather]"), 5e-6) << "what cannot be told keeps its value";
}

TEST(Calibrate, OneNumberOfDevicesTellsNoLaunchFromLatencyAndTwoDo) {
  const System truth = pod_with(some_machine(other), "4x8"), base = pod_with(some_machine(), "4x8");
  const Calibration one = calibrated(times_on(truth, gathers({{"col", 8}}, many_sizes)), base);
  ASSERT_NE(undetermined_of(one, "link.latency"), nullptr) << testing::to_text(one);
  EXPECT_THAT(undetermined_of(one, "link.latency")->why, HasSubstr("software.launch[all-gather]"));
  EXPECT_THAT(undetermined_of(one, "link.latency")->probe, HasSubstr("other lengths"));
  EXPECT_NE(undetermined_of(one, "software.per_message"), nullptr);
  EXPECT_NE(value_of(one, "software.launch[all-gather]"), nullptr);
  const System ring_truth = pod_with(some_machine(other), "8x4x2"), ring_base = pod_with(some_machine(), "8x4x2");
  std::vector<Observation> both = gathers({{"row", 8}, {"col", 4}, {"depth", 2}}, many_sizes);
  const Calibration two = calibrated(times_on(ring_truth, both), ring_base);
  EXPECT_NE(value_of(two, "link.latency"), nullptr) << testing::to_text(two);
}

TEST(Calibrate, FullDuplexCollectivesTellNoLinkFromInjection) {
  const System truth = pod_with(some_machine({{"link.bandwidth", "80 GB/s"}, {"chip.injection_bandwidth", "90 GB/s"}}), "8");
  const System base = pod_with(some_machine(), "8");
  const Calibration c = calibrated(times_on(truth, gathers({{"", 8}}, many_sizes)), base);
  const Undetermined* injection = undetermined_of(c, "chip.injection_bandwidth");
  ASSERT_NE(injection, nullptr) << testing::to_text(c);
  EXPECT_THAT(injection->why, HasSubstr("2 bytes into the network per byte on a link"));
  EXPECT_THAT(injection->why, HasSubstr("90"));
  EXPECT_THAT(injection->probe, HasSubstr("+1 and by -1 at once"));
  EXPECT_EQ(c.machine.chip.injection_bandwidth, unlimited<BytesPerSecond>);
  EXPECT_NEAR(value_of(c, "link.bandwidth")->value, 45e9, 1e6);
}

TEST(Calibrate, ShiftsOneWayAndCollectivesBothWaysTellLinkFromInjection) {
  std::vector<Observation> observations = gathers({{"", 8}}, many_sizes);
  for (const std::int64_t bytes : many_sizes) observations.push_back(observed(ObservedOp::permute, "", 8, bytes));
  const System base = pod_with(some_machine(), "8");
  const System limited = pod_with(some_machine({{"link.bandwidth", "80 GB/s"}, {"chip.injection_bandwidth", "90 GB/s"}}), "8");
  const Calibration c = calibrated(times_on(limited, observations, 0.01, 5), base);
  ASSERT_NE(value_of(c, "chip.injection_bandwidth"), nullptr) << testing::to_text(c);
  EXPECT_NEAR(value_of(c, "chip.injection_bandwidth")->value, 90e9, 2e9) << testing::to_text(c);
  EXPECT_NEAR(value_of(c, "link.bandwidth")->value, 80e9, 2e9);
  const Calibration free = calibrated(times_on(pod_with(some_machine({{"link.bandwidth", "80 GB/s"}}), "8"), observations, 0.01, 5), base);
  ASSERT_NE(value_of(free, "chip.injection_bandwidth"), nullptr) << testing::to_text(free);
  EXPECT_EQ(value_of(free, "chip.injection_bandwidth")->origin, CalibratedValue::Origin::not_limiting);
  EXPECT_NEAR(value_of(free, "chip.injection_bandwidth")->low, 160e9, 8e9);
  EXPECT_EQ(free.machine.chip.injection_bandwidth, unlimited<BytesPerSecond>);
}

TEST(Calibrate, OutliersDoNotMoveTheFit) {
  const System truth = pod_with(some_machine(other), "4x8"), base = pod_with(some_machine(), "4x8");
  std::vector<Observation> observations = times_on(truth, a_survey(), 0.01, 3);
  const Calibration clean = calibrated(observations, base);
  for (const std::size_t i : {std::size_t{3}, std::size_t{17}}) observations[i].time = Seconds{observations[i].time.count() * 20};
  const Calibration spoiled = calibrated(observations, base);
  for (const CalibratedValue& value : clean.parameters) {
    const CalibratedValue* again = value_of(spoiled, value.path, value.at);
    ASSERT_NE(again, nullptr) << value.path << "\n" << testing::to_text(spoiled);
    EXPECT_NEAR(again->value / value.value, 1, 0.03) << value.path;
  }
  EXPECT_LT(spoiled.residuals[3].weight, 0.05);
  EXPECT_LT(spoiled.residuals[3].error, -0.9);
}

TEST(Calibrate, APriorHoldsAsFarAsItIsSaidTo) {
  const System base = pod_with(some_machine(), "8"), truth = pod_with(some_machine({{"link.bandwidth", "40 GB/s"}}), "8");
  const std::vector<Observation> observations = times_on(truth, gathers({{"", 8}}, many_sizes), 0.02, 1);
  CalibrateOptions firm, loose, held;
  firm.curves = loose.curves = held.curves = false;
  firm.priors = {{"link.bandwidth", 1e-4}};
  loose.priors = {{"link.bandwidth", 1}};
  held.hold = {"link.bandwidth"};
  EXPECT_NEAR(value_of(calibrated(observations, base, firm), "link.bandwidth")->value, 50e9, 0.1e9);
  const Calibration free = calibrated(observations, base, loose);
  EXPECT_NEAR(value_of(free, "link.bandwidth")->value, 40e9, 2e9);
  EXPECT_EQ(value_of(free, "link.bandwidth")->origin, CalibratedValue::Origin::prior);
  const Calibration kept = calibrated(observations, base, held);
  EXPECT_EQ(value_of(kept, "link.bandwidth"), nullptr);
  EXPECT_EQ(kept.machine.link[0].bandwidth, BytesPerSecond{50e9});
}

TEST(Calibrate, NothingBecomesNegative) {
  std::vector<Observation> observations = gathers({{"row", 4}, {"col", 8}}, many_sizes);
  for (Observation& o : observations) o.time = Seconds{1e-7 + static_cast<double>(o.bytes.count()) / 3e10};  // far less than the latencies
  const Calibration c = calibrated(observations, pod_with(some_machine(), "4x8"));
  for (const CalibratedValue& value : c.parameters) {
    EXPECT_GE(value.value, 0) << value.path;
    EXPECT_GE(value.low, 0) << value.path;
    EXPECT_LE(value.low, value.value) << value.path;
    EXPECT_GE(value.high, value.value) << value.path;
  }
}

TEST(Calibrate, TheSameInputGivesTheSameBytes) {
  const System truth = pod_with(some_machine(other), "4x8"), base = pod_with(some_machine(), "4x8");
  const std::vector<Observation> observations = times_on(truth, a_survey(), 0.02, 9);
  const Calibration first = calibrated(observations, base), second = calibrated(observations, base);
  EXPECT_EQ(write_machine(first.machine), write_machine(second.machine));
  EXPECT_EQ(testing::to_text(first), testing::to_text(second));
}

TEST(Calibrate, TheMachineSaysWhereItsValuesAreFrom) {
  CalibrateOptions options;
  options.dataset = "a survey";
  const System base = pod_with(some_machine(), "4x8");
  const Calibration c = calibrated(times_on(pod_with(some_machine(other), "4x8"), a_survey(), 0.02, 2), base, options);
  EXPECT_EQ(c.machine.trust.level, TrustLevel::fitted);
  EXPECT_EQ(c.machine.trust.dataset, "a survey");
  EXPECT_DOUBLE_EQ(*c.machine.trust.error, c.median_abs_error);
  EXPECT_THAT(c.machine.sources.at("software.launch[all-gather]"),
              ::testing::MatchesRegex("fitted: a survey, 10 observations, median error [0-9.]+ %"));
  EXPECT_EQ(c.machine.sources.at("software.per_message"), "test") << "not fitted";
  const auto again = read_machine(write_machine(c.machine), "written");
  ASSERT_TRUE(again) << to_text(again.error());
  EXPECT_EQ(again->trust, c.machine.trust);
  EXPECT_EQ(again->software, c.machine.software);
}

TEST(Calibrate, RefusesWhatItCannotUse) {
  const System system = pod_with(some_machine(), "8");
  const auto error = [&](const std::vector<Observation>& observations, const CalibrateOptions& options) {
    const auto result = calibrate(observations, system, options);
    return result ? "" : to_text(result.error());
  };
  std::vector<Observation> good = times_on(system, gathers({{"", 8}}, many_sizes));
  EXPECT_THAT(error({}, {}), HasSubstr("there are no observations to calibrate from"));
  CalibrateOptions unknown, zero;
  unknown.hold = {"link.bandwith"};
  zero.priors = {{"chip.injection_bandwidth", 0.1}};
  EXPECT_THAT(error(good, unknown), HasSubstr("link.bandwidth"));
  EXPECT_THAT(error(good, zero), HasSubstr("chip.injection_bandwidth is unlimited on this machine: no prior"));
  good[1].devices = 3;
  good[1].where = {"obs.csv", 7, 3};
  EXPECT_THAT(error(good, {}), HasSubstr("obs.csv:7:3: no axis of the mesh has 3 devices"));
}

// ---- Several slices of one switch -------------------------------------------------------------------------------------------------------

Machine some_node(const testing::Values& values = {}) {
  Machine machine = some_machine({{"chip.own_block_bandwidth", "200 GB/s"}});
  machine.interconnect = Interconnect::rail;
  machine.slices = {};
  machine.slices.largest = {8, 8};
  machine.slices.host = {1, 8};
  testing::set(machine, values);
  return machine;
}

std::vector<Observation> sizes_on(const std::vector<int>& devices, const std::vector<ObservedOp>& ops) {
  std::vector<Observation> all;
  for (const int n : devices)
    for (const ObservedOp op : ops)
      for (std::int64_t bytes = 4096; bytes <= (256 << 20); bytes *= 4) {
        Observation o = observed(op, "", n, bytes);
        o.slice = "1x" + std::to_string(n);
        all.push_back(o);
      }
  return all;
}

const std::vector<ObservedOp> gather_and_reduction{ObservedOp::all_gather, ObservedOp::all_reduce};

TEST(Calibrate, SeveralNumbersOfDevicesDivideLaunchAndLatency) {
  const System real = pod_with(some_node({{"software.launch", "9 us"}, {"link.latency", "0.6 us"}, {"link.bandwidth", "40 GB/s"}, {"software.per_message", "0 s"}}), "1x8");
  const System base = pod_with(some_node({{"software.launch", "6 us"}, {"link.latency", "0.3 us"}, {"software.per_message", "0 s"}}), "1x8");
  const auto found = calibrate(testing::times_on(real, sizes_on({2, 4, 8}, gather_and_reduction)), base);
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_NEAR(value_of(*found, "software.launch[all-gather]")->value, 9e-6, 0.3e-6) << testing::to_text(*found);
  EXPECT_NEAR(value_of(*found, "link[y].latency")->value, 0.6e-6, 0.04e-6) << testing::to_text(*found);
  EXPECT_LT(found->p95_abs_error, 0.03);
}

TEST(Calibrate, OneNumberOfDevicesLeavesTheLaunchNearItsSpecification) {
  const System real = pod_with(some_node({{"software.launch", "6 us"}, {"link.latency", "0.6 us"}, {"software.per_message", "0 s"}}), "1x8");
  const System base = pod_with(some_node({{"software.launch", "6 us"}, {"link.latency", "0.3 us"}, {"software.per_message", "0 s"}}), "1x8");
  const auto rows = testing::times_on(real, sizes_on({8}, {ObservedOp::all_gather}));
  const auto found = calibrate(rows, base);
  ASSERT_TRUE(found) << to_text(found.error());
  const CalibratedValue* launch = value_of(*found, "software.launch[all-gather]");
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(launch->origin, CalibratedValue::Origin::prior);
  EXPECT_LT(launch->value, 10e-6) << "14.4 us are not all launch: the hops have a part";
  EXPECT_GT(value_of(*found, "link[y].latency")->value, 0.4e-6);
  const auto* alike = testing::undetermined_of(*found, "software.per_message");
  ASSERT_NE(alike, nullptr);
  EXPECT_TRUE(alike->why.starts_with("it moves every prediction as")) << alike->why;
  // All-reduces of twice the steps, which were not observed.
  const System fitted = pod_with(found->machine, "1x8");
  const Observation small = observed(ObservedOp::all_reduce, "", 8, 4096);
  EXPECT_NEAR(predict(small, fitted)->count() / predict(small, real)->count(), 1, 0.15);
}

TEST(Calibrate, AKindWithACurveOfItsOwnTakesTheRatioOfTheOther) {
  const System real = pod_with(some_node({{"collective[all-gather].efficiency", "0.2 at 4 KiB, 0.8 at 1 MiB"},
                                          {"collective[reduce-scatter].efficiency", "0.2 at 32 KiB, 0.8 at 8 MiB"}}),
                               "1x8");
  const System base = pod_with(some_node({{"collective[all-gather].efficiency", "0.4 at 4 KiB, 1 at 1 MiB"},
                                          {"collective[reduce-scatter].efficiency", "0.4 at 32 KiB, 1 at 8 MiB"}}),
                               "1x8");
  const auto found = calibrate(testing::times_on(real, sizes_on({8}, {ObservedOp::all_gather})), base);
  ASSERT_TRUE(found) << to_text(found.error());
  for (const std::int64_t bytes : {std::int64_t{1} << 17, std::int64_t{1} << 22, std::int64_t{1} << 28}) {
    const Observation o = observed(ObservedOp::reduce_scatter, "", 8, bytes);
    EXPECT_NEAR(predict(o, pod_with(found->machine, "1x8"))->count() / predict(o, real)->count(), 1, 0.1) << bytes;
  }
}

}  // namespace
}  // namespace podsim
