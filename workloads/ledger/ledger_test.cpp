// The ledger says what a run waits for: all of it, and each purpose once.
#include "workloads/ledger/ledger.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/base/test_cases.hpp"
#include "sim/base/units.hpp"
#include "topologies/machines.hpp"
#include "workloads/hlo/read_hlo.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/problem_kinds.hpp"
#include "workloads/scenario/test_training.hpp"
#include "workloads/scenario/testing.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::system_with;

podsim::Run run_of(const System& system, const ProblemSpec& spec, bool inline_calls = false) {
  RunOptions options;
  options.inline_calls = inline_calls;
  const auto posed = pose(system, spec, options);
  EXPECT_TRUE(posed) << to_text(posed.error());
  auto run = simulate(posed->system, posed->problem, options);
  EXPECT_TRUE(run) << to_text(run.error());
  return *std::move(run);
}

void expect_all_exposed(const podsim::Run& run, const std::vector<LedgerRow>& ledger) {
  Picoseconds exposed;
  for (const LedgerRow& row : ledger) {
    exposed = exposed + row.exposed;
    EXPECT_LE(row.exposed + row.hidden, row.in_flight) << row.name;
    EXPECT_GT(row.count, 0) << row.name;
  }
  EXPECT_EQ(exposed, run.metrics.split.exposed_communication);
  EXPECT_TRUE(std::ranges::is_sorted(ledger, std::ranges::greater{}, &LedgerRow::exposed));
}

/// Without what is exposed: of several that the core could wait for it is one, and inside a call that is played not always the same. Sorted by name.
std::vector<std::string> texts_of(const std::vector<LedgerRow>& ledger) {
  std::vector<std::string> texts;
  for (const LedgerRow& row : ledger)
    texts.push_back(fmt::format("{}: {} along {}, {} x {} bytes, {} ps hidden, {} in flight", row.name, row.kind, fmt::join(row.axes, ","), row.count, row.bytes.count(), row.hidden.count(), row.in_flight.count()));
  std::ranges::sort(texts);
  return texts;
}

TEST(Ledger, AddsUpToTheExposedTimeHoweverCallsAreSimulated) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < test::cases(40U, 3U); ++seed) {
    const TrainingStep step = testing::random_training_step(seed);
    SCOPED_TRACE(fmt::format("seed {}: {}, {}, {} microbatches", seed, to_text(step.mesh), step.pipeline, step.microbatches));
    const System system = testing::system_of(*find_machine(seed % 2 == 0 ? "tpu_v4" : "ideal"), step.mesh);
    TrainingSpec spec{step};
    spec.layers.algorithm = "collective";
    const podsim::Run called = run_of(system, spec), flat = run_of(system, spec, true);
    const std::vector<LedgerRow> ledger = collective_ledger(called), of_flat = collective_ledger(flat);
    expect_all_exposed(called, ledger);
    expect_all_exposed(flat, of_flat);
    if (called.row.calls.inlined > 0) continue;
    EXPECT_THAT(texts_of(ledger), ElementsAreArray(texts_of(of_flat)));
    ++compared;
  }
  EXPECT_GT(compared, test::cases(4, -1));
}

TEST(Ledger, CountsTheSlicesOfAGatherOnce) {
  const System system = system_with({{"machine", "tpu_v4"}, {"slice", "4x4"}, {"mesh", "row=4,col=4"}});
  GemmSpec spec;
  spec.algorithm = *gemm_algorithm("meshslice");
  spec.problem = {4096, 4096, 4096, DType::bf16};
  spec.options.slice_count = 8;
  const podsim::Run run = run_of(system, spec);
  std::vector<std::string> rows;
  for (const LedgerRow& row : collective_ledger(run)) rows.push_back(fmt::format("{} x {}: {} of {} along {}", row.name, row.count, row.kind, to_text(row.bytes), fmt::join(row.axes, ",")));
  std::ranges::sort(rows);
  EXPECT_THAT(rows, ElementsAre("gather W x 8: all-gather of 262.1 kB along row", "gather X x 8: all-gather of 262.1 kB along col"));
}

// A loop of three trips with an all-gather in its body, in a library that a user's line calls, beside one in front of it, as JAX's compilers write them.
constexpr const char* looped = R"(HloModule m, is_scheduled=true, num_partitions=4

FileNames
1 "model.py"
2 "layers.py"
3 "/usr/lib/python3/dist-packages/flax/linen.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=3 end_column=9}
2 {file_name_id=2 function_name_id=1 line=85 end_line=85 column=3 end_column=9}
3 {file_name_id=3 function_name_id=1 line=7 end_line=7 column=3 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}


