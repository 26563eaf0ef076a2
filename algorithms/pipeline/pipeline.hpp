// Pipeline schedules: which rank does which forward and backward of which microbatch, in which order. README.md explains terms and names.
//
//   S stages, D ranks, m microbatches, v = S / D stages per rank (virtual stages)
//
// A stage is a run of consecutive layers; a rank is the group of devices that owns v of them. Everything here is data and pure functions: no machine,
// no clock. pipeline_times.hpp counts times in units, pipeline_step.hpp adds transfers and lifetimes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

enum class PipelineSchedule { gpipe, one_f_one_b, eager_one_f_one_b, interleaved, kimi_k2, zero_bubble, dual_pipe_v };

/// "gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b", "kimi-k2", "zero-bubble", "dual-pipe-v"
std::string_view name_of(PipelineSchedule schedule);
std::span<const PipelineSchedule> all_pipeline_schedules();
/// Errors: another name; the message names the near ones and all.
Expected<PipelineSchedule> pipeline_schedule_named(std::string_view name, const SourceLocation& where = {});

/// A backward pass is one task, or it is split: backward_inputs computes what the stage before waits for, backward_weights the rest.
enum class PipelineTaskKind : std::uint8_t { forward, backward, backward_inputs, backward_weights };

struct PipelineTask {
  PipelineTaskKind kind = PipelineTaskKind::forward;
  int stage = 0, microbatch = 0;
  friend bool operator==(const PipelineTask&, const PipelineTask&) = default;
  friend auto operator<=>(const PipelineTask&, const PipelineTask&) = default;
};

/// Time of a task in units: forward 1, backward 2, half a backward 1.
int units_of(PipelineTaskKind kind);

/// "fwd_2__0": stage 2, microbatch 0; "bwd_", "bwdA_" (inputs), "bwdW_" (weights)
std::string name_of(const PipelineTask& task);
/// The task with that name; nullopt: no task has it.
std::optional<PipelineTask> pipeline_task_named(std::string_view name);
/// The same in short: "F2.0", "B2.0", "BI2.0", "BW2.0"
std::string code_of(const PipelineTask& task);

/// One or several tasks that a rank executes as one: see pipeline_times(). Not empty.
using PipelineUnit = std::vector<PipelineTask>;
/// The name of its task, or "FusedTask(fwd_3__0, bwd_3__0)"
std::string name_of(const PipelineUnit& unit);

struct PipelineSpec {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int stages = 1, ranks = 1, microbatches = 1;
  bool fuse_steady_state = false;  // interleaved and kimi_k2: every forward of the steady state is fused with its backward, not only the last stage's
};

/// Of stages * microbatches: a list this long is a mistake, not a pipeline.
inline constexpr std::int64_t most_stage_microbatches = 1 << 18;

/// Errors, each at the field to blame: a count below 1; more than most_stage_microbatches; stages that the schedule cannot lay on the ranks;
/// microbatches that it cannot order; fuse_steady_state of a schedule without it.
Status check_pipeline(const PipelineSpec& spec);

/// Whether backward passes are split.
bool splits_backward(PipelineSchedule schedule);

/// Stages go round the ranks: stage mod D. dual_pipe_v goes there and back: rank r owns the stages r and 2 D - 1 - r.
int rank_of_stage(const PipelineSpec& spec, int stage);
/// The stages of a rank, increasing.
std::vector<int> stages_of_rank(const PipelineSpec& spec, int rank);

/// The tasks whose results a task needs.
///   forward (s, k)              forward (s-1, k)
///   backward[_inputs] (s, k)    forward (s, k), backward[_inputs] (s+1, k)
///   backward_weights (s, k)     backward_inputs (s, k)
std::vector<PipelineTask> dependencies_of(const PipelineTask& task, const PipelineSpec& spec);

/// What each rank executes, in order.
struct PipelineLists {
  PipelineSpec spec;
  std::vector<std::vector<PipelineUnit>> ranks;
};

/// The schedule as it is published. Every task of every stage and microbatch is there once, on the rank of its stage.
///   cost     O(S m)
///   errors   those of check_pipeline()
///   source   NVIDIA/jaxpp, src/jaxpp/schedules.py (commit cf9e386); README.md says what each schedule does
Expected<PipelineLists> pipeline_lists(const PipelineSpec& spec);

/// Every fused unit taken apart.
PipelineLists unfused(const PipelineLists& lists);

/// Stage 0 has nobody to send gradients to, so each of its backward_inputs becomes one `backward` with the backward_weights that follows it.
/// Errors: something else follows.
Expected<PipelineLists> with_first_stage_merged(const PipelineLists& lists);

/// What ranks really execute: pipeline_lists(), first stage merged, fused units kept or taken apart.
Expected<PipelineLists> executed_lists(const PipelineSpec& spec, bool keep_fused = true);

}  // namespace podsim
