// Progress of long work.
#pragma once

#include <fmt/ostream.h>

#include <string>

#include "tools/command/console.hpp"

namespace podsim {

/// A line that is written over at each step, on a terminal only. `total` 0: the number of steps is not known.
class Progress {
 public:
  Progress(Console& console, bool quiet, std::size_t total) : console_{console}, on_{console.err_is_terminal && !quiet}, total_{total} {}
  ~Progress() {
    if (on_) fmt::print(console_.err, "\r\033[K");
  }
  void step(const std::string& what) {
    if (!on_) return;
    ++count_;
    fmt::print(console_.err, "\r\033[K[{}{}] {}", count_, total_ == 0 ? "" : fmt::format("/{}", total_), what);
    console_.err.flush();
  }

 private:
  Console& console_;
  bool on_;
  std::size_t total_, count_ = 0;
};

}  // namespace podsim
