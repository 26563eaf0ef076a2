// Differences made on purpose in modules of a sharded product, and what each of them costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "workloads/differences/module_differences.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using testing::fields;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Given = std::vector<std::pair<std::string, std::string>>;

/// `m` rows of X on each device, all of k, and n columns of W.
struct Extents {
  int devices = 4, m = 512, k = 1024, n = 256;
  [[nodiscard]] std::string x() const { return fmt::format("bf16[{},{}]", m, k); }
  [[nodiscard]] std::string all_x() const { return fmt::format("bf16[{},{}]", m * devices, k); }
  [[nodiscard]] std::string w() const { return fmt::format("bf16[{},{}]", k, n); }
  [[nodiscard]] std::string part() const { return fmt::format("bf16[{},{}]", m, n); }
  [[nodiscard]] std::string y() const { return fmt::format("bf16[{},{}]", m * devices, n); }
  [[nodiscard]] std::string pairs() const {
    std::string text;
    for (int d = 0; d < devices; ++d) text += fmt::format("{}{{{},{}}}", d == 0 ? "" : ",", d, (d + 1) % devices);
    return "{" + text + "}";
  }
  [[nodiscard]] std::string everyone() const {
    std::string text;
    for (int d = 0; d < devices; ++d) text += fmt::format("{}{}", d == 0 ? "" : ",", d);
    return "{{" + text + "}}";
  }
  [[nodiscard]] Picoseconds product(int blocks = 1) const { return blocks * ceil_to_clock(Seconds{2.0 * m * k * n / 100e12}); }
  [[nodiscard]] std::int64_t block_bytes() const { return std::int64_t{2} * m * k; }
  [[nodiscard]] Picoseconds step() const { return ceil_to_clock(Seconds{static_cast<double>(block_bytes()) / 100e9}); }
};
constexpr const char* contracting = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

std::string module_of(const Extents& e, const std::string& computations, const std::string& entry, const std::string& result = "") {
  return fmt::format(
      "HloModule m, is_scheduled=true, num_partitions={}\n\n{}ENTRY %main (x: {}, w: {}) -> {} {{\n  %x = {} parameter(0)\n  %w = {} "
      "parameter(1)\n{}}}\n",
      e.devices, computations, e.x(), e.w(), result.empty() ? e.y() : result, e.x(), e.w(), entry);
}

/// Rows of X go around a ring of devices while each block of them is multiplied. With `trips` = devices the last block that arrives is for nothing;
/// with one less, the last block is multiplied behind the loop. `before`: instructions of the entry that make %left of x and %right of w.
std::string ring(const Extents& e, int trips, const std::string& before = "", const std::string& left = "%x", const std::string& right = "%w") {
  const std::string state = fmt::format("(s32[], {}, {}, {})", e.x(), e.w(), e.y());
  const std::string loop = fmt::format(R"(%body (p: {0}) -> {0} {{
  %p = {0} parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %rows = {1} get-tuple-element(%p), index=1
  %weights = {2} get-tuple-element(%p), index=2
  %sums = {3} get-tuple-element(%p), index=3
  %send = ({1}, {1}, u32[], u32[]) collective-permute-start(%rows), channel_id=1, source_target_pairs={4}
  %part = {5} dot(%rows, %weights), {6}
  %zero = s32[] constant(0)
  %update = {3} dynamic-update-slice(%sums, %part, %i, %zero)
  %sent = {1} collective-permute-done(%send)
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %t = {0} tuple(%next, %sent, %weights, %update)
}}

%condition (q: {0}) -> pred[] {{
  %q = {0} parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %trips = s32[] constant({7})
  ROOT %less = pred[] compare(%j, %trips), direction=LT
}}

)",
                                       state, e.x(), e.w(), e.y(), e.pairs(), e.part(), contracting, trips);
  std::string entry = before + fmt::format(R"(  %first = s32[] constant(0)
  %nothing = bf16[] constant(0)
  %empty = {3} broadcast(%nothing), dimensions={{}}
  %begin = {0} tuple(%first, {1}, {2}, %empty)
  %ring = {0} while(%begin), condition=%condition, body=%body
)",
                                           state, left, right, e.y());
  if (trips == e.devices) {
    entry += fmt::format("  ROOT %y = {} get-tuple-element(%ring), index=3\n", e.y());
  } else {
    entry += fmt::format("  %last = {} get-tuple-element(%ring), index=1\n  %ys = {} get-tuple-element(%ring), index=3\n", e.x(), e.y());
    entry += fmt::format("  %rest = {} dot(%last, {}), {}\n  ROOT %y = {} dynamic-update-slice(%ys, %rest, %first, %first)\n", e.part(), right,
                         contracting, e.y());
  }
  return module_of(e, loop, entry);
}

