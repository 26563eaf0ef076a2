// What bounds a run's time, and which machine values would change it.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/critical_path.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// Consecutive steps of the critical path that belong to one Collective or one task.
struct PathStretch {
  std::string label;
  std::size_t steps = 0;
  DeviceId first, last;  // the path enters on the first device and leaves from the last
  int axis = -1;         // mesh axis of its transfers; -1: none
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
  std::vector<TimeParts> on_axis;  // the share of transfers in `parts`: one entry per mesh axis, then one for Sends
  std::vector<PathStep> steps;
  std::vector<PathStretch> stretches;
  std::vector<Sensitivity> sensitivities;  // the strongest first; values that are zero or unlimited are left out
  std::string sentence;                    // "bound by ...; +10 % there gives ..."
};

/// Repeats the run once per machine value, with this value changed; `options.threads` runs at a time. Errors: those of a run; cancelled work.
Expected<Explanation> explain(const Run& run, const RunOptions& options);

}  // namespace podsim
