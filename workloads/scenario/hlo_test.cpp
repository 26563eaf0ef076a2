// Compiled modules as schedules: their times, memory, traffic and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "sim/engine/numeric/check.hpp"
#include "workloads/hlo/hlo_memory.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using ::testing::HasSubstr;
using testing::system_with;

HloSpec spec_of(const std::string& text, HloScheduleOptions options = {}) {
  auto module = parse_hlo(text, "m");
  EXPECT_TRUE(module) << to_text(module.error());
  return {std::make_shared<const HloModule>(module ? *std::move(module) : HloModule{}), std::move(options), {}, CollectivePolicy{}};
}

podsim::Run run_of(const System& system, const HloSpec& spec, const RunOptions& options = {}) {
  const auto problem = make_problem(system, spec);
  EXPECT_TRUE(problem) << to_text(problem.error());
  auto run = simulate(system, *problem, options);
  EXPECT_TRUE(run) << to_text(run.error());
  return *std::move(run);
}

std::string error_of(const System& system, const HloSpec& spec) {
  const auto problem = make_problem(system, spec);
  return problem ? "" : to_text(problem.error());
}

/// Matched, free of deadlocks and races, loops written out.
void expect_sound(const System& system, const HloSpec& spec) {
  RunOptions options;
  options.inline_calls = true;
  const auto lowered = lower_problem(system, *make_problem(system, spec), options);
  ASSERT_TRUE(lowered) << to_text(lowered.error());
  CheckOptions how;
  how.structure_only = true;
  const auto report = check(lowered->lowered, how);
  ASSERT_TRUE(report) << to_text(report.error());
  EXPECT_TRUE(report->ok) << to_text(report->problems);
}

