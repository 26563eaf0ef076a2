// The forms in which compilers write one and the same thing, as schedules: closed forms on machines whose costs are plain. The texts are those of modules
// that libtpu 0.0.42.1 and XLA's GPU compiler made (validation/aot has whole ones), cut down to what the test is about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>

#include "workloads/hlo/read_hlo.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim::hlo_forms {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::system_with;

constexpr double link = 100e9, peak = 100e12;  // of `ideal`, bytes and FLOPs a second

HloSpec spec_of(const std::string& text) {
  auto module = parse_hlo(text, "m");
  EXPECT_TRUE(module) << to_text(module.error());
  return {std::make_shared<const HloModule>(module ? *std::move(module) : HloModule{}), {}, {}, CollectivePolicy{}};
}

podsim::Run run_of(const System& system, const ProblemSpec& spec) {
  const auto problem = make_problem(system, spec);
  EXPECT_TRUE(problem) << to_text(problem.error());
  auto run = simulate(system, *problem, {});
  EXPECT_TRUE(run) << to_text(run.error());
  return *std::move(run);
}

System ring_of(int devices, const std::string& setting = "link.bandwidth=100GB/s") {
  return system_with({{"machine", "ideal"}, {"slice", std::to_string(devices)}, {"mesh", fmt::format("x={}", devices)}, {"set", setting}});
}

const std::string add = "%add (a: bf16[], b: bf16[]) -> bf16[] {\n  %a = bf16[] parameter(0)\n  %b = bf16[] parameter(1)\n  ROOT %s = bf16[] add(%a, %b)\n}\n";

std::string module_of(const std::string& computations, int partitions = 4) { return fmt::format("HloModule m, is_scheduled=true, num_partitions={}\n{}{}", partitions, add, computations); }

/// All 16 devices of 4x4 add up 32 MiB, as the TPU's compiler states with these words.
HloSpec added_on_4x4(const std::string& strategy, const std::string& rings) {
  HloSpec spec = spec_of(module_of(fmt::format(R"(ENTRY %main (p: bf16[4096,4096]) -> bf16[4096,4096] {{
  %p = bf16[4096,4096] parameter(0)
  ROOT %psum = bf16[4096,4096] all-reduce(%p), channel_id=1, replica_groups=[1,16]<=[16], use_global_device_ids=true, to_apply=%add, backend_config={{"collective_algorithm_config":{{"emitter":"RotatedPincerEmitter","strategy":"{}","debug":"\n{}{{{}}}"}}}}
}}
)",
                                               strategy, strategy, rings),
                                   16));
  spec.collectives = {std::string{by_dimension_name}, {}};
  return spec;
}

// Of both sums a device keeps its rows: libtpu's all-reduce-scatter of several arrays (maxtext_latent_v5p and maxtext_pipeline_v5p of validation/aot).
TEST(HloForms, AFusedReduceScatterOfSeveralArraysSendsThemAll) {
  const podsim::Run run = run_of(ring_of(4), spec_of(module_of(R"(%all-reduce-scatter (a.1: bf16[1024,1024], b.1: bf16[2048,1024]) -> (bf16[256,1024], bf16[512,1024]) {
  %a.1 = bf16[1024,1024] parameter(0)
  %b.1 = bf16[2048,1024] parameter(1)
  %sums = (bf16[1024,1024], bf16[2048,1024]) all-reduce(%a.1, %b.1), channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true, to_apply=%add
  %first = bf16[1024,1024] get-tuple-element(%sums), index=0
  %second = bf16[2048,1024] get-tuple-element(%sums), index=1
  %zero = u32[] constant(0)
  %rows = u32[] constant(256)
  %more_rows = u32[] constant(512)
  %id = u32[] partition-id()
  %row = u32[] multiply(%id, %rows)
  %other_row = u32[] multiply(%id, %more_rows)
  %own.1 = bf16[256,1024] dynamic-slice(%first, %row, %zero), dynamic_slice_sizes={256,1024}
  %own.2 = bf16[512,1024] dynamic-slice(%second, %other_row, %zero), dynamic_slice_sizes={512,1024}
  ROOT %both = (bf16[256,1024], bf16[512,1024]) tuple(%own.1, %own.2)
}
ENTRY %main (p: bf16[1024,1024], q: bf16[2048,1024]) -> (bf16[256,1024], bf16[512,1024]) {
  %p = bf16[1024,1024] parameter(0)
  %q = bf16[2048,1024] parameter(1)
  ROOT %fusion = (bf16[256,1024], bf16[512,1024]) fusion(%p, %q), kind=kCustom, calls=%all-reduce-scatter
}
)")));
  EXPECT_NEAR(to_seconds(run.metrics.makespan).count(), 3.0 / 4 * 3 * 1024 * 1024 * 2 / (2 * link), 1e-9) << "either way round half of what both arrays have";
}

// lax.while_loop until all devices are done (branches_v5e of validation/aot): what is asked before each trip and after the last is communication, too.
TEST(HloForms, AConditionThatAddsUpOverTheDevicesIsPlayedOnceMoreThanTheBody) {
  const std::string computations = R"(%body (s: (bf16[1024,1024], s32[])) -> (bf16[1024,1024], s32[]) {
  %s = (bf16[1024,1024], s32[]) parameter(0)
  %x = bf16[1024,1024] get-tuple-element(%s), index=0
  %n = s32[] get-tuple-element(%s), index=1
  ROOT %next = (bf16[1024,1024], s32[]) tuple(%x, %n)
}
%condition (s.2: (bf16[1024,1024], s32[])) -> pred[] {
  %s.2 = (bf16[1024,1024], s32[]) parameter(0)
  %x.2 = bf16[1024,1024] get-tuple-element(%s.2), index=0
  %psum = bf16[1024,1024] all-reduce(%x.2), channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true, to_apply=%add
  %zero = bf16[] constant(0)
  %sum = bf16[] reduce(%psum, %zero), dimensions={0,1}, to_apply=%add
  ROOT %more = pred[] compare(%sum, %zero), direction=GT
}
)";
  const auto with_trips = [](int trips) { return fmt::format(", backend_config={{\"known_trip_count\":{{\"n\":\"{}\"}}}}", trips); };
  const std::string entry = "ENTRY %main (p: bf16[1024,1024], q: s32[]) -> (bf16[1024,1024], s32[]) {\n  %p = bf16[1024,1024] parameter(0)\n  %q = s32[] parameter(1)\n  %t = (bf16[1024,1024], s32[]) tuple(%p, %q)\n";
  const double once = 2 * 3.0 / 4 * 1024 * 1024 * 2 / (2 * link);  // either way round half of the array
  const auto exposed = [&](const std::string& text) { return to_seconds(run_of(ring_of(4), spec_of(module_of(text))).metrics.split.exposed_communication).count(); };
  EXPECT_NEAR(exposed(computations + entry + "  ROOT %loop = (bf16[1024,1024], s32[]) while(%t), condition=%condition, body=%body" + with_trips(6) + "\n}\n"), 7 * once, 1e-9);

  const std::string outer = R"(%outer (s.3: (bf16[1024,1024], s32[])) -> (bf16[1024,1024], s32[]) {
  %s.3 = (bf16[1024,1024], s32[]) parameter(0)
  ROOT %inner = (bf16[1024,1024], s32[]) while(%s.3), condition=%condition, body=%body)" + with_trips(2) +
                            R"(
}
%goes_on (s.4: (bf16[1024,1024], s32[])) -> pred[] {
  %s.4 = (bf16[1024,1024], s32[]) parameter(0)
  %n.4 = s32[] get-tuple-element(%s.4), index=1
  %five = s32[] constant(5)
  ROOT %less = pred[] compare(%n.4, %five), direction=LT
}
)";
  EXPECT_NEAR(exposed(computations + outer + entry + "  ROOT %loop = (bf16[1024,1024], s32[]) while(%t), condition=%goes_on, body=%outer" + with_trips(5) + "\n}\n"), 5 * 3 * once, 1e-9) << "a loop in a loop";
}

