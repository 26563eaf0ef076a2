// Compiled modules on numbers: the schedule against the module's own meaning, and against what a kernel should compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "sim/engine/numeric/check.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/hlo/split_collectives.hpp"
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
  return {std::make_shared<const HloModule>(module ? *std::move(module) : HloModule{}), std::move(options), {}, CollectivePolicy{}};
}

/// As `podsim check --hlo`: beside itself, then beside what it should equal.
CheckReport checked(const System& system, const HloSpec& spec) {
  if (spec.equals) {
    HloSpec itself = spec;
    itself.equals.reset();
    if (CheckReport report = checked(system, itself); !report.ok) return report;
  }
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
  ASSERT_TRUE(checked(ring(4), spec).ok) << "the schedule does what the module says";
  spec.equals = product("A=16x16", "B=16x8");
  const CheckReport report = checked(ring(4), spec);
  EXPECT_FALSE(report.ok);
  EXPECT_THAT(to_text(report.problems), HasSubstr("the result is wrong"));
}

TEST(HloCheck, ARewrittenModuleIsHeldToTheOneThatWasGiven) {
  HloSpec spec = numbers_of(ring_of_products(4, 4, "%of_trip"));  // as a rewrite that is wrong would leave it
  spec.original = numbers_of(ring_of_products(4, 4)).module;
  const CheckReport report = checked(ring(4), spec);
  EXPECT_FALSE(report.ok);
  EXPECT_THAT(to_text(report.problems), HasSubstr("the result is wrong"));
  spec.module = spec.original;
  EXPECT_TRUE(checked(ring(4), spec).ok);
}

TEST(HloCheck, CollectivesOfSeveralArraysMeanTheSameApart) {
  HloSpec spec = numbers_of(R"(HloModule m, is_scheduled=true, num_partitions=4
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}
ENTRY %main (x: f32[4,8], y: f32[4,8]) -> (f32[4,8], f32[4,8], f32[16,8], f32[16,8]) {
  %x = f32[4,8] parameter(0)
  %y = f32[4,8] parameter(1)
  %n = f32[4,8] negate(%y)
  %start = (f32[4,8], f32[4,8]) all-reduce-start(%x, %n), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add
  %g = (f32[16,8], f32[16,8]) all-gather(%x, %n), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  %done = (f32[4,8], f32[4,8]) all-reduce-done(%start)
  %a = f32[4,8] get-tuple-element(%done), index=0
  %b = f32[4,8] get-tuple-element(%done), index=1
  %p = f32[16,8] get-tuple-element(%g), index=0
  %q = f32[16,8] get-tuple-element(%g), index=1
  %c = f32[4,8] subtract(%a, %b)
  ROOT %t = (f32[4,8], f32[4,8], f32[16,8], f32[16,8]) tuple(%c, %b, %p, %q)
}
)");
  SplitModule split = split_collectives(*spec.module);
  EXPECT_EQ(split.after, 4);
  spec.original = std::exchange(spec.module, std::make_shared<const HloModule>(std::move(split.module)));
  const CheckReport report = checked(ring(4), spec);
  EXPECT_TRUE(report.ok) << to_text(report.problems);
}

TEST(HloCheck, WrongKernelsAreNoProduct) {
  const std::string right = ring_of_products(4, 4), ring_of_four = "{{0,1},{1,2},{2,3},{3,0}}";
  const auto is_product = [&](const std::string& from, const std::string& to) {
    const std::size_t at = right.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    HloSpec spec = numbers_of(std::string{right}.replace(at, from.size(), to));
    spec.equals = product("A=16x16", "B=16x8");
    return checked(ring(4), spec).ok;
  };
  EXPECT_TRUE(is_product("%zero = ", "%unused = f32[4,16] add(%x, %x)\n  %zero = "));
  EXPECT_FALSE(is_product(ring_of_four, "{{1,0},{2,1},{3,2},{0,3}}")) << "the other way round";
  EXPECT_FALSE(is_product(ring_of_four, "{{0,2},{2,1},{1,3},{3,0}}")) << "another ring";
  EXPECT_FALSE(is_product("tuple(%next, %permuted,", "tuple(%next, %x,")) << "own rows again and again";
  EXPECT_FALSE(is_product("subtract(%own, %i)", "add(%own, %i)")) << "blocks in the other order";
  EXPECT_FALSE(is_product("%dot = f32[4,8] dot(%x,", "%twice = f32[4,16] add(%x, %x)\n  %dot = f32[4,8] dot(%twice,"));
  EXPECT_FALSE(is_product("%update = f32[16,8] dynamic-update-slice(%y,", "%other = f32[16,8] negate(%y)\n  %update = f32[16,8] dynamic-update-slice(%other,"));
}