/// A ring of `devices` that gathers rows of X, [rows, 64] on each, while it multiplies: Y = X @ W.
std::string collective_matmul(int devices, int rows, const std::string& schedule = ", is_scheduled=true") {
  std::string pairs;
  for (int d = 0; d < devices; ++d) pairs += fmt::format("{}{{{},{}}}", d == 0 ? "" : ",", d, (d + 1) % devices);
  return fmt::format(R"(HloModule ring{4}, num_partitions={0}

%body (p: (s32[], bf16[{1},64], bf16[64,32], bf16[{2},32])) -> (s32[], bf16[{1},64], bf16[64,32], bf16[{2},32]) {{
  %p = (s32[], bf16[{1},64], bf16[64,32], bf16[{2},32]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = bf16[{1},64] get-tuple-element(%p), index=1
  %w = bf16[64,32] get-tuple-element(%p), index=2
  %y = bf16[{2},32] get-tuple-element(%p), index=3
  %start = (bf16[{1},64], bf16[{1},64], u32[], u32[]) collective-permute-start(%x), channel_id=1, source_target_pairs={{{3}}}
  %part = bf16[{1},32] dot(%x, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  %zero = s32[] constant(0)
  %sum = bf16[{2},32] dynamic-update-slice(%y, %part, %i, %zero)
  %done = bf16[{1},64] collective-permute-done(%start)
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %t = (s32[], bf16[{1},64], bf16[64,32], bf16[{2},32]) tuple(%next, %done, %w, %sum)
}}

%condition (q: (s32[], bf16[{1},64], bf16[64,32], bf16[{2},32])) -> pred[] {{
  %q = (s32[], bf16[{1},64], bf16[64,32], bf16[{2},32]) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %n = s32[] constant({0})
  ROOT %less = pred[] compare(%j, %n), direction=LT
}}

ENTRY %main (a: bf16[{1},64], b: bf16[64,32]) -> bf16[{2},32] {{
  %a = bf16[{1},64] parameter(0)
  %b = bf16[64,32] parameter(1)
  %first = s32[] constant(0)
  %z = bf16[] constant(0)
  %init = bf16[{2},32] broadcast(%z), dimensions={{}}
  %state = (s32[], bf16[{1},64], bf16[64,32], bf16[{2},32]) tuple(%first, %a, %b, %init)
  %loop = (s32[], bf16[{1},64], bf16[64,32], bf16[{2},32]) while(%state), condition=%condition, body=%body
  ROOT %out = bf16[{2},32] get-tuple-element(%loop), index=3
}}
)",
                     devices, rows, rows * devices, pairs, schedule);
}

TEST(HloRun, TransfersHideBehindProductsAsFarAsTheModuleLetsThem) {
  constexpr int devices = 4, rows = 256;
  const HloSpec spec = spec_of(collective_matmul(devices, rows));
  const double product_s = 2.0 * rows * 64 * 32 / 100e12, transfer_s = rows * 64 * 2 / 100e9;
  const podsim::Run slow = run_of(system_with({{"machine", "ideal"}, {"slice", "4"}}), spec);
  EXPECT_EQ(slow.metrics.makespan, devices * ceil_to_clock(Seconds{transfer_s}));
  EXPECT_EQ(slow.metrics.split.compute, devices * ceil_to_clock(Seconds{product_s}));
  EXPECT_EQ(slow.metrics.link_bytes, devices * devices * rows * 64 * 2);
  EXPECT_DOUBLE_EQ(slow.metrics.flops.count(), devices * devices * 2.0 * rows * 64 * 32);
  const podsim::Run fast = run_of(system_with({{"machine", "ideal"}, {"slice", "4"}, {"set", "link.bandwidth=100TB/s"}}), spec);
  EXPECT_EQ(fast.metrics.makespan, devices * ceil_to_clock(Seconds{product_s}));
}

TEST(HloRun, LoopsAsCallsTakeTheTimeOfLoopsWrittenOut) {
  for (const char* machine : {"ideal", "tpu_v4"}) {
    const System system = system_with({{"machine", machine}, {"slice", machine == std::string{"ideal"} ? "8" : "8x1"}, {"mesh", "x=8"}});
    const HloSpec spec = spec_of(collective_matmul(8, 512));
    expect_sound(system, spec);
    RunOptions inlined;
    inlined.inline_calls = true;
    inlined.fold = false;
    const podsim::Run called = run_of(system, spec), written_out = run_of(system, spec, inlined);
    EXPECT_EQ(called.row.calls.played, 8);
    EXPECT_EQ(called.metrics.makespan, written_out.metrics.makespan);
    EXPECT_EQ(called.metrics.split, written_out.metrics.split);
    EXPECT_EQ(called.metrics.tasks, written_out.metrics.tasks);
  }
}

/// Weights [32, 64, 64] of 32 layers, updated in place: donated. Each layer is gathered from two devices and added to.
std::string stacked_layers() {
  return R"(HloModule stacked, is_scheduled=true, num_partitions=2, input_output_alias={ {}: (0, {}, may-alias) }

%body (p: (s32[], f32[32,64,64])) -> (s32[], f32[32,64,64]) {
  %p = (s32[], f32[32,64,64]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %weights = f32[32,64,64] get-tuple-element(%p), index=1
  %zero = s32[] constant(0)
  %layer = f32[1,64,64] dynamic-slice(%weights, %i, %zero, %zero), dynamic_slice_sizes={1,64,64}
  %gathered = f32[2,64,64] all-gather(%layer), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  %kept = f32[1,64,64] slice(%gathered), slice={[0:1], [0:64], [0:64]}
  %new = f32[32,64,64] dynamic-update-slice(%weights, %kept, %i, %zero, %zero)
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %t = (s32[], f32[32,64,64]) tuple(%next, %new)
}

%condition (q: (s32[], f32[32,64,64])) -> pred[] {
  %q = (s32[], f32[32,64,64]) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %n = s32[] constant(32)
  ROOT %less = pred[] compare(%j, %n), direction=LT
}

ENTRY %main (w: f32[32,64,64]) -> f32[32,64,64] {
  %w = f32[32,64,64] parameter(0)
  %first = s32[] constant(0)
  %state = (s32[], f32[32,64,64]) tuple(%first, %w)
  %loop = (s32[], f32[32,64,64]) while(%state), condition=%condition, body=%body
  ROOT %out = f32[32,64,64] get-tuple-element(%loop), index=1
}
)";
}

TEST(HloRun, CallsThatWouldBeTooManyTasksAreNotWrittenOut) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "8"}});
  const auto problem = make_problem(system, spec_of(collective_matmul(8, 512)));
  RunOptions options;
  options.inline_calls = true;
  options.most_instances = 25 * 20;  // 20 tasks
  const auto refused = simulate(system, *problem, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_text(refused.error()), HasSubstr("the calls of ring written out are 5.8e-05 million tasks"));
  options.force = true;
  EXPECT_TRUE(simulate(system, *problem, options));
  options.force = options.inline_calls = false;
  EXPECT_TRUE(simulate(system, *problem, options)) << "played";
}

