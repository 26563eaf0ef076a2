// What check() proves, and what it catches.
#include "sim/engine/numeric/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>

#include "sim/engine/numeric/claims.hpp"
#include "sim/engine/numeric/hand_built_test.hpp"
#include "sim/schedule/source_module.hpp"

namespace podsim {
namespace {

using namespace hand_built;
using ::testing::ElementsAre;

CheckReport checked(const Schedule& schedule, const CheckOptions& options = {}) {
  const Expected<CheckReport> report = check(schedule, options);
  EXPECT_TRUE(report) << to_text(report.error());
  return report ? *report : CheckReport{};
}

TEST(Check, PassesRightSchedules) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f8e4m3fn, DType::f8e5m2, DType::s8})
    for (const Schedule& schedule : {ring_all_gather(4, 3, dtype), ring_reduce_scatter(4, 3, dtype), sliced_product(3, {6, 12, 72}, 3, 4, dtype)}) {
      const CheckReport report = checked(schedule);
      EXPECT_TRUE(report.ok) << schedule.name << "\n" << to_text(report.problems);
      EXPECT_TRUE(report.matched && report.deadlock_free && report.race_free && report.bit_equal);
      EXPECT_TRUE(report.compared_something()) << report.compared;
      EXPECT_EQ(report.devices, schedule.mesh.devices());
      EXPECT_EQ(report.orders_tried, 4);
      EXPECT_LE(report.max_rel_error, report.tolerance);
    }
}

TEST(Check, FindsAMissingEdge) {
  Schedule schedule = ring_all_gather(4, 2);
  schedule.programs[0].tasks[2].after.clear();
  const CheckReport report = checked(schedule, {.random_orders = 8});
  EXPECT_FALSE(report.ok);
  EXPECT_FALSE(report.race_free);
  EXPECT_TRUE(report.matched && report.deadlock_free);
  EXPECT_FALSE(report.bit_equal) << "some order shows it";
  EXPECT_THAT(to_text(report.problems), ::testing::HasSubstr("depends on the order of tasks"));
}

TEST(Check, FindsAWrongBlock) {
  Schedule schedule = ring_all_gather(4, 2);
  auto& shift = std::get<Shift>(schedule.programs[0].tasks[2].op);
  shift.source.dims[0] = block(own(schedule.mesh.whole(0)), 2);  // sends its own block again instead of the one that came
  const CheckReport report = checked(schedule);
  EXPECT_FALSE(report.ok);
  EXPECT_TRUE(report.matched && report.deadlock_free && report.race_free);
  EXPECT_FALSE(report.bit_equal);
  EXPECT_GT(report.max_rel_error, report.tolerance);
  EXPECT_THAT(to_text(report.problems), ::testing::HasSubstr("of buffer \"Y\" on device 0 (x=0)"));
}

TEST(Check, FindsWhatWasNeverWritten) {
  Schedule schedule = ring_reduce_scatter(4, 2);
  schedule.programs[0].tasks[0].where = {{own(schedule.mesh.whole(0)), 1, 4}};  // device 0 never puts its own terms in
  const CheckReport report = checked(schedule);
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.max_abs_error, std::numeric_limits<double>::infinity());
}

TEST(Check, DoesNotRunWhatCannotRun) {
  Schedule unmatched = ring_all_gather(3, 2);
  add(unmatched.programs[0], "nobody receives", Send{3, {own(unmatched.mesh.whole(0), 1)}, whole(unmatched.programs[0], 0), {}});
  const CheckReport report = checked(unmatched);
  EXPECT_FALSE(report.matched || report.deadlock_free || report.race_free || report.ok || report.bit_equal);
  EXPECT_EQ(report.orders_tried, 0);
  EXPECT_FALSE(report.problems.empty());

  Schedule deadlock{"deadlock", mesh_of({{"x", 2, false}}), {}, {}};
  const AxisView x = deadlock.mesh.whole(0);
  Program program{every_device(deadlock.mesh), {input("X", {1}, {{x}}), output("Y", {1}, {{x}})}, {}};
  const int receive = add(program, "receive", Recv{0, {own(x, 1)}, whole(program, 1), Combine::replace});
  add(program, "send", Send{0, {own(x, 1)}, whole(program, 0), {}}, {receive});
  deadlock.programs.push_back(program);
  const CheckReport stuck = checked(deadlock);
  EXPECT_TRUE(stuck.matched);
  EXPECT_FALSE(stuck.deadlock_free || stuck.ok);
  EXPECT_EQ(stuck.orders_tried, 0);
}