TEST(HloForms, TwoColoursInTwoPhasesUseBothDimensionsAtOnce) {
  const System torus = system_with({{"machine", "ideal"}, {"slice", "4x4"}, {"wrap", "all"}, {"mesh", "x=4,y=4"}, {"set", "link.bandwidth=100GB/s"}});
  const double bytes = 4096.0 * 4096 * 2;
  const podsim::Run at_once = run_of(torus, added_on_4x4("StrategyND", "colors:2 phases:2 cores:{4 4},{4 4} nophase0:0"));
  EXPECT_NEAR(to_seconds(at_once.metrics.makespan).count(), 2 * 15.0 / 16 * bytes / (4 * link), 1e-9) << "each device has four links";
  EXPECT_THAT(at_once.row.problem.hlo->stated, ElementsAre(HloStatedAlgorithm{"StrategyND: 2 colours, rings of 4, 4", "rotations", 1}));
  // Of one colour, one ring after the other: 4 blocks along x, then a quarter of that along y.
  const podsim::Run in_turn = run_of(torus, added_on_4x4("StrategyND", "colors:1 phases:2 cores:{4 4}"));
  EXPECT_NEAR(to_seconds(in_turn.metrics.makespan).count(), 2 * (3.0 / 4 + 3.0 / 16) * bytes / (2 * link), 1e-9);
  EXPECT_THAT(in_turn.row.problem.hlo->stated, ElementsAre(HloStatedAlgorithm{"StrategyND: 1 colour, rings of 4, 4", "", 1}));
  // One ring through all 16, either way round half of the data.
  const podsim::Run one_ring = run_of(torus, added_on_4x4("UniDirection1DRingStrategy", "colors:2 phases:1 cores:{16},{16}"));
  EXPECT_NEAR(to_seconds(one_ring.metrics.makespan).count(), 2 * 15.0 / 16 * bytes / (2 * link), 1e-9);
  EXPECT_THAT(one_ring.row.problem.hlo->stated, ElementsAre(HloStatedAlgorithm{"UniDirection1DRingStrategy: 2 colours, a ring of 16", "hamiltonian-ring", 1}));
  // What the run is told to use comes before what the compiler states.
  HloSpec told = added_on_4x4("StrategyND", "colors:1 phases:2 cores:{4 4}");
  told.collectives = {"rotations", {}};
  const podsim::Run as_told = run_of(torus, told);
  EXPECT_EQ(as_told.metrics.makespan, at_once.metrics.makespan);
  EXPECT_TRUE(as_told.row.problem.hlo->stated.empty());
}