TEST(HloCheck, TripCountsAndBranchesAreThoseOfTheNumbers) {
  for (const int trips : {3, 5}) {
    std::string text = ring_of_products(4, 4);
    text.replace(text.find("\"n\":\"4\""), 7, fmt::format("\"n\":\"{}\"", trips));
    const CheckReport report = checked(ring(4), numbers_of(text));
    EXPECT_FALSE(report.ok);
    EXPECT_THAT(to_text(report.problems), HasSubstr(trips == 3 ? "loop: runs on after its trip count" : "loop: ends before its trip count"));
  }
  const std::string choice = R"(HloModule choice, is_scheduled=true, num_partitions=4
%twice { p = f32[4] parameter(0)
 ROOT s = f32[4] add(p, p) }
%negative { q = f32[4] parameter(0)
 ROOT n = f32[4] negate(q) }
ENTRY e {
  x = f32[4] parameter(0)
  second = s32[] constant(1)
  ROOT chosen = f32[4] conditional(second, x, x), branch_computations={%twice, %negative}
}
)";
  const auto with_branch = [&](int branch) {
    HloScheduleOptions options;
    options.counts.branches = {{"chosen", branch}};
    return checked(ring(4), numbers_of(choice, options));
  };
  EXPECT_TRUE(checked(ring(4), numbers_of(choice)).ok) << "each device takes its own";
  EXPECT_TRUE(with_branch(1).ok);
  EXPECT_FALSE(with_branch(0).ok);
  EXPECT_THAT(to_text(with_branch(0).problems), HasSubstr("chosen: takes branch 1, and the schedule has branch 0; `branch` chosen=1"));
}

TEST(HloCheck, TheWorkOfAModuleIsSaidBeforehand) {
  const System system = ring(4);
  const auto work_of = [&](int elements) {
    const auto problem = make_problem(system, numbers_of(fmt::format("HloModule m, num_partitions=4\nENTRY e {{\n x = f32[{0}] parameter(0)\n y = f32[{0}] negate(x)\n ROOT r = f32[{0}] multiply(x, y)\n}}\n", elements)));
    EXPECT_TRUE(problem);
    RunOptions options;
    options.inline_calls = true;
    const auto lowered = lower_problem(system, *problem, options);
    EXPECT_TRUE(lowered);
    return work_of_check(lowered->lowered, {});
  };
  // Five elements on each of four devices, in five runs and eight references.
  EXPECT_DOUBLE_EQ(work_of(1000), 13 * 5 * 4 * 5 * 1000.0);
  EXPECT_DOUBLE_EQ(work_of(3000), 3 * work_of(1000));
}

/// Of a branch that an index parameter chooses, and collectives in the first two; `sharding`: of the index.
std::string switch_by_parameter(const std::string& sharding, const std::string& index = "s32[]") {
  return R"(HloModule choice, is_scheduled=true, num_partitions=4
%sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
%all { p = f32[4] parameter(0)
 ROOT s = f32[4] all-reduce(p), channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true, to_apply=%sum }
%next { q = f32[4] parameter(0)
 ROOT n = f32[4] collective-permute(q), channel_id=2, source_target_pairs={{0,1},{1,2},{2,3},{3,0}} }
%own { r = f32[4] parameter(0)
 ROOT n = f32[4] negate(r) }
ENTRY e {
  x = f32[4] parameter(0)
  given = )" + index + " parameter(1)" + sharding + R"(
  i = s32[] reshape(given)
  zero = s32[] constant(0)
  last = s32[] constant(2)
  within = s32[] clamp(zero, i, last)
  ROOT chosen = f32[4] conditional(within, x, x, x), branch_computations={%all, %next, %own}
}
)";
}

