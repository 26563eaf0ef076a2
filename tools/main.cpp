#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "tools/command/command.hpp"

namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// The first Ctrl-C asks for an end with what is known so far, the second one ends at once.
void on_interrupt(int) {
  interrupted.store(true, std::memory_order_relaxed);
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::signal(SIGINT, on_interrupt);
  podsim::Console console{std::cout, std::cerr, isatty(STDERR_FILENO) == 1, &interrupted};
  const int status = podsim::run_command(std::vector<std::string>(argv + 1, argv + argc), console);
  std::cout.flush();
  return status;
}