TEST(HloForms, PartsOfAnArrayLieSideBySide) {
  // Each half comes by a DMA of its own, and the all-reduce is of both.
  const HloSpec spec = spec_of(module_of(R"(ENTRY %main (p: bf16[4096,512]) -> bf16[4096,512] {
  %p = bf16[4096,512]{1,0:T(8,128)(2,1)} parameter(0)
  %slice-start = ((bf16[4096,512]{1,0:T(8,128)(2,1)}), bf16[2048,512]{1,0:T(8,128)(2,1)S(1)}, s32[]{:S(2)}) slice-start(%p), slice={[0:2048], [0:512]}
  %slice-start.1 = ((bf16[4096,512]{1,0:T(8,128)(2,1)}), bf16[2048,512]{1,0:T(8,128)(2,1)S(1)}, s32[]{:S(2)}) slice-start(%p), slice={[2048:4096], [0:512]}
  %slice-done = bf16[2048,512]{1,0:T(8,128)(2,1)S(1)} slice-done(%slice-start)
  %slice-done.1 = bf16[2048,512]{1,0:T(8,128)(2,1)S(1)} slice-done(%slice-start.1)
  %custom-call = bf16[4096,512]{1,0:T(8,128)(2,1)S(1)} custom-call(%slice-done, %slice-done.1), custom_call_target="ConcatBitcast"
  ROOT %all-reduce = bf16[4096,512]{1,0:T(8,128)(2,1)} all-reduce(%custom-call), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add
}
)"));
  const podsim::Run run = run_of(ring_of(4), spec);
  EXPECT_EQ(run.metrics.link_bytes, 4 * 2 * 3 * 4096 * 512 * 2 / 4);
  EXPECT_NEAR(to_seconds(run.metrics.makespan).count(), 2 * 3.0 / 4 * 4096 * 512 * 2 / (2 * link), 1e-9);
}

TEST(HloForms, AnAsynchronousFusionMovesWhatItUpdates) {
  // XLA for GPUs keeps the values of a layer for the gradients so, beside the core: 1 of 64 parts, read and written.
  const auto time = [](const std::string& start, const std::string& done) {
    const HloSpec spec = spec_of(R"(HloModule m, is_scheduled=true

%update (a: f32[64,1048576], x: f32[1048576]) -> f32[64,1048576] {
  %a = f32[64,1048576] parameter(0)
  %x = f32[1048576] parameter(1)
  %b = f32[1,1048576] bitcast(%x)
  %i = s32[] constant(0)
  ROOT %d = f32[64,1048576] dynamic-update-slice(%a, %b, %i, %i)
}

ENTRY %main (p: f32[64,1048576], q: f32[1048576]) -> f32[64,1048576] {
  %p = f32[64,1048576] parameter(0)
  %q = f32[1048576] parameter(1)
)" + start + done + "}\n");
    return to_seconds(run_of(system_with({{"machine", "tpu_v5e"}, {"slice", "1x1"}}), spec).metrics.makespan).count();
  };
  const double by_the_core = time("", "  ROOT %r = f32[64,1048576] fusion(%p, %q), kind=kLoop, calls=%update\n");
  const double beside_it = time("  %s = ((f32[64,1048576], f32[1048576]), f32[64,1048576], u32[]) fusion-start(%p, %q), kind=kLoop, calls=%update\n",
                                "  ROOT %r = f32[64,1048576] fusion-done(%s)\n");
  EXPECT_NEAR(beside_it, 2 * 1048576 * 4 / 810e9, 1e-8);
  EXPECT_NEAR(beside_it, by_the_core, 1e-8);
}