TEST(HloCheck, AnIndexThatAllDevicesShareTakesThemToOneBranch) {
  for (const std::string& text : {switch_by_parameter(", sharding={replicated}"), switch_by_parameter(""), switch_by_parameter(", sharding={replicated}", "s32[1]")}) {
    const CheckReport report = checked(ring(4), numbers_of(text));
    EXPECT_TRUE(report.ok) << to_text(report.problems) << text;
    for (const int branch : {0, 1, 2}) {
      HloScheduleOptions options;
      options.counts.branches = {{"chosen", branch}};
      const CheckReport told = checked(ring(4), numbers_of(text, options));
      EXPECT_TRUE(told.ok && told.bit_equal) << branch << ": inputs are drawn until it is taken\n" << to_text(told.problems);
    }
  }
  // Each device has one of its own.
  const CheckReport apart = checked(ring(4), numbers_of(switch_by_parameter(", sharding={devices=[4]<=[4]}", "s32[1]")));
  EXPECT_THAT(to_text(apart.problems), HasSubstr("expected all devices of a group to come to it"));
}

TEST(HloCheck, CollectivesAlongAxesAndThroughFusionsDoWhatTheModuleSays) {
  const std::string text = R"(HloModule collectives, is_scheduled=true, num_partitions=8
%sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
%shifted { f = f32[8,16] parameter(0)
 g = f32[16,8] transpose(f), dimensions={1,0}
 h = f32[128] reshape(g)
 two = f32[] constant(2)
 twos = f32[128] broadcast(two), dimensions={}
 i = f32[128] multiply(h, twos)
 ROOT j = f32[4,32] reshape(i) }
ENTRY e {
  x = f32[2,16] parameter(0)
  gathered = f32[8,16] all-gather(x), channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}, use_global_device_ids=true
  fused = f32[4,32] fusion(gathered), kind=kLoop, calls=%shifted
  reduced = f32[4,32] all-reduce(fused), channel_id=2, replica_groups=[4,2]<=[8], to_apply=%sum, use_global_device_ids=true
  scattered = f32[4,4] reduce-scatter(reduced), channel_id=3, replica_groups=[1,8]<=[8], dimensions={1}, to_apply=%sum, use_global_device_ids=true
  exchanged = f32[4,4] all-to-all(scattered), channel_id=4, replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}
  start = (f32[4,4], f32[4,4]) collective-permute-start(exchanged), channel_id=5, source_target_pairs={{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}
  zero = f32[] constant(0)
  column = f32[4] reduce(exchanged, zero), dimensions={1}, to_apply=%sum
  done = f32[4,4] collective-permute-done(start)
  ROOT result = (f32[4,4], f32[4]) tuple(done, column)
}
)";
  const System system = system_with({{"machine", "ideal"}, {"slice", "4x2"}, {"mesh", "x=4,y=2"}});
  const CheckReport report = checked(system, numbers_of(text));
  EXPECT_TRUE(report.ok) << to_text(report.problems);
  EXPECT_TRUE(report.bit_equal);
}

/// A @ B of [4,4] with A split by columns and B by rows over two devices: what `lines` make of the partial product %part. They end with ROOT r.
HloSpec sum_of_parts(const std::string& computations, const std::string& lines, const std::string& out) {
  HloSpec spec = numbers_of("HloModule m, is_scheduled=true, num_partitions=2\n%sum { u = f32[] parameter(0)\n v = f32[] parameter(1)\n ROOT w = f32[] add(u, v) }\n" + computations +
                            "ENTRY e {\n a = f32[4,2] parameter(0)\n b = f32[2,4] parameter(1)\n part = f32[4,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n" + lines + "}\n");
  const auto entry = [](std::string text) { return ProgramText::Entry{std::move(text), {"program", 1, 1}}; };
  spec.equals = ProgramText{};
  spec.equals->statements = {entry("C = A @ B")};
  spec.equals->shapes = {entry("A=4x4"), entry("B=4x4")};
  spec.equals->shards = {entry("A=-,x"), entry("B=x,-")};
  spec.equals->outs = {entry(out)};
  return spec;
}