/// The rows of X are gathered, then multiplied.
std::string gathered(const Extents& e) {
  return module_of(e, "",
                   fmt::format("  %all = {} all-gather(%x), channel_id=1, replica_groups={}, dimensions={{0}}, use_global_device_ids=true\n  ROOT %y "
                               "= {} dot(%all, %w), {}\n",
                               e.all_x(), e.everyone(), e.y(), contracting));
}

Expected<ModuleComparison> compared(const std::string& text, Given given) {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path file = std::filesystem::path{::testing::TempDir()} / fmt::format("{}.hlo", test->name());
  std::ofstream{file} << text;
  given.emplace_back("machine", "ideal");
  given.emplace_back("hlo", file.string());
  auto comparison = compare_module(fields(given), {});
  std::filesystem::remove(file);
  return comparison;
}

ModuleComparison comparison_of(const std::string& text, const Given& given) {
  auto comparison = compared(text, given);
  EXPECT_TRUE(comparison) << to_text(comparison.error());
  ModuleComparison found = comparison ? *std::move(comparison) : ModuleComparison{};
  for (const Skipped& entry : found.skipped) ADD_FAILURE() << entry.what << ": " << to_text(entry.why);
  if (found.schedules.empty()) found.schedules.emplace_back();
  return found;
}

Given with(const std::string& algorithm, const Extents& e = {}) { return {{"slice", std::to_string(e.devices)}, {"algorithm", algorithm}}; }

/// Without the file's name.
std::string error_of(const std::string& text, const Given& given) {
  const auto comparison = compared(text, given);
  return comparison ? "" : to_text(comparison.error());
}

std::vector<DifferenceKind> kinds_of(const ModuleComparison& comparison) {
  std::vector<DifferenceKind> kinds;
  for (const ModuleDifference& one : comparison.schedules.front().differences) kinds.push_back(one.kind);
  return kinds;
}

/// The difference of this kind at an instruction, which must be there.
const ModuleDifference& at(const ModuleComparison& comparison, DifferenceKind kind, const std::string& instruction) {
  for (const ModuleDifference& one : comparison.schedules.front().differences)
    if (one.kind == kind && one.instruction == instruction) return one;
  ADD_FAILURE() << instruction << " is not " << name_of(kind);
  static const ModuleDifference none{};
  return none;
}

Picoseconds makespan_of(const ModuleComparison& comparison) { return ceil_to_clock(Seconds{comparison.result.makespan_s}); }

TEST(ModuleDifferences, TheLastTransferOfARingIsForNothing) {
  const Extents e;
  const ModuleComparison found = comparison_of(ring(e, e.devices), with("tp-ag-overlapped"));
  EXPECT_EQ(makespan_of(found), Picoseconds{41'943'040});
  EXPECT_EQ(found.result.link_bytes, 16'777'216);
  EXPECT_EQ(ceil_to_clock(Seconds{found.schedules.front().row.result.makespan_s}), Picoseconds{34'141'635});
  EXPECT_EQ(found.schedules.front().row.result.link_bytes, 12'582'912);
  ASSERT_EQ(kinds_of(found), std::vector{DifferenceKind::superfluous});
  const ModuleDifference& last = found.schedules.front().differences.front();
  EXPECT_EQ(last.instruction, "send");
  EXPECT_EQ(last.time, e.step());
  EXPECT_EQ(last.gain, Picoseconds{41'943'040 - 34'141'635});
  EXPECT_THAT(last.sentence, HasSubstr("in trip 4 of 4 of ring"));
  EXPECT_EQ(found.schedules.front().without, Picoseconds{34'141'635});
}

TEST(ModuleDifferences, AModuleLikeOurScheduleHasNone) {
  const Extents e;
  const ModuleComparison found = comparison_of(ring(e, e.devices - 1), with("tp-ag-overlapped"));
  EXPECT_EQ(makespan_of(found), Picoseconds{34'141'635});
  EXPECT_THAT(found.schedules.front().differences, IsEmpty());
  EXPECT_FALSE(found.schedules.front().without);
  EXPECT_EQ(found.schedules.front().sentence,
            "m takes 34.14 us, tp-ag-overlapped os 34.14 us, as long; no difference of the module costs 0.1 % of it.");
}

