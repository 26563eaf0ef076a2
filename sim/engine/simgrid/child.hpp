// Work in a child process: SimGrid's engine can be started once per process, and it aborts on what it does not like.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"

namespace podsim::simgrid_engine {

/// Where the work puts its result, piece by piece.
class Output {
 public:
  explicit Output(int file) : file_{file} {}
  void write(const void* data, std::size_t size);

 private:
  int file_;
};

/// When the parent ends the child.
struct ChildLimits {
  Cancellation stop;
  std::chrono::milliseconds longest_stop = std::chrono::seconds{10};  // how long the child may be stopped (SIGSTOP) before it is given up
};

/// Forks, runs `work` in the child, returns what it wrote. The child leaves by _exit: no destructor of the parent's, no flush, no leak check.
///
/// The child is a copy of the calling thread alone, so no other thread of the process may hold a lock that `work` needs; glibc sees to its own
/// (memory, standard streams).
///
/// The child ignores Ctrl-C and dies with its parent.
///
/// Errors: cancelled_work() within a tenth of a second once `stop` is requested. All others have Cause::environment: no process or pipe to be had; the
/// child died or threw (with its last line on standard error, which it does not share with the parent), or was stopped for too long. The child is reaped
/// and no file stays open in any case.
Expected<std::vector<std::byte>> run_in_child(const std::function<void(Output&)>& work, const ChildLimits& limits = {});

}  // namespace podsim::simgrid_engine