TEST(HloForms, AnArrayOfOtherDimensionsEntersALoopAndLeavesIt) {
  const HloSpec spec = spec_of(module_of(R"(%body (s: (s32[], bf16[1,2048,64])) -> (s32[], bf16[1,2048,64]) {
  %s = (s32[], bf16[1,2048,64]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = bf16[1,2048,64] get-tuple-element(%s), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %y = bf16[1,2048,64] all-to-all(%x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={1}
  ROOT %t = (s32[], bf16[1,2048,64]) tuple(%next, %y)
}
%condition (q: (s32[], bf16[1,2048,64])) -> pred[] {
  %q = (s32[], bf16[1,2048,64]) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %n = s32[] constant(3)
  ROOT %less = pred[] compare(%j, %n), direction=LT
}
ENTRY %main (p: bf16[16,128,64]) -> bf16[64,2048] {
  %p = bf16[16,128,64] parameter(0)
  %c = bf16[16,128,64] negate(%p)
  %bitcast = bf16[1,2048,64] bitcast(%c)
  %zero = s32[] constant(0)
  %tuple = (s32[], bf16[1,2048,64]) tuple(%zero, %bitcast)
  %while = (s32[], bf16[1,2048,64]) while(%tuple), condition=%condition, body=%body
  %g = bf16[1,2048,64] get-tuple-element(%while), index=1
  ROOT %r = bf16[64,2048] bitcast(%g)
}
)"));
  const podsim::Run run = run_of(ring_of(4), spec);
  // Around a ring of four each device sends a quarter to either neighbour, and half a quarter to the far one either way: over the links 1 + 1 + 2 quarters.
  EXPECT_EQ(run.metrics.link_bytes, 3 * 4 * 2048 * 64 * 2);
}

TEST(HloForms, AGatherInPiecesOfFusionsIsOneGatherBesideTheProduct) {
  const auto text = [](int rows) {
    return fmt::format(R"(HloModule m, is_scheduled=true, num_partitions=4
%begin (q: bf16[256,512]) -> (bf16[256,512], bf16[1024,512], s32[2]) {{
  %q = bf16[256,512]{{1,0:T(8,128)(2,1)S(1)}} parameter(0)
  %all-gather.1 = bf16[1024,512]{{1,0:T(8,128)(2,1)}} all-gather(%q), channel_id=2, replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}, use_global_device_ids=true, frontend_attributes={{chain_id="0"}}
  ROOT %custom-call.1 = (bf16[256,512]{{1,0:T(8,128)(2,1)S(1)}}, bf16[1024,512]{{1,0:T(8,128)(2,1)}}, s32[2]{{0:S(4)}}) custom-call(%all-gather.1), custom_call_target="AsyncCollectiveStart"
}}
%meanwhile (a: bf16[256,512], b: bf16[1024,512], c: s32[2], x: bf16[{0},512], w: bf16[512,512]) -> (bf16[{0},512], bf16[256,512], bf16[1024,512], bf16[1024,512], s32[2]) {{
  %a = bf16[256,512]{{1,0:T(8,128)(2,1)S(1)}} parameter(0)
  %b = bf16[1024,512]{{1,0:T(8,128)(2,1)}} parameter(1)
  %c = s32[2]{{0:S(4)}} parameter(2)
  %x = bf16[{0},512] parameter(3)
  %w = bf16[512,512] parameter(4)
  %all-gather.2 = bf16[1024,512]{{1,0:T(8,128)(2,1)}} all-gather(%a), channel_id=2, replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}, use_global_device_ids=true, frontend_attributes={{chain_id="0"}}
  %convolution = bf16[{0},512] convolution(%x, %w), dim_labels=bf_io->bf
  ROOT %tuple = (bf16[{0},512], bf16[256,512]{{1,0:T(8,128)(2,1)S(1)}}, bf16[1024,512], bf16[1024,512], s32[2]{{0:S(4)}}) tuple(%convolution, %a, %b, %all-gather.2, %c)
}}
%end (a.1: bf16[256,512], b.1: bf16[1024,512], c.1: s32[2]) -> bf16[1024,512] {{
  %a.1 = bf16[256,512]{{1,0:T(8,128)(2,1)S(1)}} parameter(0)
  %b.1 = bf16[1024,512]{{1,0:T(8,128)(2,1)}} parameter(1)
  %c.1 = s32[2]{{0:S(4)}} parameter(2)
  %all-gather.3 = bf16[1024,512]{{1,0:T(8,128)(2,1)}} all-gather(%a.1), channel_id=2, replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}, use_global_device_ids=true, frontend_attributes={{chain_id="0"}}
  ROOT %custom-call.2 = bf16[1024,512]{{1,0:T(8,128)(2,1)}} custom-call(%a.1, %b.1, %all-gather.3, %c.1), custom_call_target="AsyncCollectiveDone"
}}
ENTRY %main (p: bf16[256,512], x: bf16[{0},512], w: bf16[512,512]) -> (bf16[1024,512], bf16[{0},512]) {{
  %p = bf16[256,512]{{1,0:T(8,128)(2,1)S(1)}} parameter(0)
  %x = bf16[{0},512] parameter(1)
  %w = bf16[512,512] parameter(2)
  %async-collective-start = (bf16[256,512]{{1,0:T(8,128)(2,1)S(1)}}, bf16[1024,512]{{1,0:T(8,128)(2,1)}}, s32[2]{{0:S(4)}}) fusion(%p), kind=kCustom, output_to_operand_aliasing={{{{0}}: (0, {{}})}}, calls=%begin
  %g0 = bf16[256,512]{{1,0:T(8,128)(2,1)S(1)}} get-tuple-element(%async-collective-start), index=0
  %g1 = bf16[1024,512]{{1,0:T(8,128)(2,1)}} get-tuple-element(%async-collective-start), index=1
  %g2 = s32[2]{{0:S(4)}} get-tuple-element(%async-collective-start), index=2
  %fusion.6 = (bf16[{0},512], bf16[256,512]{{1,0:T(8,128)(2,1)S(1)}}, bf16[1024,512], bf16[1024,512], s32[2]{{0:S(4)}}) fusion(%g0, %g1, %g2, %x, %w), kind=kOutput, output_to_operand_aliasing={{{{1}}: (0, {{}}), {{2}}: (1, {{}}), {{3}}: (1, {{}}), {{4}}: (2, {{}})}}, calls=%meanwhile
  %h0 = bf16[256,512]{{1,0:T(8,128)(2,1)S(1)}} get-tuple-element(%fusion.6), index=1
  %h1 = bf16[1024,512]{{1,0:T(8,128)(2,1)}} get-tuple-element(%fusion.6), index=2
  %h2 = s32[2]{{0:S(4)}} get-tuple-element(%fusion.6), index=4
  %async-collective-done = bf16[1024,512]{{1,0:T(8,128)(2,1)}} fusion(%h0, %h1, %h2), kind=kCustom, output_to_operand_aliasing={{{{}}: (1, {{}})}}, calls=%end
  %y = bf16[{0},512] get-tuple-element(%fusion.6), index=0
  ROOT %result = (bf16[1024,512]{{1,0:T(8,128)(2,1)}}, bf16[{0},512]) tuple(%async-collective-done, %y)
}}
)",
                       rows);
  };
  const double gather = 3.0 * 256 * 512 * 2 / (2 * link);  // both ways round the ring
  for (const int rows : {64, 8192}) {
    const HloSpec spec = spec_of(text(rows));
    const double product = 2.0 * rows * 512 * 512 / peak;
    const podsim::Run run = run_of(ring_of(4), spec);
    EXPECT_NEAR(to_seconds(run.metrics.makespan).count(), std::max(gather, product), 1e-9) << rows;
    EXPECT_EQ(run.metrics.link_bytes, 4 * 3 * 256 * 512 * 2);
    EXPECT_EQ(instructions_of(*spec.module), 30u) << "as many as the text has";
  }
}