TEST(HloRun, DonatedWeightsThatALoopUpdatesAreOnePlace) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "2"}});
  const HloSpec spec = spec_of(stacked_layers());
  expect_sound(system, spec);
  constexpr std::int64_t layer = 64 * 64 * 4, weights = 32 * layer;
  RunOptions inlined;
  inlined.inline_calls = true;
  EXPECT_EQ(run_of(system, spec, inlined).metrics.peak_memory, Bytes{weights + 2 * layer}) << "and the gathered copy, which the own layer goes into before it is sent";
  constexpr std::int64_t counters = 2 * 4;
  EXPECT_EQ(peak_memory_of(*spec.module)->hbm, (Bytes{weights + layer + 2 * layer + counters})) << "by live ranges of the text";
  std::string undonated = stacked_layers();
  undonated.erase(undonated.find(", input_output_alias"), undonated.find("\n") - undonated.find(", input_output_alias"));
  EXPECT_EQ(run_of(system, spec_of(undonated), inlined).metrics.peak_memory, Bytes{2 * weights + 2 * layer}) << "the parameter stays";
}

TEST(HloRun, MemoryIsThatOfTheTextWhetherTheModuleIsScheduledOrNot) {
  for (const std::string schedule : {", is_scheduled=true", ""}) {
    const HloSpec spec = spec_of(collective_matmul(4, 64, schedule));
    const auto memory = peak_memory_of(*spec.module);
    ASSERT_TRUE(memory);
    const auto row = [&](std::int64_t hbm) { return run_of(system_with({{"machine", "ideal"}, {"slice", "4"}, {"set", fmt::format("chip.hbm={}B", hbm)}}), spec).row; };
    EXPECT_EQ(row(memory->required.count()).result.peak_memory_bytes, memory->hbm.count()) << schedule;
    EXPECT_FALSE(row(memory->required.count()).over_hbm) << schedule;
    EXPECT_TRUE(row(memory->required.count() - 1).over_hbm) << schedule;
  }
}

TEST(HloRun, PinnedMemoryOfTheHostIsNoDeviceMemory) {
  const auto peak = [](const std::string& space) {
    const std::string array = "f32[1024]{0" + space + "}";
    const HloSpec spec = spec_of("HloModule m, is_scheduled=true\n\nENTRY e {\n  x = f32[1024]{0} parameter(0)\n  s = (" + array + ", f32[1024]{0}, u32[]) copy-start(x)\n  d = " + array +
                                 " copy-done(s)\n  w = f32[8192]{0} concatenate(x, x, x, x, x, x, x, x), dimensions={0}\n  t = f32[1024]{0} slice(w), slice={[0:1024]}\n  u = f32[1024]{0} negate(t)\n  b = (f32[1024]{0}, " + array +
                                 ", u32[]) copy-start(d)\n  c = f32[1024]{0} copy-done(b)\n  r = f32[2048]{0} concatenate(u, c), dimensions={0}\n  ROOT o = f32[8]{0} slice(r), slice={[0:8]}\n}\n");
    const auto problem = make_problem(system_with({{"machine", "ideal"}, {"slice", "1"}}), spec);
    EXPECT_TRUE(problem) << to_text(problem.error());
    const std::vector<Buffer>& buffers = problem->schedule.programs.front().buffers;
    const auto copied = std::ranges::find(buffers, "d", &Buffer::name);
    EXPECT_NE(copied, buffers.end());
    return std::pair{peak_memory_of(*spec.module)->hbm, size_on_device(*copied)};
  };
  const auto [by_ranges, of_run] = peak("");
  const auto [by_ranges_away, of_run_away] = peak(":S(5)");
  EXPECT_EQ(by_ranges - by_ranges_away, Bytes{4096});
  EXPECT_EQ(of_run, Bytes{4096});
  EXPECT_EQ(of_run_away, Bytes{});
}