TEST(ModuleDifferences, TheProductIsThatOfAllDevices) {
  for (const Extents& e : {Extents{}, Extents{8, 64, 512, 128}, Extents{2, 256, 128, 512}})
    for (const std::string& text : {ring(e, e.devices), ring(e, e.devices - 1), gathered(e)}) {
      const ModuleComparison found = comparison_of(text, with("tp-ag-overlapped", e));
      EXPECT_EQ(found.product.problem, (GemmProblem{e.m * e.devices, e.n * e.devices, e.k}));
      EXPECT_EQ(found.product.left, "x");
      EXPECT_EQ(found.product.right, "w");
    }
}

TEST(ModuleDifferences, ACollectiveThatNothingOverlapsCostsTheShorterOfBoth) {
  for (const int n : {256, 4096}) {
    const Extents e{4, 512, 1024, n};
    const ModuleComparison found = comparison_of(gathered(e), with("tp-ag-overlapped"));
    const Picoseconds product = ceil_to_clock(Seconds{4 * 2.0 * e.m * e.k * e.n / 100e12}), gather = makespan_of(found) - product;
    ASSERT_EQ(kinds_of(found), std::vector{DifferenceKind::not_overlapped});
    const ModuleDifference& all = found.schedules.front().differences.front();
    EXPECT_EQ(all.instruction, "all");
    EXPECT_EQ(all.time, gather);
    EXPECT_EQ(all.gain, std::min(product, gather)) << "n " << n;
  }
  EXPECT_THAT(comparison_of(gathered({}), with("tp-ag-plain")).schedules.front().differences, IsEmpty()) << "a schedule that gathers first, too";
}

TEST(ModuleDifferences, AReduceScatterBehindItsProductIsNotOverlapped) {
  const std::string text = R"(HloModule m, is_scheduled=true, num_partitions=4

%add (a: bf16[], b: bf16[]) -> bf16[] {
  %a = bf16[] parameter(0)
  %b = bf16[] parameter(1)
  ROOT %s = bf16[] add(%a, %b)
}

ENTRY %main (x: bf16[1024,256], w: bf16[256,512]) -> bf16[256,512] {
  %x = bf16[1024,256] parameter(0)
  %w = bf16[256,512] parameter(1)
  %partial = bf16[1024,512] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %own = bf16[256,512] reduce-scatter(%partial), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true, to_apply=%add
}
)";
  const ModuleComparison found = comparison_of(text, with("jax-rs-overlapped"));
  EXPECT_EQ(found.product.problem, (GemmProblem{1024, 512, 1024}));
  const Picoseconds product = ceil_to_clock(Seconds{2.0 * 1024 * 512 * 256 / 100e12});
  const ModuleDifference& own = at(found, DifferenceKind::not_overlapped, "own");
  EXPECT_EQ(own.time, makespan_of(found) - product);
  EXPECT_EQ(own.gain, std::min(product, own.time));
  EXPECT_THAT(comparison_of(text, with("jax-rs-plain")).schedules.front().differences, IsEmpty());
}

