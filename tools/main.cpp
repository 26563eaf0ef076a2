#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "tools/command/command.hpp"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  podsim::Console console{std::cout, std::cerr, isatty(STDERR_FILENO) == 1};
  const int status = podsim::run_command(std::vector<std::string>(argv + 1, argv + argc), console);
  std::cout.flush();
  return status;
}