TEST(HloForms, AGatherInPiecesThatGoThroughALoopIsOneGather) {
  const std::string text = R"(HloModule m, is_scheduled=true, num_partitions=4
%begin (q: bf16[256,512]) -> (bf16[256,512], bf16[1024,512], s32[2]) {
  %q = bf16[256,512]{1,0:T(8,128)(2,1)S(1)} parameter(0)
  %all-gather.1 = bf16[1024,512]{1,0:T(8,128)(2,1)} all-gather(%q), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  ROOT %custom-call.1 = (bf16[256,512], bf16[1024,512], s32[2]) custom-call(%all-gather.1), custom_call_target="AsyncCollectiveStart"
}
%meanwhile (a: bf16[256,512], b: bf16[1024,512], c: s32[2]) -> (bf16[256,512], bf16[1024,512], s32[2]) {
  %a = bf16[256,512]{1,0:T(8,128)(2,1)S(1)} parameter(0)
  %b = bf16[1024,512] parameter(1)
  %c = s32[2]{0:S(4)} parameter(2)
  %all-gather.2 = bf16[1024,512] all-gather(%a), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  ROOT %tuple = (bf16[256,512], bf16[1024,512], s32[2]) tuple(%a, %all-gather.2, %c)
}
%end (a: bf16[256,512], b: bf16[1024,512], c: s32[2]) -> bf16[1024,512] {
  %a = bf16[256,512]{1,0:T(8,128)(2,1)S(1)} parameter(0)
  %b = bf16[1024,512] parameter(1)
  %c = s32[2]{0:S(4)} parameter(2)
  %all-gather.3 = bf16[1024,512] all-gather(%a), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  ROOT %custom-call.2 = bf16[1024,512] custom-call(%a, %b, %all-gather.3, %c), custom_call_target="AsyncCollectiveDone"
}
%condition (s: (bf16[256,512], bf16[1024,512], s32[2])) -> pred[] {
  %s = (bf16[256,512], bf16[1024,512], s32[2]) parameter(0)
  ROOT %less = pred[] constant(true)
}
%body (s: (bf16[256,512], bf16[1024,512], s32[2])) -> (bf16[256,512], bf16[1024,512], s32[2]) {
  %s = (bf16[256,512], bf16[1024,512], s32[2]) parameter(0)
  %s0 = bf16[256,512] get-tuple-element(%s), index=0
  %s1 = bf16[1024,512] get-tuple-element(%s), index=1
  %s2 = s32[2] get-tuple-element(%s), index=2
  ROOT %piece = (bf16[256,512], bf16[1024,512], s32[2]) fusion(%s0, %s1, %s2), kind=kOutput, calls=%meanwhile
}
ENTRY %main (p: bf16[256,512]) -> bf16[1024,512] {
  %p = bf16[256,512]{1,0:T(8,128)(2,1)S(1)} parameter(0)
  %async-collective-start = (bf16[256,512], bf16[1024,512], s32[2]) fusion(%p), kind=kCustom, calls=%begin
  %loop = (bf16[256,512], bf16[1024,512], s32[2]) while(%async-collective-start), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"8"}}
  %g0 = bf16[256,512] get-tuple-element(%loop), index=0
  %g1 = bf16[1024,512] get-tuple-element(%loop), index=1
  %g2 = s32[2] get-tuple-element(%loop), index=2
  ROOT %async-collective-done = bf16[1024,512] fusion(%g0, %g1, %g2), kind=kCustom, calls=%end
}
)";
  EXPECT_EQ(run_of(ring_of(4), spec_of(text)).metrics.link_bytes, 4 * 3 * 256 * 512 * 2) << "neither the loop's eight pieces nor the end move it again";
  std::string beside = text;  // what stands by itself is no piece, though it has the same channel
  const std::string start = "  %async-collective-start =";
  beside.insert(beside.find(start), "  %plain = bf16[1024,512] all-gather(%p), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true\n");
  EXPECT_EQ(run_of(ring_of(4), spec_of(beside)).metrics.link_bytes, 2 * 4 * 3 * 256 * 512 * 2);
}

TEST(HloForms, ACallToAnotherCoreRunsBesideTheProduct) {
  const std::string text = R"(HloModule m, is_scheduled=true, num_partitions=4
%called_computation (q: bf16[256,512], t: token[]) -> bf16[1024,512] {
  %t = token[] parameter(1)
  %q = bf16[256,512] parameter(0)
  ROOT %all-gather.3 = bf16[1024,512] all-gather(%q), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
}, execution_thread="sparsecore"
ENTRY %main (p: bf16[256,512], x: bf16[8192,512], w: bf16[512,512]) -> (bf16[1024,512], bf16[8192,512]) {
  %p = bf16[256,512] parameter(0)
  %x = bf16[8192,512] parameter(1)
  %w = bf16[512,512] parameter(2)
  %prepare_start = s32[]{:S(2)} custom-call(), custom_call_target="PrepareAsyncCallStart"
  %prepare_done = token[] custom-call(%prepare_start), custom_call_target="PrepareAsyncCallDone"
  %gather.call-start = ((bf16[256,512], token[]), bf16[1024,512]CONTEXT) call-start(%p, %prepare_done), async_execution_thread="sparsecore", to_apply=%called_computation
  %y = bf16[8192,512] convolution(%x, %w), dim_labels=bf_io->bf
  %gather.call-done = bf16[1024,512] call-done(%gather.call-start)
  ROOT %result = (bf16[1024,512], bf16[8192,512]) tuple(%gather.call-done, %y)
}
)";
  const double product = 2.0 * 8192 * 512 * 512 / peak, gather = 3.0 * 256 * 512 * 2 / (2 * link);
  for (const std::string context : {"", ", u32[]{:S(8)}"}) {
    std::string given = text;
    given.replace(given.find("CONTEXT"), 7, context);
    EXPECT_NEAR(to_seconds(run_of(ring_of(4), spec_of(given)).metrics.makespan).count(), std::max(product, gather), 1e-9) << context;
  }
}

