#include "tools/interruption.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <string_view>

#include "sim/base/output_file.hpp"
#include "tools/console/console.hpp"

namespace podsim::interruption {

namespace {

std::atomic<bool> is_requested{false}, is_answering{false}, is_announced{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Rings when the time to answer is over: work ends soon after a signal where it can, but not every loop of every library looks. The end of a process with
/// gigabytes takes a tenth of a second or two more.
timer_t time_to_answer;
bool has_timer = false;
constexpr itimerspec begin_to_answer{{0, 0}, {0, 300'000'000}}, end_of_answer{{0, 0}, {4, 0}};

[[noreturn]] void end() {
  remove_part_files();
  constexpr std::string_view text = "podsim: interrupted\n";
  if (!is_announced.load(std::memory_order_relaxed)) static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
  ::_exit(exit_interrupted);
}

void on_signal(int signal) {
  if (!is_requested.exchange(true, std::memory_order_relaxed)) {
    if (is_answering.load(std::memory_order_relaxed)) end();
    if (has_timer) static_cast<void>(timer_settime(time_to_answer, 0, &begin_to_answer, nullptr));
    return;
  }
  remove_part_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void on_end_of_time(int) {
  static std::atomic<bool> is_longer{false};
  if (!is_answering.load(std::memory_order_relaxed) || is_longer.exchange(true, std::memory_order_relaxed)) end();
  static_cast<void>(timer_settime(time_to_answer, 0, &end_of_answer, nullptr));
}

}  // namespace

void handle_signals() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  // Whatever signal the timer is given, it is nobody else's: real-time signals are not used here.
  const int time_is_over = SIGRTMIN;
  action.sa_handler = on_end_of_time;
  sigaction(time_is_over, &action, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = time_is_over;
  has_timer = timer_create(CLOCK_MONOTONIC, &event, &time_to_answer) == 0;

  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    const bool ignored = sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
    if (signal == SIGHUP && ignored) continue;  // nohup
    sigaction(signal, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error with a reason
}

Cancellation requested() { return &is_requested; }

void answering() { is_answering.store(true, std::memory_order_relaxed); }

void announced() { is_announced.store(true, std::memory_order_relaxed); }

}  // namespace podsim::interruption