/// 32 layers on 4096 devices: y = y @ (the layer's weights, gathered over 256 devices), which are then updated in place. As a loop, or as 32 copies of its text.
std::string deep_model(bool as_loop) {
  const auto layer = [](const std::string& i, const std::string& y, const std::string& w, const std::string& n) {
    return fmt::format(R"(  %layer{3} = bf16[1,4,1024] dynamic-slice(%{2}, %{0}, %zero, %zero), dynamic_slice_sizes={{1,4,1024}}
  %own{3} = bf16[4,1024] bitcast(%layer{3})
  %all{3} = bf16[1024,1024] all-gather(%own{3}), channel_id=1, replica_groups=[16,256]<=[4096], dimensions={{0}}, use_global_device_ids=true
  %y{3} = bf16[64,1024] dot(%{1}, %all{3}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  %new{3} = bf16[1,4,1024] negate(%layer{3})
  %w{3} = bf16[32,4,1024] dynamic-update-slice(%{2}, %new{3}, %{0}, %zero, %zero)
)",
                       i, y, w, n);
  };
  const std::string state = "(s32[], bf16[64,1024], bf16[32,4,1024])", begin = "ENTRY %main (w: bf16[32,4,1024], y: bf16[64,1024]) -> bf16[32,4,1024] {\n  %w = bf16[32,4,1024] parameter(0)\n"
                    "  %y = bf16[64,1024] parameter(1)\n  %zero = s32[] constant(0)\n";
  std::string text = "HloModule deep, is_scheduled=true, num_partitions=4096, input_output_alias={ {}: (0, {}, may-alias) }\n\n";
  if (!as_loop) {
    text += begin;
    for (int n = 0; n < 32; ++n)
      text += fmt::format("  %i.{0} = s32[] constant({0})\n", n) + layer(fmt::format("i.{}", n), n == 0 ? "y" : fmt::format("y.{}", n - 1), n == 0 ? "w" : fmt::format("w.{}", n - 1), fmt::format(".{}", n));
    return text + "  ROOT %out = bf16[32,4,1024] bitcast(%w.31)\n}\n";
  }
  text += "%body (p: " + state + ") -> " + state + " {\n  %p = " + state + " parameter(0)\n  %i = s32[] get-tuple-element(%p), index=0\n  %y = bf16[64,1024] get-tuple-element(%p), index=1\n"
          "  %w = bf16[32,4,1024] get-tuple-element(%p), index=2\n  %zero = s32[] constant(0)\n" + layer("i", "y", "w", ".b") +
          "  %one = s32[] constant(1)\n  %next = s32[] add(%i, %one)\n  ROOT %t = " + state + " tuple(%next, %y.b, %w.b)\n}\n\n";
  text += "%condition (q: " + state + ") -> pred[] {\n  %q = " + state + " parameter(0)\n  %j = s32[] get-tuple-element(%q), index=0\n  %n = s32[] constant(32)\n"
          "  ROOT %less = pred[] compare(%j, %n), direction=LT\n}\n\n";
  return text + begin + "  %s = " + state + " tuple(%zero, %y, %w)\n  %loop = " + state + " while(%s), condition=%condition, body=%body\n"
         "  ROOT %out = bf16[32,4,1024] get-tuple-element(%loop), index=2\n}\n";
}

TEST(HloRun, ADeepLoopOnManyDevicesIsThatOfItsLayersWrittenOut) {
  const System system = system_with({{"machine", "tpu_v5p"}, {"slice", "16x16x16"}, {"mesh", "fsdp=16,tp=256"}});
  const auto run = [&](bool as_loop) {
    HloSpec spec = spec_of(deep_model(as_loop));
    spec.collectives = HloSpec{}.collectives;  // by dimension
    return run_of(system, spec);
  };
  const podsim::Run loop = run(true), layers = run(false);
  EXPECT_EQ(loop.row.calls.played, 32);
  EXPECT_EQ(loop.row.result.device_classes, 1) << "folded";
  EXPECT_EQ(loop.metrics.makespan, layers.metrics.makespan);
  EXPECT_EQ(loop.metrics.link_bytes, layers.metrics.link_bytes);
  EXPECT_EQ(loop.metrics.flops, layers.metrics.flops);
  EXPECT_LT(loop.lowered->programs.front().tasks.size() + loop.lowered->functions.front().body.tasks.size(), layers.lowered->programs.front().tasks.size() / 16);
}

std::string entry(const std::string& instructions, int devices = 4, const std::string& header = ", is_scheduled=true") {
  return fmt::format(R"(HloModule m{}, num_partitions={}

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}}

ENTRY %main (x: f32[16,8]) -> f32[16,8] {{
  %x = f32[16,8] parameter(0)
{}
}}
)",
                     header, devices, instructions);
}

TEST(HloRun, GroupsMayBeFactorsOfAxes) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "4x2"}, {"mesh", "x=4,y=2"}});
  const auto bytes = [&](const std::string& groups) {
    const HloSpec spec = spec_of(entry("  ROOT %r = f32[16,8] all-reduce(%x), channel_id=1, replica_groups=" + groups + ", use_global_device_ids=true, to_apply=%add", 8));
    expect_sound(system, spec);
    const podsim::Run run = run_of(system, spec);
    double payload = 0;
    for (const auto& axis : run.metrics.axes) payload += axis.link_bytes;
    return payload;
  };
  // 512 bytes among P devices: each sends 2 (P - 1) / P of them, on links to neighbours.
  EXPECT_EQ(bytes("{{0,1},{2,3},{4,5},{6,7}}"), 8 * 512);
  EXPECT_EQ(bytes("[2,4]<=[4,2]T(1,0)"), 8 * 2 * 3 / 4.0 * 512);
  EXPECT_GT(bytes("{{0,1,2,3},{4,5,6,7}}"), 8 * 512) << "y, and every second step of x";
  EXPECT_EQ(bytes("mesh['a'=2,'b'=4] {'b'}"), bytes("{{0,1,2,3},{4,5,6,7}}"));
  EXPECT_EQ(bytes("{{0},{1},{2},{3},{4},{5},{6},{7}}"), 0);
}

