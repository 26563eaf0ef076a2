// Runs work in a child process: SimGrid's engine starts only once per process, and aborts on errors.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"

namespace podsim::simgrid_engine {

/// Receives the result of the work, piece by piece.
class Output {
 public:
  explicit Output(int file) : file_{file} {}
  void write(const void* data, std::size_t size);

 private:
  int file_;
};

/// When the parent kills the child.
struct ChildLimits {
  Cancellation stop;
  std::chrono::milliseconds longest_stop = std::chrono::seconds{10};  // the longest time that the child may stay stopped (SIGSTOP)
};

/// Forks, runs `work` in the child and returns the bytes that it wrote. The child ends by _exit: no destructors, no flush, no leak check.
///
/// The child contains only the calling thread, so no other thread may hold a lock that `work` needs; glibc takes care of its own locks (memory,
/// standard streams).
///
/// The child ignores Ctrl-C and dies with its parent.
///
/// Errors: cancelled_work(), within a tenth of a second after `stop` is requested. All others have Cause::environment: no process or pipe available;
/// the child died or threw (the message has its last line of standard error, which is not the parent's); it was stopped for too long. In every case
/// the child is reaped and no descriptor stays open.
Expected<std::vector<std::byte>> run_in_child(const std::function<void(Output&)>& work, const ChildLimits& limits = {});

}  // namespace podsim::simgrid_engine
