#include <mpi.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "tools/console/standard_output.hpp"
#include "tools/mpirun/program.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const podsim::Team team{MPI_COMM_WORLD};
  std::ostream nothing{nullptr};  // what all ranks find is said once
  podsim::StandardOutput output;
  podsim::Console console{team.is_root() ? output.stream() : nothing, team.is_root() ? std::cerr : nothing, isatty(STDERR_FILENO) == 1};
  const int status = output.finish(podsim::run_over_mpi(std::vector<std::string>(argv + 1, argv + argc), team, console), std::cerr);
  // mpirun kills the others when one ends with a failure: not before the root has said why. What all ranks found is the root's to return.
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return team.is_root() ? status : podsim::exit_done;
}
