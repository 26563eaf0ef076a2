// A pipeline as text, JSON and CSV.
#pragma once

#include <optional>
#include <string>

#include "algorithms/pipeline/pipeline_step.hpp"
#include "algorithms/pipeline/pipeline_times.hpp"

namespace podsim {

/// What `podsim show pipeline` was asked for.
struct ShownPipeline {
  PipelineLists lists;               // as published
  PipelineTimes times;               // of the lists with fused units taken apart
  PipelineTimes fused_times;         // of the lists as they are
  std::optional<PipelineStep> step;  // with --full
};
/// Errors: those of pipeline_lists() and, if there are `layers`, of pipeline_step(), and more than 65,536 stages x microbatches.
Expected<ShownPipeline> shown_pipeline(const PipelineSpec& spec, std::optional<int> layers);

/// "interleaved-1f1b: 8 stages on 4 ranks, 8 microbatches"
std::string pipeline_title(const PipelineSpec& spec);

/// A line per rank with the names of its units.
std::string pipeline_lines(const PipelineLists& lists);
/// Makespan and bubble, and a row per rank with its figures; with a step all that every rank does.
std::string pipeline_figures(const ShownPipeline& shown);

/// `schedule, stages, microbatches, fuse_steady_state, ranks` (lists of codes; a nested list is a fused unit), `makespan, bubble_fraction,
/// peak_live_forwards, finish` of unfused lists, `fused_makespan`; with a step `layers, before, loop, after` (per rank), `transfers: [ {from, to,
/// value} ]`, `deletes: [ {rank, value, after} ], placements: [ {layer, rank} ], scalars: [ {scalar, ranks} ]`.
std::string pipeline_json(const ShownPipeline& shown);

/// A row per task: `rank, unit, task, code, stage, microbatch, begin, end`; with a step a row per command: `rank, part, command`.
std::string pipeline_csv(const ShownPipeline& shown);

}  // namespace podsim