TEST(HloForms, AnAsynchronousCallOfALibraryIsTheProductThatItMakes) {
  const std::string text = R"(HloModule m, is_scheduled=true
ENTRY %main (x: bf16[8192,512], w: bf16[512,512]) -> bf16[8192,512] {
  %x = bf16[8192,512]{1,0} parameter(0)
  %w = bf16[512,512]{1,0} parameter(1)
  %s = ((bf16[8192,512]{1,0}, bf16[512,512]{1,0}), (bf16[8192,512]{1,0}, s8[1024]{0}), u32[]) custom-call-start(%x, %w), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}
  %d = (bf16[8192,512]{1,0}, s8[1024]{0}) custom-call-done(%s)
  ROOT %y = bf16[8192,512]{1,0} get-tuple-element(%d), index=0
}
)";
  EXPECT_NEAR(to_seconds(run_of(ring_of(1), spec_of(text)).metrics.makespan).count(), 2.0 * 8192 * 512 * 512 / peak, 1e-9);
}

TEST(HloForms, AnAllReduceThatConvertsSendsTheTypeOfItsOperand) {
  const HloSpec spec = spec_of(module_of(R"(ENTRY %main (p: bf16[4,2048]) -> f32[4,2048] {
  %p = bf16[4,2048]{1,0:T(4,128)(2,1)} parameter(0)
  ROOT %all-reduce.18 = f32[4,2048]{1,0:T(4,128)} all-reduce(%p), channel_id=144, replica_groups=mesh['axis_0'=1,'axis_1'=4] {'axis_1'}, use_global_device_ids=true, to_apply=%add
}
)"));
  EXPECT_EQ(run_of(ring_of(4), spec).metrics.link_bytes, 2 * 3 * 4 * 2048 * 2);
}

TEST(HloForms, AReduceScatterThatPadsItsRowsSendsThePaddedRows) {
  const HloSpec spec = spec_of(module_of(R"(%all-reduce-scatter (input: bf16[1000,512]) -> bf16[256,512] {
  %input = bf16[1000,512]{1,0:T(8,128)(2,1)} parameter(0)
  %zero = bf16[] constant(0)
  %pad = bf16[1024,512]{1,0:T(8,128)(2,1)} pad(%input, %zero), padding=0_24x0_0
  %all-reduce = bf16[1024,512]{1,0:T(8,128)(2,1)} all-reduce(%pad), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=%add
  %table = u32[4]{0:T(128)} constant({0, 1, 2, 3})
  %partition-id = u32[] partition-id()
  %dynamic-slice = u32[1]{0:T(128)} dynamic-slice(%table, %partition-id), dynamic_slice_sizes={1}
  %bitcast = u32[]{:T(128)} bitcast(%dynamic-slice)
  %rows = u32[] constant(256)
  %multiply = u32[]{:T(128)} multiply(%bitcast, %rows)
  %none = u32[] constant(0)
  ROOT %own = bf16[256,512]{1,0:T(8,128)(2,1)} dynamic-slice(%all-reduce, %multiply, %none), dynamic_slice_sizes={256,512}
}
ENTRY %main (p: bf16[1000,512]) -> bf16[256,512] {
  %p = bf16[1000,512]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT %fusion = bf16[256,512]{1,0:T(8,128)(2,1)} fusion(%p), kind=kCustom, calls=%all-reduce-scatter
}
)"));
  const podsim::Run run = run_of(ring_of(4), spec);
  EXPECT_EQ(run.metrics.link_bytes, 4 * 3 * 256 * 512 * 2);
  EXPECT_NEAR(to_seconds(run.metrics.makespan).count(), 3.0 * 256 * 512 * 2 / (2 * link), 1e-9);
}

TEST(HloForms, HalvesOfAComplexArrayAreOneArray) {
  const HloSpec spec = spec_of(module_of(R"(ENTRY %main (p: c64[64,128]) -> c64[64,128] {
  %p = c64[64,128] parameter(0)
  %low = f32[64,128] custom-call(%p), custom_call_target="X64SplitLow"
  %high = f32[64,128] custom-call(%p), custom_call_target="X64SplitHigh"
  %exchanged = f32[64,128] all-to-all(%low), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}
  ROOT %whole = c64[64,128] custom-call(%exchanged, %high), custom_call_target="X64Combine"
}
)"));
  EXPECT_EQ(run_of(ring_of(4), spec).metrics.link_bytes, 4 * 64 * 128 * 4);
}

