// Sharded programs as problems: their collectives inserted, by simulation where that is asked for.
#pragma once

#include <set>
#include <string>

#include "topologies/system.hpp"
#include "workloads/scenario/run_options.hpp"
#include "workloads/scenario/problem.hpp"

namespace podsim {

/// The plan of a program, or the answer to its search. Choose::time simulates, of every operation, the 12 ways with the fewest bytes by des, each alone;
/// Minimise::time simulates the chains that find_chain() offers. Errors: those of find_chain() and of simulation; cancelled work.
Expected<PlannedProgram> choose_program_plan(const System& system, const ProgramSpec& spec, const RunOptions& options);

}  // namespace podsim
