// Progress of long work.
#pragma once

#include <fmt/ostream.h>

#include <chrono>
#include <functional>

#include <string>

#include "sim/base/units.hpp"
#include "sim/engine/engine.hpp"
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

/// Of long work: after `after` seconds, a line that is written over a few times a second, on a terminal only.
class ProgressLine {
 public:
  ProgressLine(Console& console, bool quiet, double after = 1) : console_{console}, on_{console.err_is_terminal && !quiet}, next_{after} {}
  ~ProgressLine() {
    if (shown_) fmt::print(console_.err, "\r\033[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `text` is given the seconds since the beginning; it is called only if its line is shown.
  template <class Text>
  void show(Text&& text) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    if (!on_ || seconds < next_) return;
    next_ = seconds + 0.2;
    shown_ = true;
    fmt::print(console_.err, "\r\033[K{}", text(seconds));
    console_.err.flush();
  }

 private:
  Console& console_;
  bool on_, shown_ = false;
  double next_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Of one run.
inline std::string progress_text(const RunProgress& progress, double seconds) {
  const double part = progress.activities > 0 ? static_cast<double>(progress.finished) / static_cast<double>(progress.activities) : 0;
  return fmt::format("{:.0f} % of {} task instances, {:.1f} million/s, {:.0f} s left; {} simulated", 100 * part, progress.activities,
                     1e-6 * static_cast<double>(progress.finished) / seconds, part > 0 ? seconds / part - seconds : 0,
                     to_text(to_seconds(progress.now)));
}

}  // namespace podsim
