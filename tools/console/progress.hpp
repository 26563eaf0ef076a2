// Progress of long work: one line on the terminal, written over; of some work also a line now and then elsewhere.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "sim/engine/engine.hpp"
#include "tools/console/console.hpp"
#include "workloads/scenario/run_options.hpp"

namespace podsim {

/// After `after` seconds, what is being done and for how long, or what the work says of itself; a few times a second, on a terminal only, as wide as
/// it. Erased at the end.
class ProgressLine {
 public:
  /// Off a terminal nothing, or after so many seconds, and again and again, a line of its own.
  enum class Elsewhere { nothing, lines };
  static constexpr double between_own_lines = 10;

  ProgressLine(Console& console, bool quiet, double after = 1, Elsewhere elsewhere = Elsewhere::nothing, double between_lines_elsewhere = between_own_lines);
  ~ProgressLine() { end(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// What is done from now on, by any thread. Shown until something else is, with the seconds since the beginning.
  void doing(const std::string& what);
  /// How many of the parts of the work are done: shown before what is done, with their rate and the time that the others take at it. By any thread.
  void counting(std::size_t done, std::size_t all);
  /// `text` is given the seconds since doing() last said something, or since the beginning; it is called only if its line is shown. By any thread.
  template <class Text>
  void show(Text&& text) {
    if (!on_) return;
    const std::scoped_lock lock{mutex_};
    if (const double now = seconds(); now >= next_) print(text(now - since_), now);
  }
  /// The seconds are counted on while the work says nothing: by a thread of its own, so not where the process is about to fork.
  void count_seconds();
  void end();

 private:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
  void print(const std::string& what, double now);
  void show_what(double now);
  [[nodiscard]] std::string counted(double now) const;
  void tick();

  Console& console_;
  const bool own_lines_;  // on no terminal
  bool on_, shown_ = false, ended_ = false;
  double between_, next_, last_ = 0, since_ = 0, counting_since_ = 0;
  std::size_t done_ = 0, all_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::string what_;
  std::mutex mutex_;
  std::condition_variable ending_;
  std::thread ticking_;
};

/// What is done on behalf of `options` is shown, and how far its runs are. The line outlives the use of the options.
void show_on(ProgressLine& line, RunOptions& options);

/// Of one run.
std::string progress_text(const RunProgress& progress, double seconds);

}  // namespace podsim