%body (t: (s32[], bf16[256], bf16[1024])) -> (s32[], bf16[256], bf16[1024]) {
  %t = (s32[], bf16[256], bf16[1024]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %x = bf16[256] get-tuple-element(%t), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %all-gather.7 = bf16[1024] all-gather(%x), channel_id=2, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true, metadata={op_name="jit(step)/while/body/dot_general" stack_frame_id=3}
  ROOT %r = (s32[], bf16[256], bf16[1024]) tuple(%next, %x, %all-gather.7)
}

%condition (t.1: (s32[], bf16[256], bf16[1024])) -> pred[] {
  %t.1 = (s32[], bf16[256], bf16[1024]) parameter(0)
  %i.1 = s32[] get-tuple-element(%t.1), index=0
  %three = s32[] constant(3)
  ROOT %more = pred[] compare(%i.1, %three), direction=LT
}

ENTRY %main (p: bf16[256]) -> (s32[], bf16[256], bf16[1024]) {
  %p = bf16[256] parameter(0)
  %zero = s32[] constant(0)
  %all-gather.3 = bf16[1024] all-gather(%p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true, metadata={op_name="jit(step)/embed" source_file="embed.py" source_line=7}
  %start = (s32[], bf16[256], bf16[1024]) tuple(%zero, %p, %all-gather.3)
  ROOT %while.1 = (s32[], bf16[256], bf16[1024]) while(%start), condition=%condition, body=%body
}
)";

TEST(Ledger, NamesAnInstructionByItsPlaceInTheUsersProgramAndCountsTrips) {
  auto module = parse_hlo(looped, "m");
  ASSERT_TRUE(module) << to_text(module.error());
  const System system = system_with({{"machine", "ideal"}, {"slice", "4"}, {"mesh", "x=4"}, {"set", "link.bandwidth=1GB/s"}});
  for (const bool inline_calls : {false, true}) {
    const podsim::Run run = run_of(system, HloSpec{std::make_shared<const HloModule>(*module), {}, {}, CollectivePolicy{}}, inline_calls);
    std::vector<std::string> rows;
    for (const LedgerRow& row : collective_ledger(run)) {
      rows.push_back(fmt::format("{} x {} of {}, {}, {}", row.name, row.count, row.bytes.count(), row.path, row.source));
      EXPECT_EQ(row.exposed, row.in_flight) << "nothing is computed meanwhile";
    }
    EXPECT_THAT(rows, ElementsAre("all-gather.7 x 3 of 512, jit(step)/while/body/dot_general, layers.py:85", "all-gather.3 x 1 of 512, jit(step)/embed, embed.py:7"));
    expect_all_exposed(run, collective_ledger(run));
  }
}

TEST(Ledger, HasARowForEachOperationThatCommunicates) {
  const System system = system_with({{"machine", "tpu_v4"}, {"slice", "4x4"}, {"mesh", "row=4,col=4"}});
  GemmSpec spec;
  spec.algorithm = *gemm_algorithm("meshslice");
  spec.problem = {4096, 4096, 4096, DType::bf16};
  spec.options.slice_count = 8;
  const podsim::Run run = run_of(system, spec);
  const std::vector<LedgerRow> ledger = collective_ledger(run);
  std::map<const LedgerRow*, Picoseconds> exposed;
  for (const OperationMetrics& operation : measure_operations(run.model, run.timeline, run.metrics.busiest)) {
    const LedgerRow* const row = ledger_row_of(ledger, operation.name, operation.category, operation.bytes);
    EXPECT_EQ(row != nullptr, operation.devices > 0) << operation.name;
    if (row != nullptr) exposed[row] = exposed[row] + operation.exposed;
  }
  ASSERT_EQ(exposed.size(), ledger.size());
  for (const auto& [row, time] : exposed) EXPECT_EQ(time, row->exposed) << row->name;
}

TEST(Ledger, MergesWhatAPipelinePassesOnInEachMicrobatch) {
  int merged = 0;
  for (std::uint64_t seed = 0; seed < test::cases(10U, 2U); ++seed) {
    TrainingStep step = testing::random_training_step(seed);
    TrainingSpec spec{step};
    spec.layers.algorithm = "collective";
    for (const LedgerRow& row : collective_ledger(run_of(testing::system_of("tpu_v4", step.mesh), spec))) {
      EXPECT_EQ(row.name.find("__"), std::string::npos) << row.name;
      merged += row.kind == "send" && row.count == step.microbatches;
    }
  }
  EXPECT_GE(merged, test::cases(10, 1));
}

}  // namespace
}  // namespace podsim
