#include "sim/simgrid/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>

namespace podsim::simgrid_engine {

namespace {

constexpr rlim_t large_stack = rlim_t{100} << 20;

/// Closes its file at the end of the scope.
class File {
 public:
  explicit File(int file) : file_{file} {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return file_; }
  void close() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

 private:
  int file_;
};

Diagnostic system_error(std::string_view action) { return {{}, fmt::format("simgrid: {}: {}", action, std::strerror(errno))}; }

[[noreturn]] void be_the_child(const std::function<void(Output&)>& work, pid_t parent, int result, int errors) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read the result
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

/// Everything up to the end of the pipe; false: it broke.
bool read_all(int file, std::vector<std::byte>& into) {
  std::size_t size = 0;
  into.resize(std::size_t{1} << 16);
  for (;;) {
    if (size == into.size()) into.resize(2 * size);
    const ssize_t n = ::read(file, into.data() + size, into.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      into.resize(size);
      return n == 0;
    }
    size += static_cast<std::size_t>(n);
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

Expected<std::vector<std::byte>> run_in_child(const std::function<void(Output&)>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("no pipe");
  File from_child{ends[0]}, to_parent{ends[1]};
  File errors{::memfd_create("podsim-simgrid-errors", MFD_CLOEXEC)};
  if (errors.get() < 0) return system_error("no memory file");

  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return system_error("no process");
  if (child == 0) {
    from_child.close();
    be_the_child(work, parent, to_parent.get(), errors.get());
  }
  to_parent.close();

  std::vector<std::byte> result;
  const bool complete = read_all(from_child.get(), result);
  int status = 0;
  pid_t reaped = 0;
  while ((reaped = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {}
  // A process that ignores SIGCHLD has its children reaped by the system: then only the result can tell.
  const bool left_well = reaped < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  if (complete && left_well) return result;
  const std::string said = last_line(errors.get());
  return Diagnostic{{}, fmt::format("simgrid: the child process {}{}", how_it_ended(status), said.empty() ? "" : ": " + said)};
}

}  // namespace podsim::simgrid_engine
