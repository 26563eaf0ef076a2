// Compiled modules on numbers: the schedule against the module's own meaning, and against what a kernel should compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>

#include "sim/engine/numeric/check.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using ::testing::HasSubstr;
using testing::system_with;

HloSpec numbers_of(const std::string& text, HloScheduleOptions options = {}) {
  auto module = parse_hlo(text, "m");
  EXPECT_TRUE(module) << to_text(module.error());
  options.values = true;
  return {std::make_shared<const HloModule>(module ? *std::move(module) : HloModule{}), std::move(options), {}, {}};
}

CheckReport checked(const System& system, const HloSpec& spec) {
  const auto problem = make_problem(system, spec);
  if (!problem) {
    CheckReport report;
    report.problems.push_back(problem.error());
    return report;
  }
  RunOptions options;
  options.inline_calls = true;
  const auto lowered = lower_problem(system, *problem, options);
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  auto report = check(lowered->lowered, {});
  if (!report) {
    CheckReport failed;
    failed.problems.push_back(report.error());
    return failed;
  }
  return *std::move(report);
}

/// X on each device are `rows` rows; the result is all of X @ W. The block that a device multiplies in trip i came from the device i before it.
std::string ring_of_products(int devices, int rows, const std::string& index = "%of_block") {
  std::string pairs;
  for (int d = 0; d < devices; ++d) pairs += fmt::format("{}{{{},{}}}", d == 0 ? "" : ",", d, (d + 1) % devices);
  return fmt::format(R"(HloModule ring, is_scheduled=true, num_partitions={0}
%body (p: (s32[], f32[{1},16], f32[16,8], f32[{2},8])) -> (s32[], f32[{1},16], f32[16,8], f32[{2},8]) {{
  %p = (s32[], f32[{1},16], f32[16,8], f32[{2},8]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[{1},16] get-tuple-element(%p), index=1
  %w = f32[16,8] get-tuple-element(%p), index=2
  %y = f32[{2},8] get-tuple-element(%p), index=3
  %permute = (f32[{1},16], f32[{1},16]) collective-permute-start(%x), channel_id=1, source_target_pairs={{{3}}}
  %dot = f32[{1},8] dot(%x, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  %id = u32[] partition-id()
  %own = s32[] convert(%id)
  %before = s32[] subtract(%own, %i)
  %devices = s32[] constant({0})
  %ahead = s32[] add(%before, %devices)
  %block = s32[] remainder(%ahead, %devices)
  %rows = s32[] constant({1})
  %of_block = s32[] multiply(%block, %rows)
  %of_trip = s32[] multiply(%i, %rows)
  %zero = s32[] constant(0)
  %update = f32[{2},8] dynamic-update-slice(%y, %dot, {4}, %zero)
  %permuted = f32[{1},16] collective-permute-done(%permute)
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %t = (s32[], f32[{1},16], f32[16,8], f32[{2},8]) tuple(%next, %permuted, %w, %update)
}}
%cond (q: (s32[], f32[{1},16], f32[16,8], f32[{2},8])) -> pred[] {{
  %q = (s32[], f32[{1},16], f32[16,8], f32[{2},8]) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %n = s32[] constant({0})
  ROOT %lt = pred[] compare(%j, %n), direction=LT
}}
ENTRY %main (a: f32[{1},16], b: f32[16,8]) -> f32[{2},8] {{
  %a = f32[{1},16] parameter(0)
  %b = f32[16,8] parameter(1)
  %start = s32[] constant(0)
  %none = f32[] constant(0)
  %room = f32[{2},8] broadcast(%none), dimensions={{}}
  %s = (s32[], f32[{1},16], f32[16,8], f32[{2},8]) tuple(%start, %a, %b, %room)
  %loop = (s32[], f32[{1},16], f32[16,8], f32[{2},8]) while(%s), condition=%cond, body=%body, backend_config={{"known_trip_count":{{"n":"{0}"}}}}
  ROOT %out = f32[{2},8] get-tuple-element(%loop), index=3
}}
)",
                     devices, rows, devices * rows, pairs, index);
}

ProgramText product(const std::string& a, const std::string& b) {
  const auto entry = [](std::string text) { return ProgramText::Entry{std::move(text), {"program", 1, 1}}; };
  ProgramText text;
  text.statements = {entry("C = A @ B")};
  text.shapes = {entry(a), entry(b)};
  text.shards = {entry("A=x,-")};
  text.outs = {entry("C=-,-")};
  return text;
}

System ring(int devices) { return system_with({{"machine", "ideal"}, {"slice", std::to_string(devices)}, {"mesh", fmt::format("x={}", devices)}}); }

TEST(HloCheck, RingsOfProductsAreProvenEqualToTheProduct) {
  for (const int devices : {4, 8}) {
    HloSpec spec = numbers_of(ring_of_products(devices, 4));
    EXPECT_EQ(to_text(checked(ring(devices), spec).problems), "");
    spec.equals = product(fmt::format("A={}x16", 4 * devices), "B=16x8");
    const CheckReport report = checked(ring(devices), spec);
    EXPECT_TRUE(report.ok) << to_text(report.problems);
    EXPECT_TRUE(report.bit_equal);
    EXPECT_EQ(report.compared, "C = A @ B");
  }
}

TEST(HloCheck, BlocksInTheWrongPlaceAreNoProduct) {
  HloSpec spec = numbers_of(ring_of_products(4, 4, "%of_trip"));
  EXPECT_TRUE(checked(ring(4), spec).ok) << "the schedule does what the module says";
  spec.equals = product("A=16x16", "B=16x8");
  const CheckReport report = checked(ring(4), spec);
  EXPECT_FALSE(report.ok);
  EXPECT_THAT(to_text(report.problems), HasSubstr("the result is wrong"));
}

}  // namespace
}  // namespace podsim