/// X is small and W large: ours moves X, the module gathers W.
TEST(ModuleDifferences, AModuleThatMovesTheLargeOperandMovesTooMuch) {
  const std::string text = R"(HloModule m, is_scheduled=true, num_partitions=4

ENTRY %main (x: bf16[128,1024], w: bf16[256,2048]) -> bf16[128,2048] {
  %x = bf16[128,1024] parameter(0)
  %w = bf16[256,2048] parameter(1)
  %all = bf16[1024,2048] all-gather(%w), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  ROOT %y = bf16[128,2048] dot(%x, %all), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  const ModuleComparison found = comparison_of(text, with("tp-ag-plain"));
  EXPECT_EQ(found.product.problem, (GemmProblem{512, 2048, 1024}));
  const ModuleDifference& all = at(found, DifferenceKind::superfluous, "all");
  EXPECT_EQ(found.result.link_bytes, 4 * found.schedules.front().row.result.link_bytes);
  EXPECT_EQ(4 * all.gain, 3 * all.time) << "as long as ours would take, a quarter";
  EXPECT_THAT(all.sentence,
              HasSubstr("moves the right operand; our schedule moves other arrays, and all of the module's link traffic is 4 times ours"));
}

TEST(ModuleDifferences, CopiesAndLayoutsCostTheirBytes) {
  const Extents e;
  Given given = with("tp-ag-overlapped");
  given.emplace_back("set", "chip.hbm_bandwidth=1TB/s");
  const std::string before = "  %copied = " + e.x() + "{1,0} copy(%x)\n  %turned = " + e.w() + "{0,1} copy(%w)\n";
  const ModuleComparison found = comparison_of(ring(e, e.devices - 1, before, "%copied", "%turned"), given);
  const auto moved = [](double elements) { return ceil_to_clock(Seconds{2 * 2 * elements / 1e12}); };  // read and written, bf16
  EXPECT_EQ(at(found, DifferenceKind::copy, "copied").gain, moved(e.m * e.k));
  EXPECT_EQ(at(found, DifferenceKind::layout, "turned").gain, moved(e.k * e.n));
  EXPECT_EQ(at(found, DifferenceKind::superfluous, "empty").gain, ceil_to_clock(Seconds{2.0 * e.devices * e.m * e.n / 1e12}))
      << "zeros, written once";
  const ModuleDifference& last = at(found, DifferenceKind::copy, "y");
  EXPECT_EQ(last.gain, last.time) << "behind the last product";
  EXPECT_EQ(found.schedules.front().differences.size(), 4u) << "other updates hide behind transfers";
  EXPECT_EQ(found.schedules.front().left_out, 1u);
}

TEST(ModuleDifferences, WorkThatStandsBehindAWaitCostsWhatItCouldHide) {
  for (const int n : {256, 4096}) {
    const Extents e{2, 512, 1024, n};
    const std::string entry = fmt::format(R"(  %nothing = bf16[] constant(0)
  %empty = {0} broadcast(%nothing), dimensions={{}}
  %first = s32[] constant(0)
  %second = s32[] constant({1})
  %send = ({2}, {2}, u32[], u32[]) collective-permute-start(%x), channel_id=1, source_target_pairs={{{{0,1}},{{1,0}}}}
  %sent = {2} collective-permute-done(%send)
  %theirs = {3} dot(%sent, %w), {4}
  %one = {0} dynamic-update-slice(%empty, %theirs, %first, %first)
  %own = {3} dot(%x, %w), {4}
  ROOT %y = {0} dynamic-update-slice(%one, %own, %second, %first)
)",
                                          e.y(), e.m, e.x(), e.part(), contracting);
    const ModuleComparison found = comparison_of(module_of(e, "", entry), with("tp-ag-overlapped", e));
    ASSERT_EQ(makespan_of(found), e.step() + e.product(2));
    const ModuleDifference& order = at(found, DifferenceKind::order, "sent");
    EXPECT_EQ(order.time, e.step());
    EXPECT_EQ(order.gain, std::min(e.step(), e.product())) << "n " << n;
    EXPECT_THAT(order.sentence, HasSubstr("the core waits at sent while own, which is behind it, could run"));
  }
}

TEST(ModuleDifferences, AnAllReduceOfWhichOneBlockIsUsedMissesAReduceScatter) {
  const std::string text = R"(HloModule m, is_scheduled=true, num_partitions=4

%add (a: bf16[], b: bf16[]) -> bf16[] {
  %a = bf16[] parameter(0)
  %b = bf16[] parameter(1)
  ROOT %s = bf16[] add(%a, %b)
}

ENTRY %main (x: bf16[1024,256], w: bf16[256,512]) -> bf16[256,512] {
  %x = bf16[1024,256] parameter(0)
  %w = bf16[256,512] parameter(1)
  %partial = bf16[1024,512] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %sum = bf16[1024,512] all-reduce(%partial), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add
  %id = u32[] partition-id()
  %device = s32[] convert(%id)
  %rows = s32[] constant(256)
  %row = s32[] multiply(%device, %rows)
  %zero = s32[] constant(0)
  ROOT %own = bf16[256,512] dynamic-slice(%sum, %row, %zero), dynamic_slice_sizes={256,512}
}
)";
  const ModuleComparison found = comparison_of(text, with("jax-rs-plain"));
  EXPECT_EQ(found.product.problem, (GemmProblem{1024, 512, 1024}));
  const Picoseconds product = ceil_to_clock(Seconds{2.0 * 1024 * 512 * 256 / 100e12});
  EXPECT_EQ(2 * at(found, DifferenceKind::missing, "sum").gain, makespan_of(found) - product)
      << "an all-reduce is a reduce-scatter and as long an all-gather";
}

