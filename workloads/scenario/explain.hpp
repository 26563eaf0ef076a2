// Why a run takes as long as it does, and what would change it.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/critical_path.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// Neighbouring steps of the critical path that belong together: those of one Collective, or one task.
struct PathStretch {
  std::string label;
  std::size_t steps = 0;
  DeviceId first, last;  // where it starts, and where it leads to
  int axis = -1;         // of the mesh, if something moves
  Picoseconds start, end;
  TimeParts parts;
};

/// How the makespan changes when one machine value grows by 1 %.
struct Sensitivity {
  std::string parameter;  // "link bandwidth, col", "hop latency", "launch", "peak FLOP/s", ...
  bool more_is_better = true;
  double effect = 0;  // relative change of the makespan
};

struct Explanation {
  TimeParts parts;                 // of the whole path; they sum to the makespan
  std::vector<TimeParts> on_axis;  // per mesh axis, then of Sends: the part of `parts` of its transfers
  std::vector<PathStep> steps;
  std::vector<PathStretch> stretches;
  std::vector<Sensitivity> sensitivities;  // the strongest first; values that are zero or unlimited are left out
  std::string sentence;                    // "bound by ...; +10 % there gives ..."
};

/// Runs again with each value changed, as many runs at a time as `options` has threads. Errors: those of a run; interrupted.
Expected<Explanation> explain(const Run& run, const RunOptions& options);

}  // namespace podsim
