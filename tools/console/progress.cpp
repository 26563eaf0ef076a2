#include "tools/console/progress.hpp"

#include <fmt/ostream.h>

#include <system_error>

#include "sim/base/units.hpp"
#include "tools/console/caller.hpp"

namespace podsim {

namespace {

bool calls_back(const Console& console) { return console.caller != nullptr && console.caller->progress; }

constexpr double between_lines = 0.2, silence = 0.5;  // seconds

}  // namespace

ProgressLine::ProgressLine(Console& console, bool quiet, double after)
    : console_{console}, on_{(console.err_is_terminal || calls_back(console)) && !quiet}, next_{after} {}

void ProgressLine::doing(const std::string& what) {
  if (!on_) return;
  const std::scoped_lock lock{mutex_};
  what_ = what;
  since_ = seconds();
  if (since_ >= next_) show_what(since_);
}

void ProgressLine::count_seconds() {
  if (!on_ || ticking_.joinable()) return;
  try {
    ticking_ = std::thread{[this] { tick(); }};
  } catch (const std::system_error&) {  // no thread to be had: the line is written when the work says something
  }
}

void ProgressLine::tick() {
  std::unique_lock lock{mutex_};
  while (!ending_.wait_for(lock, std::chrono::duration<double>(between_lines), [this] { return ended_; }))
    if (const double now = seconds(); now >= next_ && (!shown_ || now >= last_ + silence) && !what_.empty()) show_what(now);
}

void ProgressLine::end() {
  {
    const std::scoped_lock lock{mutex_};
    ended_ = true;
  }
  ending_.notify_all();
  if (ticking_.joinable()) ticking_.join();
  if (shown_ && console_.err_is_terminal) fmt::print(console_.err, "\r\033[K");
  shown_ = false;
}

void ProgressLine::show_what(double now) { print(fmt::format("{}, {:.0f} s", what_, now), now); }

void ProgressLine::print(const std::string& text, double now) {
  if (ended_) return;
  next_ = now + between_lines;
  last_ = now;
  shown_ = true;
  if (calls_back(console_)) return console_.caller->progress(text);
  fmt::print(console_.err, "\r\033[K{}", text);
  console_.err.flush();
}

void show_on(ProgressLine& line, RunOptions& options) {
  options.doing = [&line](const std::string& what) { line.doing(what); };
  options.control.progress = [&line](const RunProgress& progress) { line.show([&](double seconds) { return progress_text(progress, seconds); }); };
  // SimGrid runs in a child, which must not be forked from among threads.
  if (options.engine == nullptr || options.engine->folds) line.count_seconds();
}

std::string progress_text(const RunProgress& progress, double seconds) {
  const double part = progress.activities > 0 ? static_cast<double>(progress.finished) / static_cast<double>(progress.activities) : 0;
  return fmt::format("{:.0f} % of {} task instances, {:.1f} million/s, {:.0f} s left; {} simulated", 100 * part, progress.activities,
                     1e-6 * static_cast<double>(progress.finished) / seconds, part > 0 ? seconds / part - seconds : 0,
                     to_text(to_seconds(progress.now)));
}

}  // namespace podsim
