#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "tools/command/command.hpp"
#include "tools/console/printable_stream.hpp"
#include "tools/console/standard_output.hpp"
#include "tools/interruption.hpp"

namespace {

/// Of the terminal on a descriptor; 0 if it is none.
std::size_t terminal_columns(int descriptor) {
  if (isatty(descriptor) != 1) return 0;
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// https://no-color.org: set and not empty.
bool colours_unwanted() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color != nullptr && *no_color != '\0';
}

/// Whether the terminal has escape sequences.
bool is_dumb() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view{terminal} == "dumb";
}

/// As `out` and `err` would print it.
void tell_known_so_far(const std::string& out, const std::string& err) {
  podsim::interruption::known_so_far(podsim::printable(out), podsim::printable(err));
}

}  // namespace

int main(int argc, char** argv) {
  podsim::open_missing_standard_files();
  podsim::interruption::handle_signals();
  podsim::StandardOutput output{STDOUT_FILENO, &podsim::interruption::answering};
  const std::size_t out_columns = terminal_columns(STDOUT_FILENO), err_columns = terminal_columns(STDERR_FILENO);
  podsim::PrintableStream out{output.stream(), podsim::OwnSequences::colours}, err{std::cerr, err_columns > 0 ? podsim::OwnSequences::progress : podsim::OwnSequences::none};
  podsim::Console console{out.stream(), err.stream(), err_columns > 0 && !is_dumb(), podsim::interruption::requested(), &podsim::interruption::announced,
                          out_columns, out_columns > 0 && !colours_unwanted() && !is_dumb(), nullptr, err_columns, &tell_known_so_far};
  const int status = output.finish(podsim::run_command(std::vector<std::string>(argv + 1, argv + argc), console), std::cerr);
  // Without the end of libraries: where memory is short (ulimit -v) OpenBLAS waits there for a thread that never ends.
  std::quick_exit(status);
}