TEST(ModuleDifferences, BytesBeyondOursCostTheirTime) {
  // Each half of the columns gathers the rows of X again.
  const Extents e{4, 512, 1024, 256};
  const std::string half = fmt::format("bf16[{},{}]", e.k, e.n / 2), out = fmt::format("bf16[{},{}]", e.m * e.devices, e.n / 2);
  std::string entry;
  for (const int h : {0, 1})
    entry += fmt::format(
        "  %w{0} = {1} slice(%w), slice={{[0:{2}], [{3}:{4}]}}\n  %all{0} = {5} all-gather(%x), channel_id=1, replica_groups={6}, dimensions={{0}}, "
        "use_global_device_ids=true\n  %y{0} = {7} dot(%all{0}, %w{0}), {8}\n",
        h, half, e.k, h * e.n / 2, (h + 1) * e.n / 2, e.all_x(), e.everyone(), out, contracting);
  entry += fmt::format("  ROOT %y = {} concatenate(%y0, %y1), dimensions={{1}}\n", e.y());
  const ModuleComparison found = comparison_of(module_of(e, "", entry), with("tp-ag-plain"));
  const Picoseconds product = ceil_to_clock(Seconds{2.0 * e.m * 4 * e.k * e.n / 2 / 100e12}),
                    gather{(makespan_of(found).count() - 2 * product.count()) / 2};
  ASSERT_EQ(kinds_of(found), (std::vector{DifferenceKind::superfluous, DifferenceKind::superfluous}));
  for (const ModuleDifference& one : found.schedules.front().differences) {
    EXPECT_EQ(one.time, gather);
    EXPECT_EQ(one.gain, Picoseconds{gather.count() / 2}) << "twice as many bytes as ours, in two equal transfers";
    EXPECT_THAT(one.sentence, HasSubstr("moves the left operand; all transfers of it take 25.17 MB of link traffic, 2 times ours"));
  }
}

TEST(ModuleDifferences, SeveralSchedulesAreComparedEachAlone) {
  const ModuleComparison found = comparison_of(gathered({}), with("tp-ag-overlapped,tp-ag-plain"));
  ASSERT_EQ(found.schedules.size(), 2u);
  EXPECT_EQ(found.schedules[0].name, "tp-ag-overlapped os");
  EXPECT_EQ(found.schedules[0].differences.size(), 1u);
  EXPECT_THAT(found.schedules[1].differences, IsEmpty());
}

TEST(ModuleDifferences, AGivenProductNeedsNoArraysOfItsForm) {
  const Extents e;
  Given given = with("tp-ag-overlapped");
  given.emplace_back("gemm", "m=2048,n=1024,k=512");
  const ModuleComparison found = comparison_of(ring(e, e.devices), given);
  EXPECT_TRUE(found.product_given);
  EXPECT_EQ(found.product.problem.k, 512);
  EXPECT_THAT(found.notes, ::testing::ElementsAre(::testing::HasSubstr("the axes over which its collectives run"), "the module's products have 4.295 GFLOP on all devices, the given one 2.147 GFLOP"));
  EXPECT_EQ(at(found, DifferenceKind::superfluous, "send").gain, Picoseconds{41'943'040 - 34'141'635});
}

TEST(ModuleDifferences, WhatCannotBeComparedSaysWhy) {
  const Extents e;
  EXPECT_THAT(error_of(module_of(e, "", "  ROOT %y = " + e.x() + " copy(%x)\n", e.x()), with("collective")),
              HasSubstr(".hlo:1:1: expected a module with a product of matrices, found none in m"));
  const std::string twice =
      fmt::format("  %h = {} dot(%x, %w), {}\n  ROOT %y = {} dot(%h, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}\n", e.part(),
                  contracting, e.x());
  EXPECT_THAT(error_of(module_of(e, "", twice, e.x()), with("collective")),
              HasSubstr(".hlo:7:3: expected a module of one product, found y, which multiplies the result of another product; `gemm` says which product it is, as "
                        "m=2048,n=1024,k=512"));
  const std::string replicated = fmt::format("  ROOT %y = {} dot(%x, %w), {}\n", e.part(), contracting);
  EXPECT_THAT(error_of(module_of(e, "", replicated, e.part()), with("collective")),
              HasSubstr(".hlo:6:3: expected arrays that are split evenly over the 4 devices, found x bf16[512,1024], w bf16[1024,256] and result 0 "
                        "bf16[512,256] for 1.074 GFLOP"));
  EXPECT_THAT(error_of(ring(e, 4), {{"slice", "4"}}),
              HasSubstr("which schedule is the module compared with? `algorithms` names them: collective, meshslice"));
  EXPECT_THAT(error_of(ring(e, 4), {{"slice", "8"}, {"algorithm", "collective"}}),
              HasSubstr("expected a mesh of the module's 4 devices, found row=8"));
  EXPECT_THAT(error_of(ring(e, 4), {{"slice", "4"}, {"algorithm", "collectiv"}}), HasSubstr("collectiv"));
  EXPECT_THAT(error_of(ring(e, 4), {{"slice", "4"}, {"algorithm", "collective"}, {"workload", "gpt3-block"}}),
              HasSubstr("`msccl` and `chakra`, found several"));
}

}  // namespace
}  // namespace podsim