TEST(HloRun, GroupsThatAreNoFactorsOfAxesExchangeInPairs) {
  const System ring = system_with({{"machine", "ideal"}, {"slice", "8"}}), switched = system_with({{"machine", "dgx_h100"}, {"slice", "1x8"}, {"mesh", "x=8"}});
  const std::string groups = ", channel_id=1, replica_groups={{0,1,2,4},{3,5,6,7}}, use_global_device_ids=true", back = "\n  ROOT %c = f32[16,8] copy(%x)";
  constexpr std::int64_t bytes = 16 * 8 * 4, parts = 4;
  struct Case {
    std::string instructions;
    std::int64_t sent;  // by all devices
  };
  for (const Case& one : std::vector<Case>{
           {"  %r = f32[64,8] all-gather(%x), dimensions={0}" + groups + back, 8 * (parts - 1) * bytes},
           {"  %r = f32[4,8] reduce-scatter(%x), dimensions={0}, to_apply=%add" + groups + back, 8 * (parts - 1) * bytes / parts},
           {"  %r = f32[16,8] all-reduce(%x), to_apply=%add" + groups + back, 8 * 2 * (parts - 1) * bytes / parts},
           {"  %r = f32[16,8] all-to-all(%x), dimensions={0}" + groups + back, 8 * (parts - 1) * bytes / parts},
           {"  %r = f32[16,8] collective-broadcast(%x)" + groups + back, 2 * (parts - 1) * bytes},
           {"  %n = f32[] constant(1)\n  %r = f32[] all-reduce(%n), to_apply=%add" + groups + "\n  ROOT %c = f32[16,8] copy(%x)", 8 * (parts - 1) * 4},
           {"  %row = f32[1,6] slice(%x), slice={[0:1], [0:6]}\n  %n = f32[6] reshape(%row)\n  %r = f32[6] all-reduce(%n), to_apply=%add" + groups + "\n  ROOT %c = f32[16,8] copy(%x)", 8 * 2 * (parts - 1) * 2 * 4},
       })
    for (const System* system : {&ring, &switched}) {
      SCOPED_TRACE(one.instructions);
      const HloSpec spec = spec_of(entry(one.instructions, 8));
      expect_sound(*system, spec);
      const podsim::Run run = run_of(*system, spec);
      std::int64_t sent = 0;
      for (const DeviceMetrics& device : measure_devices(run.model, run.timeline)) sent += device.devices * device.sent.count();
      EXPECT_EQ(sent, one.sent);
      RunOptions simgrid;
      simgrid.engine = *timing_engine("simgrid");
      const Picoseconds by_simgrid = run_of(*system, spec, simgrid).metrics.makespan;
      EXPECT_LE(by_simgrid, run.metrics.makespan);
      EXPECT_GE(by_simgrid + Picoseconds{parts * parts}, run.metrics.makespan) << "des rounds every event up to a picosecond";
    }
  const auto all_reduce = [&](const std::string& groups_in_order) {
    return run_of(ring, spec_of(entry("  ROOT %r = f32[16,8] all-reduce(%x), channel_id=1, replica_groups=" + groups_in_order + ", use_global_device_ids=true, to_apply=%add", 8))).metrics;
  };
  EXPECT_EQ(all_reduce("{{3,1,0,2},{4,7,5,6}}").makespan, all_reduce("{{0,1,2,3},{4,5,6,7}}").makespan) << "sums have no order";
}

TEST(HloRun, ExchangesInPairsMayBeInLoops) {
  std::string text = collective_matmul(8, 64);
  const std::string transfer = "  %done = bf16[64,64] collective-permute-done(%start)\n";
  const std::size_t at = text.find(transfer);
  ASSERT_NE(at, std::string::npos);
  text.insert(at, "  %all = bf16[256,64] all-gather(%x), channel_id=2, replica_groups={{0,1,2,4},{3,5,6,7}}, dimensions={0}, use_global_device_ids=true\n");
  const System system = system_with({{"machine", "ideal"}, {"slice", "8"}});
  const HloSpec spec = spec_of(text);
  expect_sound(system, spec);
  RunOptions written_out, simgrid;
  written_out.inline_calls = true;
  simgrid.engine = *timing_engine("simgrid");
  const Picoseconds called = run_of(system, spec).metrics.makespan;
  EXPECT_EQ(called, run_of(system, spec, written_out).metrics.makespan);
  EXPECT_EQ(called, run_of(system, spec, simgrid).metrics.makespan);
}

