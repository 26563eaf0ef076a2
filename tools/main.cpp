#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "tools/command/command.hpp"
#include "tools/console/standard_output.hpp"
#include "tools/interruption.hpp"

namespace {

/// Of the terminal on standard output; 0 if it is none.
std::size_t terminal_columns() {
  if (isatty(STDOUT_FILENO) != 1) return 0;
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// https://no-color.org: set and not empty.
bool colours_unwanted() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color != nullptr && *no_color != '\0';
}

}  // namespace

int main(int argc, char** argv) {
  podsim::open_missing_standard_files();
  podsim::interruption::handle_signals();
  podsim::StandardOutput output{STDOUT_FILENO, &podsim::interruption::answering};
  podsim::Console console{output.stream(), std::cerr, isatty(STDERR_FILENO) == 1, podsim::interruption::requested(),
                          &podsim::interruption::announced, terminal_columns(), isatty(STDOUT_FILENO) == 1 && !colours_unwanted()};
  const int status = output.finish(podsim::run_command(std::vector<std::string>(argv + 1, argv + argc), console), std::cerr);
  // Without the end of libraries: where memory is short (ulimit -v) OpenBLAS waits there for a thread that never ends.
  std::quick_exit(status);
}
