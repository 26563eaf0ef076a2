#include "tools/bench/processor.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace podsim::bench {

namespace {

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// A sum, of which the compiler may know nothing between two additions.
template <int additions>
[[gnu::always_inline]] inline void add(std::uint64_t& sum, std::uint64_t term) {
  if constexpr (additions > 0) {
    sum += term;
    asm volatile("" : "+r"(sum));
    add<additions - 1>(sum, term);
  }
}

}  // namespace

double measured_hz() {
  constexpr int in_a_row = 128, rounds = 100'000, tries = 10;
  std::uint64_t sum = 0, term = 3;
  asm volatile("" : "+r"(term));
  double fastest = 0;
  for (int attempt = 0; attempt < tries; ++attempt) {
    const double begin = thread_seconds();
    for (int round = 0; round < rounds; ++round) add<in_a_row>(sum, term);
    fastest = std::max(fastest, in_a_row * double{rounds} / (thread_seconds() - begin));
  }
  return fastest;
}

std::string processor() {
  std::ifstream info{"/proc/cpuinfo"};
  std::string model = "unknown processor";
  for (std::string line; std::getline(info, line) && !line.empty();)
    if (line.rfind("model name", 0) == 0) model = line.substr(line.find(": ") + 2);
  return fmt::format("{}, {:.2f} GHz measured", model, measured_hz() * 1e-9);
}

InstructionCounter::InstructionCounter() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.size = sizeof attributes;
  attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
  attributes.exclude_kernel = attributes.exclude_hv = 1;
  attributes.inherit = 1;
  file_ = static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (file_ < 0) why_not_ = fmt::format("perf_event_open: {}", std::generic_category().message(errno));
  last_ = count().value_or(0);
}

InstructionCounter::~InstructionCounter() {
  if (file_ >= 0) ::close(file_);
}

std::optional<double> InstructionCounter::count() const {
  std::uint64_t instructions = 0;
  if (file_ < 0 || ::read(file_, &instructions, sizeof instructions) != sizeof instructions) return std::nullopt;
  return static_cast<double>(instructions);
}

std::optional<double> InstructionCounter::lap() {
  const std::optional<double> now = count();
  if (!now) return std::nullopt;
  const double since = *now - last_;
  last_ = *now;
  return since;
}

}  // namespace podsim::bench