TEST(HloRun, AnAllReduceOfWhichOnlyTheOwnBlockIsUsedMayBecomeAReduceScatter) {
  const std::string text = entry(R"(  %r = f32[16,8] all-reduce(%x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add
  %id = u32[] partition-id()
  %at = s32[] convert(%id)
  %zero = s32[] constant(0)
  %own = f32[4,8] dynamic-slice(%r, %at, %zero), dynamic_slice_sizes={4,8}
  ROOT %back = f32[16,8] all-gather(%own), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true)",
                                 4, "");
  const System system = system_with({{"machine", "ideal"}, {"slice", "4"}});
  const podsim::Run plain = run_of(system, spec_of(text));
  HloScheduleOptions options;
  options.rewrite_reduce_scatter = true;
  expect_sound(system, spec_of(text, options));
  const podsim::Run rewritten = run_of(system, spec_of(text, options));
  EXPECT_EQ(plain.metrics.link_bytes, 3 * 4 * 3 / 4.0 * 512);
  EXPECT_EQ(rewritten.metrics.link_bytes, 2 * 4 * 3 / 4.0 * 512);
  ASSERT_EQ(plain.row.problem.hlo->notes.size(), 1u);
  EXPECT_THAT(plain.row.problem.hlo->notes.front(), HasSubstr("of 1 all-reduces only the own block is used, of r first: reduce-scatters in waiting"));
  std::string everywhere_the_same = text;
  everywhere_the_same.replace(everywhere_the_same.find("u32[] partition-id()"), 20, "u32[] constant(0)");
  EXPECT_TRUE(run_of(system, spec_of(everywhere_the_same, options)).row.problem.hlo->notes.empty()) << "all devices take the first block";
}

TEST(HloRun, SumsOfFloat32InBf16SendHalfTheBytes) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "4"}});
  HloScheduleOptions options;
  options.rewrite_bf16_reductions = true;
  for (const auto& [collective, bytes] : {std::pair{"all-reduce(%x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add", 2 * 4 * 3 / 4.0 * 512},
                                          std::pair{"collective-permute(%x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}", 4 * 512.0}}) {
    const std::string text = entry(fmt::format("  %r = f32[16,8] {}\n  ROOT %twice = f32[16,8] add(%r, %r)", collective));
    expect_sound(system, spec_of(text, options));
    EXPECT_EQ(run_of(system, spec_of(text)).metrics.link_bytes, bytes);
    EXPECT_EQ(run_of(system, spec_of(text, options)).metrics.link_bytes, std::string_view{collective}.starts_with("all-reduce") ? bytes / 2 : bytes) << "what adds nothing up stays as it is";
  }
}

TEST(HloRun, InBf16OtherNumbersComeOutSoThatNoCheckTakesIt) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "4"}});
  HloScheduleOptions options;
  options.rewrite_bf16_reductions = options.values = true;
  const auto problem = make_problem(system, spec_of(entry("  ROOT %r = f32[16,8] negate(%x)"), options));
  ASSERT_FALSE(problem);
  EXPECT_THAT(problem.error().message, HasSubstr("belongs to runs"));
}

TEST(HloRun, AttributesOfTheNextXlaAreNamed) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "4"}});
  const podsim::Run plain = run_of(system, spec_of(entry("  ROOT %r = f32[16,8] negate(%x)", 4, ""))), more = run_of(system, spec_of(entry("  ROOT %r = f32[16,8] negate(%x), of_tomorrow={1}", 4, "")));
  EXPECT_THAT(more.row.problem.hlo->notes, ElementsAre(HasSubstr("unknown attribute \"of_tomorrow\" x 1, first on line ")));
  EXPECT_TRUE(plain.row.problem.hlo->notes.empty());
  EXPECT_EQ(more.metrics.makespan, plain.metrics.makespan);
}

