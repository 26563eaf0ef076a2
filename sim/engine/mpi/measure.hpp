// Repeated timed runs of one schedule.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/mpi/rank_runner.hpp"
#include "sim/engine/timeline.hpp"

namespace podsim {

/// All ranks start together. The makespan is from the start of the first task to the end of the last one, over all ranks. Every rank has the same
/// figures.
struct Measured {
  std::vector<Seconds> makespans;  // of each repetition, in order
  Seconds core;                    // of the fastest repetition: core work of the rank that has most
  Moment began;                    // of the fastest repetition
  std::vector<Times> fastest;      // of the fastest repetition, on this rank
};
Seconds minimum(const Measured& measured);
Seconds median(const Measured& measured);

/// `repeat` timed runs after one warm-up run, which is not counted (memory, MPI's own buffers). `fill_each`: fill the inputs again before each run,
/// so that no run can reuse results of an earlier one.
struct MeasureOptions {
  int repeat = 1;
  bool fill_each = false;
  std::uint64_t seed = 1;
};
Measured measure(RankRunner& runner, const Team& team, const MeasureOptions& options);

/// Whether the data of the last run was right for every task. Otherwise the error of the first task, by number, and of the lowest rank, on every rank:
/// what follows it may fail for that reason alone. Collective.
Status worked_on_its_data(const RankRunner& runner, const Team& team);

/// At the root: the fastest run as CSV with columns device,task,part,peer,start_s,end_s,label,collective,origin; one row per task instance, ordered
/// by (start, device, task, part). part: core, dma, send or receive. collective: the number of the task's Collective in its program; origin: its
/// kind.
std::string timeline_csv(const Schedule& lowered, const RankRunner& runner, const Measured& measured, const Team& team);

/// At the root: the fastest run as a timeline of an engine has it. A transfer begins when both ranks have posted their half, is sent when the sender may reuse its
/// buffer (MPI may still have the message), and received when the receiver sees it, never before. Other ranks get an empty one. Collective. Errors: those of make_timeline().
Expected<Timeline> measured_timeline(const RankRunner& runner, const Measured& measured, const Team& team);

}  // namespace podsim
