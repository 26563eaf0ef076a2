// What one rank of the pipeline does in a training step, as tasks of its program: calls of functions, in the order of its list.
#pragma once

#include <functional>
#include <vector>

#include "algorithms/pipeline/write_pipeline.hpp"
#include "workloads/training/step_schedule.hpp"

namespace podsim {

/// Writes the tasks of one command (PipelineWork) and returns the edges to what is done last.
using RankWriter = std::function<Edges(PipelineProgram&, const PipelineCommand&, const Edges& after)>;

/// The writer of one rank. Commands must come in the order of the rank's list, step by step. It adds to `functions` what it calls, and to `memory` the kind of
/// each buffer it makes. All arguments must outlive it.
RankWriter rank_writer(const StepParts& parts, StepFunctions& functions, const PipelineStep& pipeline, const TrainingScheduleOptions& options, int rank, std::vector<MemoryKind>& memory);

}  // namespace podsim