// Of a module that is scheduled the core keeps its order; a collective that the compiler began where the core comes to it begins when its operand is there.
TEST(HloRun, AScheduledModulesCollectivesMayBeginAsEarlyAsTheirOperandsAllow) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "4"}});
  const std::string products = R"(  %w = f32[8,512] constant({...})
  %big = f32[16,512] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %down = f32[16,8] dot(%big, %w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
)",
                    collective = "  %r = f32[16,8] all-reduce(%x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add\n";
  HloScheduleOptions early;
  early.order = HloScheduleOptions::Order::overlap;
  for (const std::string& text : {products + collective, collective + products}) {
    const std::string module = entry(text + "  ROOT %sum = f32[16,8] add(%r, %down)");
    const podsim::Run compiled = run_of(system, spec_of(module)), overlapped = run_of(system, spec_of(module, early));
    expect_sound(system, spec_of(module, early));
    const Picoseconds core = compiled.metrics.split.compute, moved = compiled.metrics.makespan - core;
    EXPECT_EQ(overlapped.metrics.split.compute, core);
    EXPECT_EQ(overlapped.metrics.makespan, std::max(core, moved)) << "the products run beside the all-reduce, and the sum costs nothing on `ideal`";
    EXPECT_EQ(compiled.row.problem.algorithm, "as compiled");
    EXPECT_EQ(overlapped.row.problem.algorithm, "overlapped");
  }
}

TEST(HloRun, WhatIsNotScheduledIsBoundedFromTwoSides) {
  const System system = system_with({{"machine", "ideal"}, {"slice", "4"}});
  const std::string collective = "  %r = f32[16,8] all-reduce(%x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add\n",
                    user = "  %square = f32[16,8] multiply(%r, %r)\n", products = R"(  %w = f32[8,512] constant({...})
  %big = f32[16,512] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %down = f32[16,8] dot(%big, %w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
)";
  for (const std::string& text : {collective + products + user, collective + user + products, products + collective + user}) {
    const std::string module = entry(text + "  ROOT %sum = f32[16,8] add(%square, %down)", 4, "");
    SCOPED_TRACE(module);
    HloScheduleOptions in_order;
    in_order.order = HloScheduleOptions::Order::text;
    const podsim::Run blocking = run_of(system, spec_of(module, in_order)), overlapping = run_of(system, spec_of(module));
    EXPECT_EQ(blocking.metrics.makespan, overlapping.metrics.makespan + overlapping.metrics.split.compute) << "the products run beside the all-reduce";
    expect_sound(system, spec_of(module));
    expect_sound(system, spec_of(module, in_order));
  }
}

TEST(HloRun, WhatCannotBeSimulatedIsToldAtItsLine) {
  const System ring = system_with({{"machine", "ideal"}, {"slice", "4"}});
  EXPECT_THAT(error_of(ring, spec_of(entry("  ROOT %c = f32[16,8] copy(%x)", 8))), HasSubstr("m:1:1: expected a mesh of the module's 8 devices, found row=4"));
  EXPECT_THAT(error_of(ring, spec_of(entry("  ROOT %r = f32[16,8] all-reduce(%x), channel_id=1, replica_groups={{0,1,2},{3}}, use_global_device_ids=true, to_apply=%add"))),
              HasSubstr("m:11:3: r: expected groups of equal size that have every device of the mesh row=4 once, found {{0,1,2},{3}}"));
}

std::string all_reduce_over(int devices, const std::string& groups) {
  return fmt::format("HloModule m, is_scheduled=true, num_partitions={}\n%add {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }}\nENTRY e {{\n x = f32[16777216] parameter(0)\n"
                     " ROOT r = f32[16777216] all-reduce(x), channel_id=1, replica_groups={}, use_global_device_ids=true, to_apply=%add\n}}\n",
                     devices, groups);
}

TEST(HloRun, OnGpusOneCollectiveTakesAsLongHoweverTheMeshIsWritten) {
  const auto time = [](const std::string& mesh, const std::string& groups, const std::optional<CollectivePolicy>& policy) {
    HloSpec spec = spec_of(all_reduce_over(16, groups));
    spec.collectives = policy;
    const System system = system_with({{"machine", "dgx_h100"}, {"slice", "2x8"}, {"mesh", mesh}});
    const auto posed = pose(system, spec, {});
    EXPECT_TRUE(posed) << to_text(posed.error());
    return to_seconds(run_of(posed->system, spec).metrics.makespan).count();
  };
  const CollectivePolicy rings{std::string{by_dimension_name}, {}}, fastest{std::string{auto_name}, {}};
  for (const std::string groups : {"[1,16]<=[16]", "[2,8]<=[16]", "[8,2]<=[2,8]T(1,0)"}) {
    const double row = time("x=16", groups, {});
    for (const char* mesh : {"x=2,y=8", "x=4,y=4", "x=8,y=2", "x=2,y=2,z=4", "x=1,y=16"}) EXPECT_DOUBLE_EQ(time(mesh, groups, {}), row) << mesh << " " << groups;
    EXPECT_DOUBLE_EQ(time("x=2,y=8", groups, fastest), row) << "NCCL's choice is auto";
  }
  EXPECT_GT(time("x=2,y=8", "{}", rings), 2 * time("x=2,y=8", "{}", {})) << "what is asked for is done";
}

