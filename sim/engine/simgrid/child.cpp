#include "sim/engine/simgrid/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <string_view>
#include <system_error>

#include "sim/base/descriptor.hpp"

namespace podsim::simgrid_engine {

namespace {

constexpr rlim_t large_stack = rlim_t{100} << 20;

/// A signal of a terminal or of a system that shuts down reaches the child as well, but what it means for the run is the parent's to decide.
constexpr std::array signals_of_the_parent = {SIGINT, SIGTERM, SIGHUP};

/// None of these arrives while it lives.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : signals_of_the_parent) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~HeldSignals() { release(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  void release() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// A run that the computer ended, which says nothing about what was simulated.
Diagnostic failure(std::string message) { return {{}, "simgrid: " + std::move(message), Cause::environment}; }
Diagnostic call_failed(std::string_view call) { return failure(fmt::format("{}: {}", call, std::generic_category().message(errno))); }

[[noreturn]] void be_the_child(const std::function<void(Output&)>& work, pid_t parent, int result, int errors) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the result would have no reader
  if (::getppid() != parent) ::_exit(1);
  const rlimit no_core{0, 0};  // SimGrid aborts on bad input; that is not worth a core file
  ::setrlimit(RLIMIT_CORE, &no_core);
  // SimGrid's solver recurses once per link that flows connect, 64 bytes or so each. The main thread's stack grows up to the limit of the moment;
  // other threads keep theirs.
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < large_stack) {
    stack.rlim_cur = std::min(large_stack, stack.rlim_max);
    ::setrlimit(RLIMIT_STACK, &stack);
  }
  ::dup2(errors, STDERR_FILENO);
  // SimGrid flushes the standard streams when it starts; what the parent has buffered is not the child's to print.
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
  try {
    Output output{result};
    work(output);
  } catch (const std::exception& exception) {
    // Not through the standard stream: its buffer may hold the parent's text.
    const std::string line = fmt::format("{}\n", exception.what());
    Output{STDERR_FILENO}.write(line.data(), line.size());
    ::_exit(1);
  }
  ::_exit(0);
}

/// Whether it has been stopped (SIGSTOP) and not continued; it stays to be waited for.
bool is_stopped(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

enum class End { of_the_result, broken, cancelled, stopped };

/// Reads what the child writes until its end.
End follow(pid_t child, int result, std::vector<std::byte>& into, const ChildLimits& limits) {
  constexpr std::chrono::milliseconds tick{50};
  std::chrono::milliseconds stopped{0};  // counted in ticks: while this process is stopped itself, no time passes
  std::size_t size = 0;
  into.resize(std::size_t{1} << 16);
  for (;;) {
    if (limits.stop.requested()) return End::cancelled;
    pollfd ready{result, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(tick.count())) == 0) {
      stopped = is_stopped(child) ? stopped + tick : std::chrono::milliseconds{0};
      if (stopped >= limits.longest_stop) return End::stopped;
      continue;
    }
    if (ready.revents == 0) continue;  // a signal
    if (size == into.size()) into.resize(2 * size);
    const ssize_t n = ::read(result, into.data() + size, into.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) {
      size += static_cast<std::size_t>(n);
      continue;
    }
    into.resize(size);
    return n == 0 ? End::of_the_result : End::broken;
  }
}

/// The last line that says something, without SimGrid's time stamps' line breaks; empty: none.
std::string last_line(int file) {
  std::array<char, 4096> tail;
  const off_t end = ::lseek(file, 0, SEEK_END);
  const off_t begin = end > static_cast<off_t>(tail.size()) ? end - static_cast<off_t>(tail.size()) : 0;
  const ssize_t n = ::pread(file, tail.data(), tail.size(), begin);
  std::string_view text{tail.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return std::string{text.substr(text.rfind('\n') + 1)};
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("died of signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("left with status {}", WEXITSTATUS(status));
}

}  // namespace

void Output::write(const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(file_, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(1);  // only children write; without a reader there is nothing left to do
    at += n;
    size -= static_cast<std::size_t>(n);
  }
}

Expected<std::vector<std::byte>> run_in_child(const std::function<void(Output&)>& work, const ChildLimits& limits) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return call_failed("no pipe");
  const Descriptor from_child{ends[0]};
  Descriptor to_parent{ends[1]};
  const Descriptor errors{::memfd_create("podsim-simgrid-errors", MFD_CLOEXEC)};
  if (!errors) return call_failed("no memory file");

  const pid_t parent = ::getpid();
  HeldSignals held;
  const pid_t child = ::fork();
  if (child < 0) return call_failed("no process");
  if (child == 0) {
    for (const int signal : signals_of_the_parent) std::signal(signal, SIG_IGN);
    held.release();
    be_the_child(work, parent, to_parent.get(), errors.get());
  }
  held.release();
  to_parent.close();

  std::vector<std::byte> result;
  const End end = follow(child, from_child.get(), result, limits);
  if (end != End::of_the_result) ::kill(child, SIGKILL);
  int status = 0;
  pid_t reaped = 0;
  while ((reaped = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {}
  // A process that ignores SIGCHLD has its children reaped by the system: then only the result can tell.
  const bool left_well = reaped < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  if (end == End::of_the_result && left_well) return result;
  if (limits.stop.requested()) return cancelled_work();
  if (end == End::stopped)
    return failure(fmt::format("the child process was stopped from outside (SIGSTOP) and not continued within {} s",
                               std::chrono::duration<double>{limits.longest_stop}.count()));
  const std::string said = last_line(errors.get());
  return failure(fmt::format("the child process {}{}", how_it_ended(status), said.empty() ? "" : ": " + said));
}

}  // namespace podsim::simgrid_engine