// What is beside a collective in a fusion or an asynchronous computation is executed, too; and the schedule is held to the module before it is held to
// the product, so nothing is proven of a module that its schedule leaves a part of out.
TEST(HloCheck, WorkAroundCollectivesCounts) {
  const std::string reduce = " q = f32[4,4] parameter(0)\n all = f32[4,4] all-reduce(q), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%sum\n";
  const auto is_product = [&](const std::string& fused, const std::string& lines, const std::string& out = "C=-,-") {
    return checked(ring(2), sum_of_parts("%inner {\n" + reduce + fused + "}\n", lines, out)).ok;
  };
  const std::string fusion = " ROOT r = f32[4,4] fusion(part), kind=kCustom, calls=%inner\n";
  EXPECT_TRUE(is_product(" ROOT c = f32[4,4] copy(all)\n", fusion));
  EXPECT_FALSE(is_product(" ROOT n = f32[4,4] negate(all)\n", fusion));
  EXPECT_FALSE(is_product(" ROOT again = f32[4,4] all-reduce(all), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%sum\n", fusion));
  const std::string async = " s = ((f32[4,4]), f32[4,4]) async-start(part), calls=%inner\n ROOT r = f32[4,4] async-done(s)\n";
  EXPECT_TRUE(is_product(" ROOT c = f32[4,4] copy(all)\n", async));
  EXPECT_FALSE(is_product(" ROOT n = f32[4,4] negate(all)\n", async));
  const auto own_rows = [](const std::string& first) {
    return " id = u32[] partition-id()\n two = u32[] constant(2)\n none = u32[] constant(0)\n mine = u32[] multiply(id, two)\n ROOT own = f32[2,4] dynamic-slice(all, " + first + ", none), dynamic_slice_sizes={2,4}\n";
  };
  const std::string scatter = " ROOT r = f32[2,4] fusion(part), kind=kCustom, calls=%inner\n";
  EXPECT_TRUE(is_product(own_rows("mine"), scatter, "C=x,-"));
  EXPECT_FALSE(is_product(own_rows("none"), scatter, "C=x,-"));
}

TEST(HloCheck, ReductionsOfOtherThanSumsAreNoSums) {
  const CheckReport report = checked(ring(2), sum_of_parts("%twice { u = f32[] parameter(0)\n v = f32[] parameter(1)\n ROOT w = f32[] add(u, u) }\n",
                                                           " ROOT r = f32[4,4] all-reduce(part), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%twice\n", "C=-,-"));
  EXPECT_FALSE(report.ok);
  EXPECT_THAT(to_text(report.problems), HasSubstr("the result is wrong"));
}

const std::string scalar_functions =
    "%sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
    "%max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, b) }\n"
    "%or { a = pred[] parameter(0)\n b = pred[] parameter(1)\n ROOT c = pred[] or(a, b) }\n";

std::string on_four(const std::string& lines) { return "HloModule m, is_scheduled=true, num_partitions=4\n" + scalar_functions + "ENTRY e {\n" + lines + "}\n"; }

// Schedules have sums, and groups that are factors of axes: the others are computed from the operands of all devices.
TEST(HloCheck, CollectivesOfEveryKindDoWhatTheModuleSays) {
  for (const std::string& lines : std::vector<std::string>{
           " x = f32[4,2] parameter(0)\n ROOT r = f32[4,2] all-reduce(x), channel_id=1, replica_groups=[2,2]<=[4], use_global_device_ids=true, to_apply=%max\n",
           " x = f32[4,2] parameter(0)\n s = f32[4,2] all-reduce-start(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%max\n ROOT r = f32[4,2] all-reduce-done(s)\n",
           " x = f32[4,2] parameter(0)\n ROOT r = f32[1,2] reduce-scatter(x), channel_id=1, replica_groups={{3,1,2,0}}, dimensions={0}, use_global_device_ids=true, to_apply=%max\n",
           " x = pred[4] parameter(0)\n ROOT r = pred[4] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%or\n",
           " x = bf16[8] parameter(0)\n ROOT r = f32[8] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%sum\n",
           " x = f32[2,3] parameter(0)\n ROOT r = f32[4,3] all-gather(x), channel_id=1, replica_groups={{0,3},{1,2}}, dimensions={0}, use_global_device_ids=true\n",
           " x = f32[8] parameter(0)\n room = f32[8] parameter(1)\n from = s32[4] constant({0,1,3,7})\n size = s32[4] constant({1,2,4,1})\n to = s32[4] constant({0,2,4,6})\n"
           " ROOT r = f32[8] ragged-all-to-all(x, room, from, size, to, size), channel_id=1, replica_groups={{0,1,2,3}}\n",
           " x = f32[4] parameter(0)\n y = bf16[2,2] parameter(1)\n s = ((f32[4], bf16[2,2]), (f32[4], bf16[2,2])) collective-permute-start(x, y), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}\n"
           " ROOT d = (f32[4], bf16[2,2]) collective-permute-done(s)\n",
           " x = f32[4] parameter(0)\n t = token[] after-all()\n rv = (f32[4], u32[], token[]) recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}\n"
           " sd = (f32[4], u32[], token[]) send(x, t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}\n rd = (f32[4], token[]) recv-done(rv), channel_id=1\n"
           " sdd = token[] send-done(sd), channel_id=1\n ROOT r = f32[4] get-tuple-element(rd), index=0\n",
       }) {
    const CheckReport report = checked(ring(4), numbers_of(on_four(lines)));
    EXPECT_TRUE(report.ok) << lines << to_text(report.problems);
    EXPECT_TRUE(report.bit_equal) << lines;
  }
}

