// The computer that figures are measured on: rates per second say little without its clock, and instructions are the same on a busy one.
#pragma once

#include <optional>
#include <string>

namespace podsim::bench {

/// "AMD EPYC 7B13, 3.15 GHz measured": the model by /proc/cpuinfo, the clock by measured_hz().
std::string processor();

/// Cycles per second of this thread on a core, by a chain of additions that wait for each other, one cycle each; the fastest of several tries. Takes
/// about a twentieth of a second of CPU time. Less where another thread shares the core's arithmetic.
double measured_hz();

/// The instructions that this process executes, kernel excluded, threads that it starts later included (Linux: perf_event_open).
class InstructionCounter {
 public:
  InstructionCounter();
  ~InstructionCounter();
  InstructionCounter(const InstructionCounter&) = delete;
  InstructionCounter& operator=(const InstructionCounter&) = delete;

  /// Since the last call, or since it was made; nullopt: the kernel or the virtual machine does not count.
  std::optional<double> lap();
  /// Why there is no count; empty: there is one.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

 private:
  [[nodiscard]] std::optional<double> count() const;

  int file_ = -1;
  double last_ = 0;
  std::string why_not_;
};

}  // namespace podsim::bench