std::string host_copies(const std::string& spaces) {
  std::string text = "ENTRY %main (p: f32[1024,1024], q: f32[1024,1024]) -> f32[1024,1024] {\n";
  text += "  %p = f32[1024,1024]{1,0:T(8,128)" + std::string{spaces[0] == 'h' ? "S(5)" : ""} + "} parameter(0)\n";
  text += "  %q = f32[1024,1024]{1,0:T(8,128)" + std::string{spaces[2] == 'h' ? "S(5)" : ""} + "} parameter(1)\n";
  for (int copy = 0; copy < 2; ++copy) {
    const auto layout = [&](int side) { return std::string{"f32[1024,1024]{1,0:T(8,128)"} + (spaces[static_cast<std::size_t>(2 * copy + side)] == 'h' ? "S(5)}" : "}"); };
    text += fmt::format("  %copy-start.{0} = ({1}, {2}, u32[]{{:S(2)}}) copy-start(%{3})\n", copy, layout(1), layout(0), copy == 0 ? 'p' : 'q');
  }
  for (int copy = 0; copy < 2; ++copy)
    text += fmt::format("  {0}%copy-done.{1} = f32[1024,1024]{{1,0:T(8,128){2}}} copy-done(%copy-start.{1})\n", copy == 1 ? "ROOT " : "", copy, spaces[static_cast<std::size_t>(2 * copy + 1)] == 'h' ? "S(5)" : "");
  return module_of(text + "}\n");
}

TEST(HloForms, CopiesOfTheHostTakeItsLinkOneAfterTheOtherInEitherDirection) {
  const System system = ring_of(4, "dcn.host_bandwidth=10GB/s");
  const double copy = 1024 * 1024 * 4 / 10e9;
  const auto time = [&](const std::string& spaces) { return to_seconds(run_of(system, spec_of(host_copies(spaces))).metrics.makespan).count(); };
  EXPECT_NEAR(time("dhdh"), 2 * copy, 1e-9);
  EXPECT_NEAR(time("hdhd"), 2 * copy, 1e-9);
  EXPECT_NEAR(time("dhhd"), copy, 1e-9);
  EXPECT_NEAR(time("dddd"), 0, 1e-9);
}

TEST(HloForms, APermuteOfSeveralArraysAndASendWithItsRecvArePermutes) {
  const std::string pairs = "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}";
  const HloSpec several = spec_of(module_of("ENTRY %main (a: f32[1024,256], b: bf16[1024,256]) -> f32[1024,256] {\n  %a = f32[1024,256] parameter(0)\n  %b = bf16[1024,256] parameter(1)\n"
                                            "  %s = ((f32[1024,256], bf16[1024,256]), (f32[1024,256], bf16[1024,256])) collective-permute-start(%a, %b), channel_id=1, " + pairs + "\n"
                                            "  %d = (f32[1024,256], bf16[1024,256]) collective-permute-done(%s)\n  ROOT %r = f32[1024,256] get-tuple-element(%d), index=0\n}\n"));
  EXPECT_EQ(run_of(ring_of(4), several).metrics.link_bytes, 4 * 1024 * 256 * 6);
  for (const bool quoted : {false, true}) {
    const std::string frontend = quoted ? "{_xla_send_recv_source_target_pairs=\"{{0,1},{1,2},{2,3}}\"}" : "{_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,3}}}";
    const HloSpec sent = spec_of(module_of("ENTRY %main (a: f32[1048576]) -> f32[1048576] {\n  %a = f32[1048576] parameter(0)\n  %t = token[] after-all()\n"
                                           "  %rv = (f32[1048576], u32[], token[]) recv(%t), channel_id=1, frontend_attributes=" + frontend + "\n"
                                           "  %sd = (f32[1048576], u32[], token[]) send(%a, %t), channel_id=1, frontend_attributes=" + frontend + "\n"
                                           "  %rd = (f32[1048576], token[]) recv-done(%rv), channel_id=1\n  %sdd = token[] send-done(%sd), channel_id=1\n"
                                           "  ROOT %r = f32[1048576] get-tuple-element(%rd), index=0\n}\n"));
    const podsim::Run run = run_of(ring_of(4), sent);
    EXPECT_EQ(run.metrics.link_bytes, 3 * 1048576 * 4);
    EXPECT_NEAR(to_seconds(run.metrics.makespan).count(), 1048576 * 4 / link, 1e-9);
    EXPECT_TRUE(run.row.problem.hlo->opaque.empty());
  }
}

TEST(HloForms, ATransferWhoseOtherEndIsElsewhereIsNamedAsUnknown) {
  const HloSpec spec = spec_of(module_of("ENTRY %main (a: f32[64]) -> f32[64] {\n  %a = f32[64] parameter(0)\n  %t = token[] after-all()\n"
                                         "  %sd = (f32[64], u32[], token[]) send(%a, %t), channel_id=1, is_host_transfer=true\n  %sdd = token[] send-done(%sd), channel_id=1, is_host_transfer=true\n"
                                         "  ROOT %c = f32[64] copy(%a)\n}\n"));
  const podsim::Run run = run_of(ring_of(4), spec);
  ASSERT_EQ(run.row.problem.hlo->opaque.size(), 1u);
  EXPECT_EQ(run.row.problem.hlo->opaque.front().instruction, "sd");
}

const std::string ragged = R"(ENTRY %main (i: bf16[8192,64], o: bf16[8192,64], io: s32[4], ss: s32[4], oo: s32[4], rs: s32[4]) -> bf16[8192,64] {
  %i = bf16[8192,64] parameter(0)
  %o = bf16[8192,64] parameter(1)
  %io = s32[4] parameter(2)
  %ss = s32[4] parameter(3)
  %oo = s32[4] parameter(4)
  %rs = s32[4] parameter(5)
  ROOT %r = bf16[8192,64] ragged-all-to-all(%i, %o, %io, %ss, %oo, %rs), channel_id=1, replica_groups={{0,1,2,3}}
}
)";