TEST(HloCheck, ParametersOfShortWholeNumbersAreWithinTheirType) {
  const CheckReport report = checked(ring(4), numbers_of(on_four(" x = s8[4,4] parameter(0)\n p = pred[4,4] parameter(1)\n g = s8[16,4] all-gather(x), channel_id=1, use_global_device_ids=true, replica_groups={{0,1,2,3}}, dimensions={0}\n"
                                                                 " d = s32[16,4] dot(g, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n ROOT t = (s32[16,4], s8[4,4], pred[4,4]) tuple(d, x, p)\n")));
  EXPECT_TRUE(report.ok) << to_text(report.problems);
  EXPECT_TRUE(report.bit_equal);
}

TEST(HloCheck, BuffersHaveNoValuesBeforeTheyAreWritten) {
  const auto written = [](const std::string& rows) {
    return checked(ring(4), numbers_of(on_four(" x = f32[2,4] parameter(0)\n b = f32[4,4] custom-call(), custom_call_target=\"AllocateBuffer\"\n z = s32[] constant(0)\n two = s32[] constant(" + rows +
                                               ")\n h = f32[4,4] dynamic-update-slice(b, x, z, z)\n ROOT r = f32[4,4] dynamic-update-slice(h, x, two, z)\n")));
  };
  EXPECT_TRUE(written("2").ok) << to_text(written("2").problems);
  EXPECT_FALSE(written("1").ok) << "the last row is not written";
}

TEST(HloCheck, ProductsInFusionsWithSumsMayBeTransposed) {
  const auto report_of = [&](const std::string& layout) {
    return checked(ring(2), sum_of_parts("%add { p = f32[4,2] parameter(0)\n q = f32[2,4] parameter(1)\n s = f32[4,4] parameter(2)\n d = f32[4,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                                         " t = f32[4,4]{" + layout + "} bitcast(d)\n ROOT w = f32[4,4] add(t, s) }\n",
                                         " zero = f32[] constant(0)\n zeros = f32[4,4] broadcast(zero), dimensions={}\n f = f32[4,4] fusion(a, b, zeros), kind=kOutput, calls=%add\n"
                                         " ROOT r = f32[4,4] all-reduce(f), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%sum\n", "C=-,-"));
  };
  EXPECT_TRUE(report_of("1,0").ok);
  EXPECT_FALSE(report_of("0,1").ok) << "the bitcast to another layout is a transpose";
}

TEST(HloCheck, WhatIsSentIsNotReceivedInItsOwnPlace) {
  std::string text = ring_of_products(3, 4);
  const std::string start = "(f32[4,16], f32[4,16]) collective-permute-start";
  text.replace(text.find(start), start.size(), "f32[4,16] collective-permute");
  text.replace(text.find("%permuted = f32[4,16] collective-permute-done(%permute)"), 55, "%permuted = f32[4,16] copy(%permute)");
  HloSpec spec = numbers_of(text);
  spec.equals = product("A=12x16", "B=16x8");
  EXPECT_TRUE(checked(ring(3), spec).ok);
  const std::string own = R"(HloModule m, is_scheduled=true, num_partitions=4
%body { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  r = f32[4] collective-permute(x), channel_id=1, source_target_pairs={PAIRS}
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT t = (s32[], f32[4]) tuple(n, r) }
%condition { q = (s32[], f32[4]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  two = s32[] constant(2)
  ROOT less = pred[] compare(j, two), direction=LT }
ENTRY e {
  a = f32[4] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[4]) tuple(z, a)
  w = (s32[], f32[4]) while(s), condition=%condition, body=%body
  o = f32[4] get-tuple-element(w), index=1
  ROOT both = f32[4] add(o, a)
}
)";
  // All; two that exchange beside two that take no part; and some that send to themselves.
  for (const char* pairs : {"{0,1},{1,2},{2,3},{3,0}", "{1,2},{2,1}", "{0,0},{1,2},{2,1},{3,3}", "{0,0}"}) {
    std::string module = own;
    const CheckReport report = checked(ring(4), numbers_of(module.replace(module.find("PAIRS"), 5, pairs)));
    EXPECT_TRUE(report.ok) << pairs << '\n' << to_text(report.problems);
  }
}