TEST(Check, IsNotOkWithoutAClaim) {
  for (const Computes& nothing : {Computes{}, Computes{Products{}}}) {
    Schedule schedule = ring_all_gather(4, 2);
    schedule.computes = nothing;
    const CheckReport report = checked(schedule);
    EXPECT_FALSE(report.ok);
    EXPECT_EQ(report.compared, "nothing");
    EXPECT_EQ(to_text(report.problems), "no result was compared: the schedule does not say what it computes\n");
    EXPECT_TRUE(report.race_free && report.bit_equal) << "orders are still compared with each other";
    EXPECT_EQ(report.max_abs_error, 0);
    schedule.programs[0].tasks[2].after.clear();
    EXPECT_FALSE(checked(schedule, {.random_orders = 8}).bit_equal);
  }
}

TEST(Check, NamesWhatItComparedWith) {
  EXPECT_EQ(checked(ring_all_gather(4, 2)).compared, "all-gather along x");
  EXPECT_EQ(checked(sliced_product(2, {4, 4, 8}, 2, 1)).compared, "Y = X W");
  Schedule schedule = ring_all_gather(4, 2);
  schedule.computes = Products{{"dX", "dY", "W", 1, 1, 1, false, true}, {"dW", "X", "dY", 1, 1, 1, true, false}};
  EXPECT_EQ(claim_of(schedule), "dX = dY W^T, dW = X^T dY");
}

TEST(Check, AsksForAClaimAboutEveryOutput) {
  // A second product whose line is gone.
  Schedule schedule = sliced_product(2, {4, 4, 8}, 2, 1);
  Program& program = schedule.programs[0];
  program.buffers.push_back(output("Z", {2, 2}, {{}, {}}));
  add(program, "copy", copy(whole(program, 2), whole(program, 7)), {static_cast<int>(program.tasks.size()) - 1});
  CheckReport report = checked(schedule);
  EXPECT_FALSE(report.ok);
  EXPECT_TRUE(report.bit_equal && report.race_free);
  EXPECT_EQ(to_text(report.problems), "the schedule does not say what its output \"Z\" is to hold: it was not compared\n");

  // A collective of which a part is claimed.
  schedule = ring_all_gather(4, 2);
  auto& gather = std::get<Collective>(schedule.computes);
  gather.input.dims[1] = gather.output.dims[1] = span(0, 2);
  report = checked(schedule);
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(to_text(report.problems),
            "the schedule says of 16 of 24 elements of its output \"Y\" what they are to hold: the others were not compared\n");
}

TEST(Check, OfTheStructureAloneRunsNothing) {
  Schedule schedule = ring_all_gather(4, 2);
  schedule.computes = {};
  CheckReport report = checked(schedule, {.structure_only = true});
  EXPECT_TRUE(report.ok && report.matched && report.race_free && report.deadlock_free);
  EXPECT_EQ(report.compared, "nothing");
  EXPECT_EQ(report.orders_tried, 0);
  EXPECT_FALSE(report.bit_equal);
  schedule.programs[0].tasks[2].after.clear();
  report = checked(schedule, {.structure_only = true});
  EXPECT_FALSE(report.ok || report.race_free);
}

TEST(Check, TellsHowFarItIsAndEndsWhenTold) {
  std::vector<std::string> doing;
  std::atomic<bool> stop = false;
  CheckOptions options;
  options.threads = 1;
  options.stop = &stop;
  options.progress = [&](const CheckProgress& progress) {
    if (doing.empty() || doing.back() != progress.doing) doing.emplace_back(progress.doing);
    EXPECT_TRUE(progress.part >= 0 && progress.part <= 1);
  };
  const Schedule schedule = ring_reduce_scatter(4, 2);
  ASSERT_TRUE(check(schedule, options)->ok);
  EXPECT_THAT(doing, ElementsAre("matching, races, deadlock", "the expected result on integers", "integers in program order", "random order 1 of 3",
                                 "random order 2 of 3", "random order 3 of 3", "the expected result on other integers",
                                 "other integers in program order", "the expected result on uniform data", "uniform data in program order"));
  for (std::size_t last = 0; last < doing.size(); ++last) {
    std::size_t begun = 0;
    stop = false;
    CheckOptions stopped = options;
    stopped.progress = [&](const CheckProgress& progress) { begun += progress.has_part ? 0 : 1, stop = begun > last; };
    const auto report = check(schedule, stopped);
    ASSERT_FALSE(report) << last;
    EXPECT_EQ(report.error().cause, Cause::cancelled);
    EXPECT_EQ(begun, last + 1) << "nothing begins after " << doing[last];
  }
}

