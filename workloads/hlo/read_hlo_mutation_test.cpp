// Mutated modules: the reader and what counts give a value or an error, never a crash, and never take more than linear time.
#include <string>

#include <gtest/gtest.h>

#include "sim/base/test_asked.hpp"
#include "sim/base/test_cases.hpp"
#include "workloads/hlo/hlo_memory.hpp"
#include "workloads/hlo/hlo_schedule.hpp"
#include "workloads/hlo/hlo_summary.hpp"
#include "workloads/hlo/test_hlo_mutants.hpp"
#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

constexpr std::string_view seed_module =
    "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }, num_partitions=4\n"
    "%add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
    "%fused (q: f32[8,16], w: f32[16,16]) -> f32[8,16] {\n  %q = f32[8,16]{1,0:T(8,128)S(1)} parameter(0)\n  %w = f32[16,16] parameter(1)\n"
    "  ROOT %c = f32[8,16] convolution(%q, %w), window={}, dim_labels=bf_io->bf, backend_config={\"window_config\":{\"estimated_cycles\":\"12\"}}\n}\n"
    "%body (t: (s32[], f32[8,16])) -> (s32[], f32[8,16]) {\n  %t = (s32[], f32[8,16]) parameter(0)\n  %i = s32[] get-tuple-element(%t), index=0\n"
    "  %x = f32[8,16] get-tuple-element(%t), index=1\n"
    "  %ps = (f32[8,16], f32[8,16], u32[]) collective-permute-start(%x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}\n"
    "  %pd = f32[8,16] collective-permute-done(%ps)\n  %one = s32[] constant(1)\n  %n = s32[] add(%i, %one)\n"
    "  ROOT %r = (s32[], f32[8,16]) tuple(%n, %pd)\n}\n"
    "%cond (t: (s32[], f32[8,16])) -> pred[] {\n  %t = (s32[], f32[8,16]) parameter(0)\n  %j = s32[] get-tuple-element(%t), index=0\n"
    "  %four = s32[] constant(4)\n  ROOT %lt = pred[] compare(%j, %four), direction=LT\n}\n"
    "ENTRY %main (x: f32[8,16], w: f32[16,16]) -> f32[8,16] {\n  %x = f32[8,16] parameter(0), sharding={devices=[4,1]<=[4]}\n  %w = f32[16,16] "
    "parameter(1)\n"
    "  %zero = s32[] constant(0)\n  %tuple = (s32[], f32[8,16]) tuple(%zero, %x)\n  %while = (s32[], f32[8,16]) while(%tuple), condition=%cond, "
    "body=%body\n"
    "  %y = f32[8,16] get-tuple-element(%while), index=1\n  %ar = f32[8,16] all-reduce(%y), replica_groups=mesh['a'=2,'b'=2] {'b'}, channel_id=2, "
    "use_global_device_ids=true, to_apply=%add\n  ROOT %out = f32[8,16] fusion(%ar, %w), kind=kOutput, calls=%fused, metadata={op_name=\"jit(f)/jit(main)/dot_general\" source_file=\"f.py\" source_line=7}\n}\n";

/// PODSIM_HLO_MUTANTS of them; the suite has 100,000.
TEST(ReadHlo, MutantsGiveAValueOrAnError) {
  test::Mutants mutants{2027};
  const Machine machine;
  const Mesh mesh = *Mesh::make({{"x", 4, true, {}}});
  int read = 0, counted = 0, written = 0, refused = 0;
  const int mutated = test::asked("PODSIM_HLO_MUTANTS", test::cases(100000, 20000));
  for (int i = 0; i < mutated; ++i) {
    const std::string text = mutants.next(seed_module);
    const bool tolerant = i % 2 == 0;
    const auto module = parse_hlo(text, "m", {.tolerant = tolerant});
    if (!module) {
      ASSERT_FALSE(to_text(module.error()).empty());
      continue;
    }
    ++read;
    for (const HloComputation& computation : module->computations)
      for (const HloInstruction& instruction : computation.instructions) {
        for (const HloCall& call : instruction.calls) ASSERT_LT(static_cast<std::size_t>(call.computation), module->computations.size());
        for (const int operand : instruction.operands) ASSERT_LT(operand, static_cast<int>(computation.instructions.size()));
        ASSERT_LE(logical_bytes(*instruction.shape).count(), std::int64_t{1} << 60);
      }
    const auto memory = peak_memory_of(*module);
    ASSERT_TRUE(!memory || memory->hbm.count() >= 0);
    HloCountOptions options;
    options.tolerant = tolerant;
    const auto summary = summary_of(*module, machine, options);
    ASSERT_TRUE(summary || !to_text(summary.error()).empty());
    counted += summary ? 1 : 0;
    if (i % 2 != 1 || test::trips_of(*module) > 100) continue;  // as schedules, as far as they are short
    for (const bool values : {false, true}) {
      HloScheduleOptions how;
      how.values = values;
      how.order = i % 4 == 1 ? HloScheduleOptions::Order::text : HloScheduleOptions::Order::overlap;
      how.rewrite_reduce_scatter = i % 3 == 0 && !values;
      const auto schedule = hlo_schedule(*module, mesh, how);
      ASSERT_TRUE(schedule || !to_text(schedule.error()).empty());
      (schedule ? written : refused) += 1;
    }
  }
  // Mutants that are all refused at once would test nothing.
  EXPECT_GT(read, mutated / 6);
  EXPECT_GT(counted, mutated / 6);
  EXPECT_GT(written, mutated / 100);
  EXPECT_GT(refused, mutated / 200);
}

}  // namespace
}  // namespace podsim