TEST(HloCheck, DevicesThatReceiveNothingHaveZerosBeforeTheyAreUsed) {
  const CheckReport report = checked(ring(4), numbers_of("HloModule m, num_partitions=4\nENTRY e {\n x = f32[4] parameter(0)\n r = f32[4] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2}}\n"
                                                         " ROOT n = f32[4] negate(r)\n}\n"));
  EXPECT_TRUE(report.ok) << to_text(report.problems);
}

TEST(HloCheck, OneValueTwiceInALoopIsTwoValues) {
  const CheckReport report = checked(ring(2), numbers_of(R"(HloModule m, is_scheduled=true, num_partitions=2
%body { p = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  y = f32[4] get-tuple-element(p), index=2
  m = f32[4] negate(x)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT t = (s32[], f32[4], f32[4]) tuple(n, m, y) }
%condition { q = (s32[], f32[4], f32[4]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  one = s32[] constant(1)
  ROOT less = pred[] compare(j, one), direction=LT }
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] reverse(a), dimensions={0}
  z = s32[] constant(0)
  s = (s32[], f32[4], f32[4]) tuple(z, b, b)
  w = (s32[], f32[4], f32[4]) while(s), condition=%condition, body=%body
  o = f32[4] get-tuple-element(w), index=1
  o2 = f32[4] get-tuple-element(w), index=2
  ROOT r = (f32[4], f32[4]) tuple(o, o2)
}
)"));
  EXPECT_TRUE(report.ok) << to_text(report.problems);
}

TEST(HloCheck, GroupsMayListDevicesInAnyOrder) {
  const auto text_with = [](const std::string& groups) {
    return "HloModule m, is_scheduled=true, num_partitions=4\n%sum { u = f32[] parameter(0)\n v = f32[] parameter(1)\n ROOT w = f32[] add(u, v) }\n"
           "ENTRY e {\n x = f32[4] parameter(0)\n ROOT r = f32[4] all-reduce(x), channel_id=1, replica_groups=" + groups + ", use_global_device_ids=true, to_apply=%sum\n}\n";
  };
  for (const char* groups : {"[1,4]<=[2,2]T(1,0)", "{{3,1,0,2}}", "{{2,0},{3,1}}"}) EXPECT_TRUE(checked(ring(4), numbers_of(text_with(groups))).ok) << groups;
}

TEST(HloCheck, ATransformersForwardAndBackwardPassesInTheCompilersFormDoWhatTheModuleSays) {
  auto module = read_hlo_file(PODSIM_SOURCE_DIR "/workloads/hlo/testdata/tpu_transformer_step.hlo");
  ASSERT_TRUE(module) << to_text(module.error());
  const auto shared = std::make_shared<const HloModule>(*std::move(module));
  const System system = system_with({{"machine", "tpu_v5e"}, {"slice", "2x4"}, {"mesh", "data=2,model=4"}});
  HloSpec numbers{shared};
  numbers.options.values = true;
  const CheckReport report = checked(system, numbers);
  EXPECT_TRUE(report.ok) << to_text(report.problems);
  const auto makespan = [&](const std::string& engine) {
    RunOptions options;
    options.engine = *timing_engine(engine);
    const auto run = simulate(system, *make_problem(system, HloSpec{shared}), options);
    EXPECT_TRUE(run) << to_text(run.error());
    return run ? run->metrics.makespan : Picoseconds{};
  };
  const Picoseconds des = makespan("des"), simgrid = makespan("simgrid");
  EXPECT_LE(simgrid, des);
  EXPECT_GE(simgrid + Picoseconds{1000}, des) << "des rounds every event up to a picosecond";
}

