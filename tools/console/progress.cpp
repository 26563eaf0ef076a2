#include "tools/console/progress.hpp"

#include <pthread.h>

#include <fmt/ostream.h>

#include <algorithm>
#include <system_error>

#include "sim/base/units.hpp"
#include "tools/console/caller.hpp"
#include "tools/report/text_width.hpp"

namespace podsim {

namespace {

bool calls_back(const Console& console) { return console.caller != nullptr && console.caller->progress; }

constexpr double between_lines = 0.2, silence = 0.5;  // seconds
constexpr std::size_t least_columns = 10;             // of a terminal

}  // namespace

ProgressLine::ProgressLine(Console& console, bool quiet, double after, Elsewhere elsewhere, double between_lines_elsewhere)
    : console_{console},
      own_lines_{elsewhere == Elsewhere::lines && !console.err_is_terminal && console.caller == nullptr},
      on_{(console.err_is_terminal || calls_back(console) || own_lines_) && !quiet},
      between_{own_lines_ ? between_lines_elsewhere : between_lines},
      next_{own_lines_ ? between_lines_elsewhere : after} {}

void ProgressLine::doing(const std::string& what) {
  if (!on_) return;
  const std::scoped_lock lock{mutex_};
  what_ = what;
  since_ = seconds();
  if (since_ >= next_) show_what(since_);
}

void ProgressLine::counting(std::size_t done, std::size_t all) {
  if (!on_) return;
  const std::scoped_lock lock{mutex_};
  if (all != all_ || done < done_) counting_since_ = seconds();
  done_ = done;
  all_ = all;
}

std::string ProgressLine::counted(double now) const {
  if (all_ == 0) return {};
  const double passed = now - counting_since_;
  if (done_ == 0 || passed <= 0) return fmt::format("{} of {}: ", done_, all_);
  const double rate = static_cast<double>(done_) / passed;
  return fmt::format("{} of {}, {:.3g}/s, {:.0f} s left: ", done_, all_, rate, static_cast<double>(all_ - std::min(done_, all_)) / rate);
}

void ProgressLine::count_seconds() {
  if (!on_ || ticking_.joinable()) return;
  try {
    ticking_ = std::thread{[this] { tick(); }};
  } catch (const std::system_error&) {  // no thread to be had: the line is written when the work says something
  }
}

void ProgressLine::tick() {
  pthread_setname_np(pthread_self(), "progress");  // for those who count threads: it computes nothing
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

void ProgressLine::print(const std::string& what, double now) {
  if (ended_) return;
  next_ = now + between_;
  last_ = now;
  shown_ = true;
  const std::string text = counted(now) + what;
  if (calls_back(console_)) return console_.caller->progress(text);
  if (own_lines_) {
    fmt::print(console_.err, "podsim: {}\n", on_one_line(text, std::string::npos));
    console_.err.flush();
    return;
  }
  // A line that goes on in the next one could not be erased.
  const std::size_t columns = console_.err_columns > least_columns ? console_.err_columns - 1 : std::string::npos;
  fmt::print(console_.err, "\r\033[K{}", on_one_line(text, columns));
  console_.err.flush();
}

void show_on(ProgressLine& line, RunOptions& options) {
  options.doing = [&line](const std::string& what) { line.doing(what); };
  options.counting = [&line](std::size_t done, std::size_t all) { line.counting(done, all); };
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
