// The program podsim_mpirun behind its main(): options, what it prints, its exit status.
#pragma once

#include <string>
#include <vector>

#include "tools/console/console.hpp"
#include "sim/engine/mpi/team.hpp"

namespace podsim {

/// All ranks call it with the same arguments and write to their console, of which only the root's should be read. Returns an ExitStatus, the same on
/// all ranks.
int run_over_mpi(const std::vector<std::string>& arguments, const Team& team, Console& console);

}  // namespace podsim
