// Schedules of ours, written as HLO and read back: the same collectives, the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/unroll.hpp"
#include "workloads/hlo/collective_axes.hpp"
#include "workloads/hlo/hlo_summary.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/test_schedule_as_hlo.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim::hlo_round_trip {
namespace {

using testing::Blank;
using testing::schedule_as_hlo;
using testing::system_with;

const CollectivePolicy by_dimension{std::string{by_dimension_name}, {}};

/// One line for each collective: kind, axes, distance of a permute, bytes, sorted.
using Collectives = std::vector<std::string>;

/// What a summary of a module tells: also those along one device, which send nothing, and not the source of a broadcast. What a schedule tells: the
/// other way round.
enum class Seen { by_summary, by_schedule };

Collectives collectives_of(const Schedule& schedule, Seen seen) {
  Collectives lines;
  const Program& program = schedule.programs.at(0);
  for (const Task& task : program.tasks) {
    if (const auto* shift = std::get_if<Shift>(&task.op))
      lines.push_back(fmt::format("collective-permute {} by {} {}", schedule.mesh.name(shift->axis), shift->axis.size == 2 ? 1 : shift->by.constant,
                                  bytes_of(program, shift->source).count()));
    const auto* collective = std::get_if<Collective>(&task.op);
    if (collective == nullptr) continue;
    const bool is_broadcast = collective->kind == CollectiveKind::broadcast;
    std::string line = is_broadcast ? "collective-broadcast" : std::string{name_of(collective->kind)};
    bool is_alone = true;
    for (const AxisView& view : collective->axes)
      if (view.size > 1) is_alone = false, line += ' ' + schedule.mesh.name(view);
    if (is_alone && seen == Seen::by_schedule) continue;
    if (is_broadcast && seen == Seen::by_schedule) line += fmt::format(" from {}", collective->root);
    lines.push_back(fmt::format("{} {}", line, bytes_of(program, collective->input).count()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

Collectives collectives_of(const HloModule& module, const System& system) {
  Collectives lines;
  const auto summary = summary_of(module, system.machine);
  EXPECT_TRUE(summary) << to_text(summary.error());
  for (const HloCollectiveCount& collective : summary->collectives) {
    const HloInstruction& at = module.computations[static_cast<std::size_t>(collective.place.computation)]
                                   .instructions[static_cast<std::size_t>(collective.place.instruction)];
    const auto axes = collective_axes(module, at, &system.mesh);
    EXPECT_TRUE(axes && axes->axes) << at.name;
    EXPECT_TRUE(collective.asynchronous) << at.name;
    std::string along;
    for (const std::string& axis : axes->axes.value_or(std::vector<std::string>{})) along += ' ' + axis;
    if (axes->shift) along += fmt::format(" by {}", axes->shift->by);
    for (std::int64_t i = 0; i < collective.count; ++i)
      lines.push_back(fmt::format("{}{} {}", name_of(collective.kind), along, collective.bytes.count()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

HloModule module_of(const std::string& text) {
  auto module = parse_hlo(text, "m");
  EXPECT_TRUE(module) << to_text(module.error()) << '\n' << text;
  return module ? *std::move(module) : HloModule{};
}

Schedule schedule_of(const HloModule& module, const Mesh& mesh) {
  auto schedule = hlo_schedule(module, mesh);
  EXPECT_TRUE(schedule) << to_text(schedule.error());
  return schedule ? std::move(schedule->schedule) : Schedule{};
}

podsim::Run run_of(const System& system, const Schedule& schedule) {
  auto run = simulate(system, schedule, {}, by_dimension);
  EXPECT_TRUE(run) << to_text(run.error());
  return *std::move(run);
}

/// When each task of a schedule begins on device 0. Collectives: 0.
std::vector<Picoseconds> begins_of(const System& system, const Schedule& schedule) {
  RunOptions options;
  options.fold = false;
  const auto run = simulate(system, schedule, options, by_dimension);
  EXPECT_TRUE(run) << to_text(run.error());
  const std::vector<Task>& lowered = run->lowered->programs.at(0).tasks;
  std::vector<Picoseconds> begins_lowered(lowered.size()), begins;
  for (const Span& span : spans_of(unroll(*run->lowered).graph, run->timeline))
    if (span.device == DeviceId{} && span.part != Span::Part::receive) begins_lowered[span.task.index()] = span.start;
  // What lowering leaves as it is stands in the same order.
  std::size_t next = 0;
  for (const Task& task : schedule.programs.at(0).tasks) {
    begins.emplace_back();
    if (std::holds_alternative<Collective>(task.op)) continue;
    while (lowered[next].origin) ++next;
    begins.back() = begins_lowered[next++];
  }
  return begins;
}

struct Case {
  std::string algorithm;
  Dataflow dataflow;
  std::string slice;
  std::int64_t slice_count = 0;
  GemmProblem problem;
};

std::string text_of(const Case& what) {
  const GemmProblem& p = what.problem;
  return fmt::format("{} {} {} S={} {}x{}x{}", what.algorithm, name_of(what.dataflow), what.slice, what.slice_count, p.m, p.n, p.k);
}

std::vector<Case> cases_of(const std::vector<std::string>& algorithms, const std::vector<std::int64_t>& extents) {
  std::vector<Case> all;
  for (const std::string& algorithm : algorithms)
    for (const char* slice : test::sanitized ? std::vector{"4x2"} : std::vector{"2x2", "4x2", "8x1"})
      for (const Dataflow dataflow : all_dataflows)
        for (const std::int64_t extent : extents) {
          std::vector<std::int64_t> slice_counts{0};
          if (algorithm == "meshslice") slice_counts = {2, 4};
          if (algorithm == "summa") slice_counts = {8, 16};
          for (const std::int64_t S : slice_counts) all.push_back({algorithm, dataflow, slice, S, {extent, extent, extent, DType::bf16, dataflow}});
        }
  return all;
}

/// `block`: of meshslice.
Schedule ours(const System& system, const Case& what, std::int64_t block = 8) {
  GemmOptions options;
  options.slice_count = what.slice_count;
  options.block = block;
  auto made = make_gemm(**gemm_algorithm(what.algorithm), system.mesh, what.problem, options);
  EXPECT_TRUE(made) << to_text(made.error());
  Schedule schedule = *std::move(made);
  if (what.algorithm == "summa" && what.dataflow != Dataflow::os) schedule = testing::with_all_reduces(std::move(schedule));
  return schedule;
}

testing::WrittenHlo written(const System& system, const Schedule& schedule, Blank blank = Blank::zeros) {
  return schedule_as_hlo(testing::in_order_of_time(schedule, begins_of(system, schedule)), blank);
}

System system_of(const std::string& machine, const std::string& slice) { return system_with({{"machine", machine}, {"slice", slice}}); }

/// Matched, free of deadlocks and races.
void expect_sound(const System& system, const Schedule& schedule) {
  const auto lowered = lower_problem(system, Problem{schedule, by_dimension, {}}, {});
  ASSERT_TRUE(lowered) << to_text(lowered.error());
  CheckOptions how;
  how.structure_only = true;
  const auto report = check(lowered->lowered, how);
  ASSERT_TRUE(report) << to_text(report.error());
  EXPECT_TRUE(report->ok) << to_text(report->problems);
}

void expect_same(const podsim::Run& after, const podsim::Run& before) {
  EXPECT_EQ(after.metrics.makespan.count(), before.metrics.makespan.count());
  EXPECT_EQ(after.metrics.split.compute.count(), before.metrics.split.compute.count());
  EXPECT_EQ(after.metrics.link_bytes, before.metrics.link_bytes);
  EXPECT_EQ(after.metrics.flops.count(), before.metrics.flops.count());
}

// 512: transfers take longer than products; 4096: products take longer.
const std::vector<std::int64_t> sizes{512, 4096};

void expect_round_trips(const std::string& algorithm, std::size_t schedules) {
  const std::vector<Case> cases = cases_of({algorithm}, sizes);
  EXPECT_EQ(cases.size(), schedules / test::cases(1, 3));
  for (const Case& what : cases) {
    SCOPED_TRACE(text_of(what));
    const System system = system_of("ideal", what.slice);
    const Schedule schedule = ours(system, what);
    const HloModule module = module_of(written(system, schedule).text);
    const Schedule back = schedule_of(module, system.mesh);
    EXPECT_EQ(collectives_of(module, system), collectives_of(schedule, Seen::by_summary));
    EXPECT_EQ(collectives_of(back, Seen::by_schedule), collectives_of(schedule, Seen::by_schedule));
    expect_same(run_of(system, back), run_of(system, schedule));
    expect_sound(system, back);
  }
}

// 108 schedules: three dataflows on three meshes in two sizes, with two slice counts where an algorithm takes one.
TEST(HloRoundTrip, MeshSliceTakesTheSameTimeByTheSameCollectives) { expect_round_trips("meshslice", 36); }
TEST(HloRoundTrip, CollectiveGemmsTakeTheSameTimeByTheSameCollectives) { expect_round_trips("collective", 18); }
TEST(HloRoundTrip, WangTakesTheSameTimeByTheSameCollectives) { expect_round_trips("wang", 18); }
// In LS and RS (24 of them) the panels of Y are all-reduced in both forms: HLO has no reduce to one device.
TEST(HloRoundTrip, SummaTakesTheSameTimeByTheSameCollectives) { expect_round_trips("summa", 36); }

/// "X=64x64" and "X=row,col"
std::string shape_text(const testing::HloTensor& tensor) { return fmt::format("{}={}", tensor.tensor, fmt::join(tensor.extents, "x")); }
std::string shard_text(const testing::HloTensor& tensor) {
  std::vector<std::string> dims;
  for (const std::vector<std::string>& axes : tensor.sharding)
    dims.push_back(axes.empty() ? "-" : axes.size() == 1 ? axes.front() : fmt::format("({})", fmt::join(axes, "+")));
  return fmt::format("{}={}", tensor.tensor, fmt::join(dims, ","));
}

/// The product that a schedule of ours computes, of tensors as they are stored.
std::string product_of(Dataflow dataflow) {
  switch (dataflow) {
    case Dataflow::os: return "Y = X @ W";
    case Dataflow::ls: return "Y = X @ W.T";
    case Dataflow::rs: return "Y = X.T @ W";
  }
  return {};
}

TEST(HloRoundTrip, ComputesTheSameProduct) {
  const auto entry = [](std::string text) { return ProgramText::Entry{std::move(text), {"program", 1, 1}}; };
  int proven = 0;
  for (const Case& what : cases_of({"meshslice", "collective", "wang", "summa"}, {64})) {
    SCOPED_TRACE(text_of(what));
    const System system = system_of("ideal", what.slice);
    const testing::WrittenHlo module = written(system, ours(system, what, 2));
    HloSpec spec{std::make_shared<const HloModule>(module_of(module.text))};
    spec.options.values = true;
    spec.equals.emplace();
    spec.equals->statements = {entry(product_of(what.dataflow))};
    for (const testing::HloTensor& tensor : module.parameters) {
      spec.equals->shapes.push_back(entry(shape_text(tensor)));
      spec.equals->shards.push_back(entry(shard_text(tensor)));
    }
    spec.equals->outs = {entry(shard_text(module.result))};
    const auto problem = make_problem(system, spec);
    ASSERT_TRUE(problem) << to_text(problem.error());
    RunOptions options;
    options.inline_calls = true;
    const auto lowered = lower_problem(system, *problem, options);
    ASSERT_TRUE(lowered) << to_text(lowered.error());
    CheckOptions how;
    how.random_orders = 1;
    const auto report = check(lowered->lowered, how);
    ASSERT_TRUE(report) << to_text(report.error());
    EXPECT_TRUE(report->ok) << to_text(report->problems);
    proven += report->bit_equal ? 1 : 0;
  }
  EXPECT_EQ(proven, test::cases(54, 18));
}

TEST(HloRoundTrip, HoldsForProductsOfAnyShape) {
  std::vector<Case> cases = cases_of({"meshslice", "collective", "wang", "summa"}, {0});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    // 512 to 8192, so that each of gathers, hops and products is the longest somewhere.
    const auto extent = [&](std::size_t stride) { return std::int64_t{512} << ((i * stride + i / 5) % 5); };
    Case& what = cases[i];
    what.problem = {extent(1), extent(2), extent(3), DType::bf16, what.dataflow};
    SCOPED_TRACE(text_of(what));
    const System system = system_of("ideal", what.slice);
    const Schedule schedule = ours(system, what);
    expect_same(run_of(system, schedule_of(module_of(written(system, schedule).text), system.mesh)), run_of(system, schedule));
  }
}

// With launches, latencies, tiles of the matrix unit, efficiencies, and HBM that copies, products and transfers share.
TEST(HloRoundTrip, OnATpuMeshSliceAndCollectiveTakeTheSameTime) {
  for (const Case& what : cases_of({"meshslice", "collective"}, {4096})) {
    SCOPED_TRACE(text_of(what));
    const System system = system_of("tpu_v4", what.slice);
    const Schedule schedule = ours(system, what, 128);
    expect_same(run_of(system, schedule_of(module_of(written(system, schedule, Blank::allocated).text), system.mesh)), run_of(system, schedule));
  }
}

// HLO cuts what it sends: the halves of Wang's blocks and the panels of SUMMA, of which our transfers read a part of a matrix; and it adds on the
// core, where our dma adds. Measured on tpu_v4, 4096 x 4096 x 4096: SUMMA takes 0.1 to 2.1 % longer, Wang from 2.4 % less to 16 % more. Without
// memory traffic nothing is left of it.
TEST(HloRoundTrip, OnATpuOnlyMemoryTrafficDistinguishesWangAndSumma) {
  for (const Case& what : cases_of({"wang", "summa"}, {512, 4096})) {
    SCOPED_TRACE(text_of(what));
    const System system = system_with({{"machine", "tpu_v4"},
                                       {"slice", what.slice},
                                       {"set", "chip.hbm_bandwidth=unlimited"},
                                       {"set", "chip.vector_peak=unlimited"},
                                       {"set", "chip.reduce_bandwidth=unlimited"}});
    const Schedule schedule = ours(system, what);
    expect_same(run_of(system, schedule_of(module_of(written(system, schedule, Blank::allocated).text), system.mesh)), run_of(system, schedule));
  }
}

// ---- Modules with one mistake ----

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

struct Original {
  System system;
  Schedule schedule;
  std::string text;
};
Original original(const Case& what) {
  System system = system_of("ideal", what.slice);
  Schedule schedule = ours(system, what);
  std::string text = written(system, schedule).text;
  return {std::move(system), std::move(schedule), std::move(text)};
}

constexpr GemmProblem large_os{4096, 4096, 4096, DType::bf16, Dataflow::os};

TEST(HloRoundTrip, AGroupAlongTheOtherAxisIsSeen) {
  const Original original = hlo_round_trip::original({"meshslice", Dataflow::os, "2x2", 4, large_os});
  const HloModule wrong = module_of(replaced(original.text, "replica_groups={{0,1},{2,3}}", "replica_groups={{0,2},{1,3}}"));
  EXPECT_NE(collectives_of(wrong, original.system), collectives_of(original.schedule, Seen::by_summary));
}

TEST(HloRoundTrip, AnotherSourceOfABroadcastIsSeen) {
  const Original original = hlo_round_trip::original({"summa", Dataflow::os, "2x2", 8, large_os});
  const HloModule wrong = module_of(replaced(original.text, "replica_groups={{1,0},{3,2}}", "replica_groups={{0,1},{2,3}}"));
  EXPECT_NE(collectives_of(schedule_of(wrong, original.system.mesh), Seen::by_schedule), collectives_of(original.schedule, Seen::by_schedule));
}

TEST(HloRoundTrip, APermuteTheOtherWayIsSeen) {
  const Original original = hlo_round_trip::original({"wang", Dataflow::os, "4x2", 0, large_os});
  const HloModule wrong = module_of(replaced(original.text, "source_target_pairs={{0,2},{1,3},{2,4},{3,5},{4,6},{5,7},{6,0},{7,1}}",
                                             "source_target_pairs={{0,6},{1,7},{2,0},{3,1},{4,2},{5,3},{6,4},{7,5}}"));
  EXPECT_NE(collectives_of(wrong, original.system), collectives_of(original.schedule, Seen::by_summary));
}

TEST(HloRoundTrip, ADoneRightBehindItsStartCostsTheOverlap) {
  const Original original = hlo_round_trip::original({"meshslice", Dataflow::os, "2x2", 4, large_os});
  std::string text = original.text;
  // The last gather waits at once.
  const std::size_t done = text.rfind("  %all-gather-done"), done_end = text.find('\n', done) + 1;
  const std::string line = text.substr(done, done_end - done);
  text.erase(done, done_end - done);
  const std::size_t start = text.find("  %" + line.substr(line.find("(%") + 2, line.rfind(')') - line.find("(%") - 2) + " ");
  text.insert(text.find('\n', start) + 1, line);
  const Picoseconds late = run_of(original.system, schedule_of(module_of(text), original.system.mesh)).metrics.makespan;
  EXPECT_GT(late.count(), run_of(original.system, original.schedule).metrics.makespan.count());
}

TEST(HloRoundTrip, AProductOfOtherExtentsIsSeen) {
  const Original original = hlo_round_trip::original({"collective", Dataflow::os, "2x2", 0, large_os});
  std::string text = original.text;
  const std::size_t dot = text.find(" dot(");
  text.replace(text.find("rhs_contracting_dims={0}", dot), 24, "rhs_contracting_dims={1}");
  const auto module = parse_hlo(text, "m");
  EXPECT_FALSE(module && hlo_schedule(*module, original.system.mesh)) << "4096 columns of X and 2048 of W";
}

// ---- What the reader of modules does for this ----

std::string accumulation(const std::string& root) {
  return R"(HloModule m, is_scheduled=true

%fused (a: f32[16,8], b: f32[8,4], c: f32[16,4]) -> f32[16,4] {
  %a = f32[16,8] parameter(0)
  %b = f32[8,4] parameter(1)
  %c = f32[16,4] parameter(2)
  %d = f32[16,4] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %s = f32[16,4] add(%d, %c)
}

ENTRY %main (x: f32[16,8], w: f32[8,4]) -> f32[16,4] {
  %x = f32[16,8] parameter(0)
  %w = f32[8,4] parameter(1)
  %first = f32[16,4] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %second = f32[16,4] fusion(%x, %w, %first), kind=kOutput, calls=%fused
  ROOT %out = f32[16,4] )" +
         root + "\n}\n";
}

std::vector<Matmul> products_of(const std::string& text) {
  const System system = system_of("ideal", "1");
  const Schedule schedule = schedule_of(module_of(text), system.mesh);
  std::vector<Matmul> products;
  for (const Task& task : schedule.programs.at(0).tasks)
    if (const auto* product = std::get_if<Matmul>(&task.op)) products.push_back(*product);
  return products;
}

TEST(HloAccumulation, AFusionOfDotAndAddAddsInPlace) {
  const std::vector<Matmul> products = products_of(accumulation("negate(%second)"));
  ASSERT_EQ(products.size(), 2u);
  EXPECT_FALSE(products[0].accumulate);
  EXPECT_TRUE(products[1].accumulate);
  EXPECT_EQ(products[1].out, products[0].out);
  EXPECT_EQ(extents_of(products[1]), (MatmulExtents{16, 4, 8}));
}

TEST(HloAccumulation, NotWhereTheSumIsUsedLater) {
  EXPECT_EQ(products_of(accumulation("multiply(%second, %first)")).size(), 1u) << "the fusion is other work then";
}

TEST(HloAccumulation, NotWhereTheFusionComputesMore) {
  std::string text = accumulation("negate(%second)");
  text = replaced(text, "ROOT %s = f32[16,4] add(%d, %c)", "%s = f32[16,4] add(%d, %c)\n  ROOT %t = f32[16,4] tanh(%s)");
  EXPECT_EQ(products_of(text).size(), 1u);
}

TEST(HloBroadcast, TheFirstDeviceOfAGroupIsItsSource) {
  const System system = system_of("ideal", "2x2");
  const auto module_with = [](const std::string& groups) {
    return R"(HloModule m, is_scheduled=true, num_partitions=4

ENTRY %main (x: f32[16,8]) -> f32[16,8] {
  %x = f32[16,8] parameter(0)
  ROOT %b = f32[16,8] collective-broadcast(%x), channel_id=1, replica_groups=)" +
           groups + "\n}\n";
  };
  const auto lines = [&](const std::string& groups) {
    return collectives_of(schedule_of(module_of(module_with(groups)), system.mesh), Seen::by_schedule);
  };
  EXPECT_EQ(lines("{{0,1},{2,3}}"), Collectives{"collective-broadcast col from 0 512"});
  EXPECT_EQ(lines("{{1,0},{3,2}}"), Collectives{"collective-broadcast col from 1 512"});
  EXPECT_EQ(lines("{{2,0},{3,1}}"), Collectives{"collective-broadcast row from 1 512"});
  // Sources at different positions are no root along an axis: each sends to the other of its group.
  const Schedule mixed = schedule_of(module_of(module_with("{{1,0},{2,3}}")), system.mesh);
  const auto is_permute = [](const Task& task) { return std::holds_alternative<Collective>(task.op) && std::get<Collective>(task.op).kind == CollectiveKind::permute; };
  const auto permute = std::ranges::find_if(mixed.programs.at(0).tasks, is_permute);
  ASSERT_NE(permute, mixed.programs.at(0).tasks.end());
  EXPECT_THAT(std::get<Collective>(permute->op).pairs, ::testing::UnorderedElementsAre(Collective::Pair{1, 0}, Collective::Pair{2, 3}));
}

}  // namespace
}  // namespace podsim::hlo_round_trip