TEST(HloRun, TheChoiceOfAnAlgorithmIsToldWhereThereIsACollective) {
  const System node = system_with({{"machine", "dgx_h100"}, {"slice", "1x8"}});
  const auto told = [&](const std::string& text) {
    HloSpec spec = spec_of(text);
    spec.collectives.reset();
    const auto problem = make_problem(node, spec);
    EXPECT_TRUE(problem) << to_text(problem.error());
    return problem && std::ranges::any_of(problem->summary.hlo->notes, [](const std::string& line) { return line.starts_with("each collective"); });
  };
  EXPECT_TRUE(told(all_reduce_over(8, "{}")));
  EXPECT_FALSE(told("HloModule m, is_scheduled=true, num_partitions=8\nENTRY e {\n x = f32[64] parameter(0)\n ROOT r = f32[64] negate(x)\n}\n"));
}

TEST(HloRun, OnTpusCollectivesRunAsCompiled) {
  const System system = system_with({{"machine", "tpu_v5e"}, {"slice", "4x4"}, {"mesh", "x=4,y=4"}});
  HloSpec spec = spec_of(all_reduce_over(16, "{}"));
  spec.collectives.reset();
  EXPECT_EQ(make_problem(system, spec)->collectives, (CollectivePolicy{std::string{by_dimension_name}, {}}));
  HloSpec numbers = spec_of(all_reduce_over(16, "{}"), HloScheduleOptions{.values = true});
  numbers.collectives.reset();
  EXPECT_EQ(make_problem(system_with({{"machine", "dgx_h100"}, {"slice", "2x8"}}), numbers)->collectives.algorithm, by_dimension_name) << "a proof needs no choice";
}

TEST(HloRun, WhatIsTooLargeIsRefusedBeforeItIsWritten) {
  const System ring = system_with({{"machine", "ideal"}, {"slice", "8"}});
  const auto with_trips = [](std::string trips) {
    std::string text = collective_matmul(8, 64);
    const std::string loop = "while(%state), condition=%condition, body=%body";
    return text.insert(text.find(loop) + loop.size(), ", backend_config={\"known_trip_count\":{\"n\":\"" + std::move(trips) + "\"}}");
  };
  EXPECT_EQ(error_of(ring, spec_of(with_trips("8"))), "");
  EXPECT_THAT(error_of(ring, spec_of(with_trips("4611686018427387904"))), HasSubstr("loop: expected at most 4194304 tasks, found 4.61e+18"));
  std::string calls = "HloModule m, is_scheduled=true, num_partitions=8\nf0 { p = f32[4] parameter(0)\n ROOT r = f32[4] negate(p) }\n", doubling = calls;
  for (int f = 1; f < 1000; ++f) calls += fmt::format("f{0} {{ p = f32[4] parameter(0)\n ROOT r = f32[4] call(p), to_apply=f{1} }}\n", f, f - 1);
  for (int f = 1; f < 60; ++f) doubling += fmt::format("f{0} {{ p = f32[4] parameter(0)\n a = f32[4] call(p), to_apply=f{1}\n ROOT r = f32[4] call(a), to_apply=f{1} }}\n", f, f - 1);
  const std::string begin = "ENTRY e {\n x = f32[4] parameter(0)\n ROOT r = f32[4] call(x), to_apply=f";
  EXPECT_THAT(error_of(ring, spec_of(calls + begin + "999 }\n")), HasSubstr("m:405:2: r: expected calls at most 200 deep"));
  EXPECT_THAT(error_of(ring, spec_of(doubling + begin + "59 }\n")), HasSubstr("r: expected at most 4194304 tasks, found 2.88e+18"));
  std::string types, operands;
  for (int leaf = 0; leaf < 40000; ++leaf) types += leaf == 0 ? "f32[4]" : ",f32[4]", operands += leaf == 0 ? "x" : ",x";
  EXPECT_THAT(error_of(ring, spec_of("HloModule m, num_partitions=8\nENTRY e {\n x = f32[4] parameter(0)\n ROOT t = (" + types + ") tuple(" + operands + ")\n}\n")),
              HasSubstr("m:4:2: t: expected at most 32768 arrays in a value, found 40000"));
}

}  // namespace
}  // namespace podsim