TEST(HloForms, ARaggedAllToAllSendsWhatItsOperandHasRoomFor) {
  const podsim::Run run = run_of(ring_of(4), spec_of(module_of(ragged)));
  EXPECT_EQ(run.metrics.link_bytes, 4 * 8192 * 64 * 2);
  EXPECT_THAT(run.row.problem.hlo->notes, ElementsAre(HasSubstr("r: each device sends all that its operand has room for")));
}

TEST(HloForms, ARaggedAllToAllSendsTheRowsThatItIsTold) {
  const std::vector<std::vector<std::int64_t>> rows{{7, 100, 50, 8}, {10, 0, 20, 30}, {1, 2, 0, 3}, {1000, 2000, 3000, 0}};
  HloSpec spec = spec_of(module_of(ragged));
  spec.options.counts.ragged[""] = {rows, {"counts.csv", 1, 1}};
  const podsim::Run run = run_of(ring_of(4), spec);
  const std::array<std::int64_t, 4> hops{0, 1, 2, 1};
  std::int64_t bytes = 0;
  for (std::size_t from = 0; from < 4; ++from)
    for (std::size_t to = 0; to < 4; ++to) bytes += rows[from][to] * hops[(to + 4 - from) % 4] * 64 * 2;
  EXPECT_EQ(run.metrics.link_bytes, bytes);
  EXPECT_TRUE(run.row.problem.hlo->notes.empty());
  const auto error_of = [&](const std::string& name, std::vector<std::vector<std::int64_t>> given) {
    HloSpec wrong = spec_of(module_of(ragged));
    wrong.options.counts.ragged[name] = {std::move(given), {"counts.csv", 1, 1}};
    const auto problem = make_problem(ring_of(4), wrong);
    return problem ? "" : to_text(problem.error());
  };
  EXPECT_THAT(error_of("r", {{0, 1}, {1, 0}}), HasSubstr("counts.csv:1:1: expected 4 rows of 4 numbers, one for each device of a group of r, found 2"));
  EXPECT_THAT(error_of("r", {{0, 8000, 193, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}), HasSubstr("expected at most 8192 rows from device 0 of a group of r, as its operand has, found 8193"));
  EXPECT_THAT(error_of("r", {{0, 8000, 0, 0}, {0, 0, 0, 0}, {0, 193, 0, 0}, {0, 0, 0, 0}}), HasSubstr("expected at most 8192 rows to device 1 of a group of r, as its result has, found 8193"));
}

const std::string megascale = R"(ENTRY %main (p: bf16[4096,128]) -> bf16[4096,128] {
  %p = bf16[4096,128] parameter(0)
  %after-all = token[] after-all()
  %send = (bf16[4096,128], u32[], token[]) send(%p, %after-all), channel_id=2, is_host_transfer=true, frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime",_xla_host_transfer_rendezvous="all-reduce.1_0",_xla_megascale_reduce_operation="SUM",_xla_megascale_target="{1,2}x{0:3}",_xla_megascale_transfer_type="ALL_REDUCE"}
  %recv = (bf16[4096,128], u32[], token[]) recv(%after-all), channel_id=1, is_host_transfer=true, frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime",_xla_host_transfer_rendezvous="all-reduce.1_0",_xla_megascale_reduce_operation="SUM",_xla_megascale_target="{1,2}x{0:3}",_xla_megascale_transfer_type="ALL_REDUCE"}
  %send-done = token[] send-done(%send), channel_id=2, is_host_transfer=true
  %recv-done = (bf16[4096,128], token[]) recv-done(%recv), channel_id=1, is_host_transfer=true
  %sum = bf16[4096,128] get-tuple-element(%recv-done), index=0
  ROOT %all-reduce = bf16[4096,128] all-reduce(%sum), channel_id=3, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add
}
)";

TEST(HloForms, AModuleOfOneSliceRunsOnAllSlicesAndTalksToTheOthers) {
  const System two = system_with({{"machine", "tpu_v5e"}, {"slice", "2x2"}, {"pods", "2"}, {"mesh", "pod=2,x=2,y=2"}});
  const podsim::Run run = run_of(two, spec_of(module_of(megascale)));
  constexpr std::int64_t bytes = 4096 * 128 * 2;
  const auto alone = [&](const std::string& axis) {
    const auto spec = read_problem(testing::fields({{"collective", "all-reduce"}, {"axis", axis}, {"bytes", std::to_string(bytes)}}), two, DType::bf16);
    EXPECT_TRUE(spec) << to_text(spec.error());
    return run_of(two, *spec);
  };
  const podsim::Run pods = alone("pod"), rows = alone("y");
  EXPECT_EQ(run.metrics.link_bytes, pods.metrics.link_bytes + rows.metrics.link_bytes);
  const double sum = to_seconds(pods.metrics.makespan).count() + to_seconds(rows.metrics.makespan).count();
  EXPECT_NEAR(to_seconds(run.metrics.makespan).count(), sum, 0.02 * sum);
  const System one = system_with({{"machine", "tpu_v5e"}, {"slice", "2x2"}, {"mesh", "x=2,y=2"}});
  const auto refused = make_problem(one, spec_of(module_of(megascale)));
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_text(refused.error()), HasSubstr("m:1:1: expected a mesh of several slices of the module's 4 devices each"));
}

}  // namespace
}  // namespace podsim::hlo_forms