TEST(Check, MakesInputsAgainThatAScheduleOverwrites) {
  Schedule schedule{"in place", mesh_of({{"x", 2, true}}), {}, {}};
  Program program{every_device(schedule.mesh), {input("X", {8}, {{}}), output("Y", {8}, {{}})}, {}};
  add(program, "scale in place", Local{LocalKind::scale, {whole(program, 0)}, {whole(program, 0)}, 3, Unit::core});
  add(program, "copy", copy(whole(program, 0), whole(program, 1)), {0});
  schedule.programs.push_back(program);
  EXPECT_TRUE(checked(schedule).bit_equal);
}

TEST(Check, SaysHowMuchMemoryItNeeds) {
  const Expected<CheckReport> report = check(sliced_product(4, {64, 64, 64}, 1, 1), {.max_bytes = Bytes{100000}});
  ASSERT_FALSE(report);
  EXPECT_THAT(to_text(report.error()), ::testing::HasSubstr("of memory; the limit is 100 kB; its structure can be checked alone"));
  EXPECT_TRUE(check(sliced_product(4, {64, 64, 64}, 1, 1), {.max_bytes = Bytes{100000}, .structure_only = true}));
}

TEST(Check, ToleratesTheRoundingsOfSumsInBuffersOfAnyRole) {
  // A sum over four devices in bf16 that ends in a buffer which is said to be an input.
  Schedule schedule = ring_reduce_scatter(4, 3, DType::bf16);
  const Expected<CheckReport> as_output = check(schedule, {});
  for (Buffer& buffer : schedule.programs.front().buffers)
    if (buffer.role == Role::output) buffer.role = Role::input;
  const Expected<CheckReport> as_input = check(schedule, {});
  ASSERT_TRUE(as_output && as_input);
  EXPECT_GT(as_output->tolerance, std::ldexp(1.0, -8));
  EXPECT_EQ(as_input->tolerance, as_output->tolerance);
}

/// The square root of x + |x|: of numbers below 0 roundings decide whether it is a number. With a mistake that of 2 x + |x|.
class RootOfPositives final : public SourceModule {
 public:
  explicit RootOfPositives(double mistake) : mistake_{mistake} {}
  Status execute(int, DeviceId, std::span<const Values> reads, std::span<Values> writes) const override {
    for (std::size_t i = 0; i < reads[0].size(); ++i) writes[0][i] = std::sqrt(reads[0][i] * mistake_ + std::abs(reads[0][i]));
    return success();
  }
  Expected<Results> results(const std::vector<std::vector<Values>>& inputs, std::optional<Roundings> roundings, Cancellation) const override {
    Results made;
    for (const std::vector<Values>& of_device : inputs) {
      Values& roots = made.outputs.emplace_back().emplace_back();
      for (const double x : of_device[0]) roots.push_back(std::sqrt(x + std::abs(x) - (roundings ? 1e-7 * std::abs(x) : 0)));
    }
    return made;
  }

 private:
  double mistake_;
};

TEST(Check, AModuleThatComputesBadlyOnEitherSignIsProvenOnPositiveNumbers) {
  const auto report = [](double mistake) {
    Schedule schedule{"module", mesh_of({{"x", 1, true}}), {{every_device(mesh_of({{"x", 1, true}})), {input("X", {64}, {{}}), output("Y", {64}, {{}})}, {}}}, SourceResults{}};
    Program& program = schedule.programs[0];
    Local root{LocalKind::opaque, {whole(program, 0)}, {whole(program, 1)}};
    root.opaque.operation = 0;
    add(program, "root", root);
    schedule.source = std::make_shared<const RootOfPositives>(mistake);
    return checked(schedule);
  };
  const auto nothing_proven = [](const CheckReport& of) { return to_text(of.problems).find("nothing is proven") != std::string::npos; };
  const CheckReport right = report(1), wrong = report(2);
  EXPECT_TRUE(right.bit_equal) << to_text(right.problems);
  EXPECT_FALSE(nothing_proven(right)) << to_text(right.problems);
  EXPECT_FALSE(wrong.ok || wrong.bit_equal || nothing_proven(wrong)) << to_text(wrong.problems);
}

/// Y = scale X^power, of which the reference is 1 X^power, with roundings of a given size.
class Power final : public SourceModule {
 public:
  Power(double power, double scale, double roundings) : power_{power}, scale_{scale}, roundings_{roundings} {}
  Status execute(int, DeviceId, std::span<const Values> reads, std::span<Values> writes) const override {
    for (std::size_t i = 0; i < reads[0].size(); ++i) writes[0][i] = static_cast<float>(scale_ * power_of(reads[0][i]));
    return success();
  }
  Expected<Results> results(const std::vector<std::vector<Values>>& inputs, std::optional<Roundings> roundings, Cancellation) const override {
    Results made;
    for (const std::vector<Values>& of_device : inputs) {
      Values& powers = made.outputs.emplace_back().emplace_back();
      for (const double x : of_device[0]) powers.push_back(roundings ? stored(power_of(x) * (1 + roundings_)) : power_of(x));
    }
    return made;
  }

