#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "sim/engine/numeric/kernels.hpp"
#include "tools/command/command.hpp"
#include "tools/console/standard_output.hpp"
#include "tools/interruption.hpp"

int main(int argc, char** argv) {
  podsim::open_missing_standard_files();
  podsim::interruption::handle_signals();
  podsim::use_one_blas_thread();
  podsim::StandardOutput output{STDOUT_FILENO, &podsim::interruption::answering};
  podsim::Console console{output.stream(), std::cerr, isatty(STDERR_FILENO) == 1, podsim::interruption::requested(),
                          &podsim::interruption::announced};
  const int status = output.finish(podsim::run_command(std::vector<std::string>(argv + 1, argv + argc), console), std::cerr);
  // Without the end of libraries: where memory is short (ulimit -v) OpenBLAS waits there for a thread that never ends.
  std::quick_exit(status);
}
