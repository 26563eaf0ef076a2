#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "sim/base/output_file.hpp"
#include "tools/command/command.hpp"
#include "tools/command/standard_output.hpp"

namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// The first Ctrl-C asks for an end with what is known so far, the second one ends at once.
void on_signal(int signal) {
  if (!interrupted.exchange(true, std::memory_order_relaxed)) return;
  podsim::remove_part_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// SIGTERM and SIGHUP (the terminal is gone) as Ctrl-C. Calls that wait are not taken up again behind the signal, so that reading from a pipe ends.
void handle_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    const bool ignored = sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
    if (signal == SIGHUP && ignored) continue;  // nohup
    sigaction(signal, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error with a reason
}

}  // namespace

int main(int argc, char** argv) {
  podsim::open_missing_standard_files();
  handle_signals();
  podsim::StandardOutput output;
  podsim::Console console{output.stream(), std::cerr, isatty(STDERR_FILENO) == 1, &interrupted};
  return output.finish(podsim::run_command(std::vector<std::string>(argv + 1, argv + argc), console), std::cerr);
}
