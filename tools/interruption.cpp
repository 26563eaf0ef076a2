#include "tools/interruption.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

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

struct Answer {
  std::string out, err;
};
/// The last one, and whether a signal handler is about to print it.
std::atomic<const Answer*> answer_so_far{nullptr};
std::atomic<bool> is_ending{false};

/// As much as its reader takes within four seconds. For signal handlers.
void write_soon(int descriptor, std::string_view text) {
  constexpr std::size_t piece = 4096;  // a pipe that takes anything takes as much without waiting
  timespec begin{}, now{};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  while (!text.empty()) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long passed = (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1'000'000;
    pollfd ready{descriptor, POLLOUT, 0};
    if (passed >= 4000 || ::poll(&ready, 1, static_cast<int>(4000 - passed)) <= 0) return;
    const ssize_t written = ::write(descriptor, text.data(), std::min(piece, text.size()));
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

[[noreturn]] void end() {
  is_ending.store(true);
  remove_part_files();
  const Answer* const known = is_answering.load(std::memory_order_relaxed) ? nullptr : answer_so_far.load();
  if (!is_announced.load(std::memory_order_relaxed)) write_soon(STDERR_FILENO, known != nullptr ? std::string_view{known->err} : "podsim: interrupted\n");
  if (known != nullptr) write_soon(STDOUT_FILENO, known->out);
  ::_exit(exit_interrupted);
}

/// The program ends in a signal handler, which is not to be disturbed.
void wait_where_it_ends() {
  while (is_ending.load()) ::pause();
}

void on_signal(int signal) {
  if (!is_requested.exchange(true, std::memory_order_relaxed)) {
    if (is_answering.load(std::memory_order_relaxed) && !files_appear()) end();
    if (has_timer) static_cast<void>(timer_settime(time_to_answer, 0, &begin_to_answer, nullptr));
    return;
  }
  if (files_appear()) {  // a set of files takes its place: soon over
    if (has_timer) static_cast<void>(timer_settime(time_to_answer, 0, &begin_to_answer, nullptr));
    return;
  }
  remove_part_files();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void on_end_of_time(int) {
  if (files_appear()) {
    static_cast<void>(timer_settime(time_to_answer, 0, &begin_to_answer, nullptr));
    return;
  }
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

void answering() {
  is_answering.store(true, std::memory_order_relaxed);
  wait_where_it_ends();
}

void known_so_far(std::string out, std::string err) {
  // A handler that begins while this one is exchanged may still read the one before.
  static std::array<std::unique_ptr<const Answer>, 3> kept;
  static std::size_t next = 0;
  wait_where_it_ends();
  auto& place = kept[next++ % kept.size()];
  place = std::make_unique<const Answer>(Answer{std::move(out), std::move(err)});
  answer_so_far.store(place.get());
}

void announced() { is_announced.store(true, std::memory_order_relaxed); }

}  // namespace podsim::interruption
