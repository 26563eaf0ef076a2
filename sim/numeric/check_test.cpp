// What check() proves, and what it catches.
#include "sim/numeric/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "sim/numeric/hand_built_test.hpp"

namespace podsim {
namespace {

using namespace hand_built;

CheckReport checked(const Schedule& schedule, const CheckOptions& options = {}) {
  const Expected<CheckReport> report = check(schedule, options);
  EXPECT_TRUE(report) << to_text(report.error());
  return report ? *report : CheckReport{};
}

TEST(Check, PassesRightSchedules) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const Schedule& schedule : {ring_all_gather(4, 3, dtype), ring_reduce_scatter(4, 3, dtype), sliced_product(3, {6, 12, 72}, 3, 4, dtype)}) {
      const CheckReport report = checked(schedule);
      EXPECT_TRUE(report.ok) << schedule.name << "\n" << to_text(report.problems);
      EXPECT_TRUE(report.matched && report.deadlock_free && report.race_free && report.bit_equal);
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
  EXPECT_THAT(to_text(report.problems), testing::HasSubstr("depends on the order of tasks"));
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
  EXPECT_THAT(to_text(report.problems), testing::HasSubstr("of buffer \"Y\" on device 0 (x=0)"));
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

TEST(Check, ComparesAScheduleThatStatesNothingWithItself) {
  Schedule schedule = ring_all_gather(4, 2);
  schedule.computes = {};
  const CheckReport report = checked(schedule);
  EXPECT_TRUE(report.ok) << to_text(report.problems);
  EXPECT_TRUE(report.bit_equal);
  EXPECT_EQ(report.max_abs_error, 0);
  schedule.programs[0].tasks[2].after.clear();
  EXPECT_FALSE(checked(schedule, {.random_orders = 8}).bit_equal);
}

TEST(Check, MakesInputsAgainThatAScheduleOverwrites) {
  Schedule schedule{"in place", mesh_of({{"x", 2, true}}), {}, {}};
  Program program{every_device(schedule.mesh), {input("X", {8}, {{}}), output("Y", {8}, {{}})}, {}};
  add(program, "scale in place", Local{LocalKind::scale, {whole(program, 0)}, {whole(program, 0)}, 3, Unit::core});
  add(program, "copy", copy(whole(program, 0), whole(program, 1)), {0});
  schedule.programs.push_back(program);
  EXPECT_TRUE(checked(schedule).ok);
}

TEST(Check, NeedsExactnessOnlyWhereItIsPromised) {
  // 16 K > 2^24: sums of integers may round, in an order that OpenBLAS chooses.
  Schedule schedule{"long", Mesh{}, {}, Products{{"Y", "X", "W", 2, 2, (1 << 20) + 64, false, false}}};
  const std::int64_t k = (1 << 20) + 64;
  Program program{every_device(schedule.mesh), {input("X", {2, k}, {{}, {}}), input("W", {k, 2}, {{}, {}}), output("Y", {2, 2}, {{}, {}})}, {}};
  add(program, "product", Matmul{whole(program, 0), whole(program, 1), whole(program, 2), 1, 1, 1, false, false, false});
  schedule.programs.push_back(program);
  EXPECT_TRUE(checked(schedule).bit_equal) << "orders agree";
}

TEST(Check, SaysHowMuchMemoryItNeeds) {
  const Expected<CheckReport> report = check(sliced_product(4, {64, 64, 64}, 1, 1), {.max_bytes = Bytes{100000}});
  ASSERT_FALSE(report);
  EXPECT_THAT(to_text(report.error()), testing::HasSubstr("of memory; the limit is 100 kB"));
}

}  // namespace
}  // namespace podsim
