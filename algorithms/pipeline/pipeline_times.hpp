// When the tasks of a pipeline run and what they hold, in units of a forward, with transfers that take no time.
#pragma once

#include <cstdint>

#include "algorithms/pipeline/pipeline.hpp"

namespace podsim {

/// One task on its rank, in units.
struct PipelineSpan {
  PipelineTask task;
  std::int64_t begin = 0, end = 0;
};

struct PipelineTimes {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> finish, busy;        // per rank: when its last unit ends, and the sum of its tasks
  double bubble_fraction = 0;                    // idle share of ranks x makespan
  std::vector<int> peak_live_forwards;           // per rank: most forwards whose backward (of weights, if split) is yet to end
  std::vector<std::vector<PipelineSpan>> spans;  // per rank, in order
  std::vector<std::pair<int, int>> order;        // (rank, unit of its list) by time of start, then by rank
};

/// Ranks execute their units in order. A unit starts as soon as its rank is free and every member's dependencies have ended, those inside the unit
/// apart; its members run back to back. Other ranks see the result of a member at that member's own end; the unit holds its rank until its last
/// member ends.
///   cost     O(tasks log ranks)
///   errors   a task of a stage or microbatch that the spec does not have, on another rank than that of its stage, or there twice; an order in which
///   no
///            rank can go on (the message says what each of the first waits for)
Expected<PipelineTimes> pipeline_times(const PipelineLists& lists);

}  // namespace podsim