TEST(HloCheck, KernelsAreNamedAndTheRestIsProven) {
  const auto spec = [](const std::string& pairs) {
    return numbers_of("HloModule m, is_scheduled=true, num_partitions=4\nENTRY e {\n  x = f32[4,8] parameter(0)\n"
                      "  k = f32[4,8] custom-call(x), custom_call_target=\"tpu_custom_call\"\n"
                      "  ROOT r = f32[4,8] collective-permute(k), source_target_pairs=" + pairs + "\n}\n");
  };
  const System system = ring(4);
  const auto problem = make_problem(system, spec("{{0,1},{1,2},{2,3},{3,0}}"));
  ASSERT_TRUE(problem) << to_text(problem.error());
  EXPECT_THAT(problem->summary.hlo->not_checked, ::testing::ElementsAre("m:4:3: k: what custom-call \"tpu_custom_call\" computes is not known; other numbers stand in for its results"));
  const CheckReport report = checked(system, spec("{{0,1},{1,2},{2,3},{3,0}}"));
  EXPECT_TRUE(report.ok) << to_text(report.problems);
}

TEST(HloCheck, AReduceScatterLeavesItsOperandToWhatReadsItBeforeItIsDone) {
  auto module = read_hlo_file(PODSIM_SOURCE_DIR "/workloads/hlo/testdata/gpu_reduce_scatter.hlo");
  ASSERT_TRUE(module) << to_text(module.error());
  HloSpec spec{std::make_shared<const HloModule>(*std::move(module))};
  spec.options.values = true;
  const CheckReport report = checked(ring(4), spec);
  EXPECT_TRUE(report.ok) << to_text(report.problems);
}

TEST(HloCheck, AReduceScatterLeavesItsOperandToAllThatReadIt) {
  const std::string sum = "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n", scatter = " = f32[2] reduce-scatter(y), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, dimensions={0}, to_apply=sum\n";
  const auto entry = [&](const std::string& body) { return "HloModule m, num_partitions=4\n" + sum + "ENTRY e {\n x = f32[8] parameter(0)\n y = f32[8] negate(x)\n" + body + "}\n"; };
  const std::string loop = "HloModule m, is_scheduled=true, num_partitions=4\n" + sum +
                           "body { p = (s32[], f32[8], f32[2]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n y = f32[8] get-tuple-element(p), index=1\n r = f32[2] get-tuple-element(p), index=2\n"
                           " one = s32[] constant(1)\n next = s32[] add(i, one)\n t" + scatter + " q = f32[2] add(r, t)\n ROOT u = (s32[], f32[8], f32[2]) tuple(next, y, q) }\n"
                           "cond { p = (s32[], f32[8], f32[2]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n n = s32[] constant(3)\n ROOT l = pred[] compare(i, n), direction=LT }\n"
                           "ENTRY e {\n x = f32[8] parameter(0)\n z = f32[2] parameter(1)\n y = f32[8] negate(x)\n zero = s32[] constant(0)\n s = (s32[], f32[8], f32[2]) tuple(zero, y, z)\n"
                           " w = (s32[], f32[8], f32[2]) while(s), condition=cond, body=body, backend_config={\"known_trip_count\":{\"n\":\"3\"}}\n ROOT r = f32[2] get-tuple-element(w), index=2\n}\n";
  const std::string twice = "HloModule m, num_partitions=4\nsums { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e {\n x = f32[8] parameter(0)\n y = f32[8] negate(x)\n"
                            " ROOT r = (f32[2], f32[2]) reduce-scatter(y, y), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, dimensions={0}, to_apply=sums\n}\n";
  for (const auto& [what, text] : {std::pair{"behind it", entry(" r" + scatter + " n = f32[8] add(y, x)\n ROOT t = (f32[8], f32[2]) tuple(n, r)\n")},
                                   std::pair{"before it, unordered", entry(" n = f32[8] sine(y)\n r" + scatter + " ROOT t = (f32[8], f32[2]) tuple(n, r)\n")},
                                   std::pair{"another one", entry(" r" + scatter + " q" + scatter + " ROOT t = (f32[2], f32[2]) tuple(r, q)\n")},
                                   std::pair{"the result", entry(" r" + scatter + " ROOT t = (f32[8], f32[2]) tuple(y, r)\n")}, std::pair{"the next trip", loop}, std::pair{"its other operand", twice}}) {
    const CheckReport report = checked(ring(4), numbers_of(text));
    EXPECT_TRUE(report.ok) << what << "\n" << to_text(report.problems);
  }
}

}  // namespace
}  // namespace podsim