 private:
  static double stored(double value) { return value > std::numeric_limits<float>::max() ? std::numeric_limits<double>::infinity() : value; }
  [[nodiscard]] double power_of(double x) const { return std::pow(std::abs(x), power_); }
  double power_, scale_, roundings_;
};

CheckReport report_of_power(double power, double scale, double roundings, InputData data = InputData::random) {
  Schedule schedule{"module", mesh_of({{"x", 1, true}}), {{every_device(mesh_of({{"x", 1, true}})), {input("X", {64}, {{}}), output("Y", {64}, {{}})}, {}}}, SourceResults{}};
  Program& program = schedule.programs[0];
  Local task{LocalKind::opaque, {whole(program, 0)}, {whole(program, 1)}};
  task.opaque.operation = 0;
  add(program, "power", task);
  schedule.source = std::make_shared<const Power>(power, scale, roundings);
  return checked(schedule, {.data = data});
}

TEST(Check, AModuleWhoseResultsOnIntegersOverflowIsProvenOnUniformData) {
  const CheckReport right = report_of_power(300, 1, 1e-7), wrong = report_of_power(300, 2, 1e-7);
  EXPECT_TRUE(right.ok) << to_text(right.problems);
  EXPECT_EQ(right.proven_on, "uniform float32 data");
  EXPECT_FALSE(wrong.ok || wrong.not_proven) << to_text(wrong.problems);
}

TEST(Check, AModuleOfWhichNoDataProveAnythingIsNotProvenUnlessItIsWrong) {
  for (const InputData data : {InputData::random, InputData::arange, InputData::ones}) {
    const CheckReport right = report_of_power(1, 1, 1, data), wrong = report_of_power(1, 1e6, 1, data);
    EXPECT_TRUE(right.not_proven && !right.ok) << to_text(right.problems);
    EXPECT_EQ(right.proof_tolerance, 8);
    EXPECT_THAT(to_text(right.problems), testing::HasSubstr("nothing is proven"));
    EXPECT_THAT(to_text(right.problems), testing::HasSubstr("--data"));
    EXPECT_FALSE(wrong.ok || wrong.not_proven) << to_text(wrong.problems);
  }
}

/// 1 where exp(-80 |x|) is above 0, plus `mistake`: in float64 everywhere, in float32 for fractions and where |x| is at most 1.
class Positives final : public SourceModule {
 public:
  explicit Positives(double mistake) : mistake_{mistake} {}
  Status execute(int, DeviceId, std::span<const Values> reads, std::span<Values> writes) const override {
    for (std::size_t i = 0; i < reads[0].size(); ++i) writes[0][i] = count(reads[0][i], true) + mistake_;
    return success();
  }
  Expected<Results> results(const std::vector<std::vector<Values>>& inputs, std::optional<Roundings> roundings, Cancellation) const override {
    Results made;
    for (const std::vector<Values>& of_device : inputs) {
      Values& counts = made.outputs.emplace_back().emplace_back();
      for (const double x : of_device[0]) counts.push_back(count(x, roundings.has_value()));
    }
    return made;
  }

 private:
  static double count(double x, bool rounds) { return std::exp(-80 * std::abs(x)) > (rounds ? 0x1p-126 : 0.0) ? 1 : 0; }
  double mistake_;
};

TEST(Check, WholeNumbersThatRoundingsChangeAreProvenOnOtherData) {
  const auto report = [](double mistake) {
    Buffer counts = output("Y", {64}, {{}});
    counts.dtype = DType::s32;
    Schedule schedule{"module", mesh_of({{"x", 1, true}}), {{every_device(mesh_of({{"x", 1, true}})), {input("X", {64}, {{}}), counts}, {}}}, SourceResults{}};
    Program& program = schedule.programs[0];
    Local task{LocalKind::opaque, {whole(program, 0)}, {whole(program, 1)}};
    task.opaque.operation = 0;
    add(program, "count", task);
    schedule.source = std::make_shared<const Positives>(mistake);
    return checked(schedule);
  };
  const CheckReport right = report(0), wrong = report(1);
  EXPECT_TRUE(right.ok) << to_text(right.problems);
  EXPECT_FALSE(wrong.ok || wrong.not_proven) << to_text(wrong.problems);
}

}  // namespace
}  // namespace podsim
