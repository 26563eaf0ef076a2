// Chooses what a problem leaves open, by simulation: a pass of its own, before the problem has a schedule.
#pragma once

#include <optional>

#include "workloads/scenario/problem.hpp"
#include "workloads/scenario/run_options.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

/// The fastest plan on this system that `spec.choices` allow, by des. Errors: those of tune(); cancelled work.
Expected<PlannedWorkload> choose_plan(const System& system, const WorkloadSpec& spec, const RunOptions& options);
/// The same on whichever of these systems, of one machine, it is the fastest.
struct PlanOn {
  std::size_t system = 0;
  PlannedWorkload planned;
};
Expected<PlanOn> choose_plan(std::vector<System> systems, const WorkloadSpec& spec, const RunOptions& options);

/// A problem, and the system in the form that it uses (system_for()).
struct PosedProblem {
  System system;
  Problem problem;
};
/// system_for(); choose_plan() if the plan is open, choose_program_plan() of a program, choose_layers() of a training step; make_problem(); choose_collectives() if it is one collective by `auto`. Errors: theirs.
Expected<PosedProblem> pose(const System& system, const ProblemSpec& spec, const RunOptions& options);

/// pose() of a collective by `auto` that takes no longer than `limit` by des. nullopt: it takes longer.
struct PosedWithin {
  PosedProblem posed;
  Picoseconds time;
};
Expected<std::optional<PosedWithin>> pose_within(Picoseconds limit, const System& system, const CollectiveSpec& spec, const RunOptions& options);

}  // namespace podsim
