// Where a command writes. Libraries never print; only the command does, and only through this.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>

#include "sim/base/cancellation.hpp"

namespace podsim {

struct Caller;  // caller.hpp

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;  // that can erase a line; progress goes there
  Cancellation interrupted{};    // Ctrl-C, SIGTERM
  void (*told_interrupted)() = nullptr;  // called when a command has said that it was interrupted
  std::size_t columns = 0;               // of the terminal that `out` is; 0: it is none
  bool colours = false;                  // `out` is a terminal that has some, and NO_COLOR is not set
  Caller* caller = nullptr;              // a program, in place of a person
  std::size_t err_columns = 0;           // of the terminal that `err` is; 0: not known
  /// Told what is printed, on `out` and `err`, if the command is interrupted and does not hear of it; nullptr: nobody asks.
  void (*known_so_far)(const std::string& out, const std::string& err) = nullptr;
};

/// Exit status of the program; fixed, scripts rely on it. 130 is what a shell calls the end by Ctrl-C; SIGTERM and SIGHUP have
/// it too.
enum ExitStatus { exit_done = 0, exit_false = 1, exit_bad_input = 2, exit_internal = 3, exit_interrupted = 130 };

}  // namespace podsim
