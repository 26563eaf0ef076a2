// Repeated runs of one schedule, and when its tasks ran.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/mpi/rank_runner.hpp"

namespace podsim {

/// All ranks begin at one moment; the makespan is from the first task's start to the last one's end, over all ranks. Every rank has the same figures.
struct Measured {
  std::vector<Seconds> makespans;  // of each repetition, in order
  Seconds core;                    // of the fastest: the core work of the rank that has most
  Moment began;                    // of the fastest
  std::vector<Times> fastest;      // of this rank
};
Seconds minimum(const Measured& measured);
Seconds median(const Measured& measured);

/// `repeat` runs after one that is not counted (memory, MPI's own buffers). `fill` before each: so that a run cannot pass by what the one before
/// left.
struct MeasureOptions {
  int repeat = 1;
  bool fill_each = false;
  std::uint64_t seed = 1;
};
Measured measure(RankRunner& runner, const Team& team, const MeasureOptions& options);

/// At the root, the fastest run as CSV: device,task,part,peer,start_s,end_s,label,collective,origin; a row per task instance, ordered by
/// (start, device, task, part). part: core, dma, send or receive. collective: the number of the Collective in its program that the task came from,
/// origin its kind.
std::string timeline_csv(const Schedule& lowered, const RankRunner& runner, const Measured& measured, const Team& team);

}  // namespace podsim
