// Work in a child process: SimGrid's engine can be started once per process, and it aborts on what it does not like.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

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

/// Forks, runs `work` in the child, returns what it wrote. The child leaves by _exit: no destructor of the parent's, no flush, no leak check.
///
/// The child is a copy of the calling thread alone, so no other thread of the process may hold a lock that `work` needs; glibc sees to its own
/// (memory, standard streams).
///
/// Errors: no process or pipe to be had; the child died or threw (with its last line on standard error, which it does not share with the
/// parent). The child is reaped and no file stays open in any case.
Expected<std::vector<std::byte>> run_in_child(const std::function<void(Output&)>& work);

}  // namespace podsim::simgrid_engine
