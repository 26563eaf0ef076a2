// Kernels in the traces of PyTorch's profiler (Kineto), beside the operators that launched them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "validation/calibration/importers/profile_ops.hpp"
#include "validation/calibration/importers/trace_event.hpp"

namespace podsim {

/// Collects the events `kernel`, `gpu_memcpy` and `gpu_memset`, and the operators that launched them: by `External id`, else the innermost one around the launch of the same `correlation` on its
/// thread, as traces before 2024 repeat the correlation as External id. A kernel of NCCL has the sizes that its args state: "In msg nelems" of "dtype", "Group size".
///   memory  64 bytes for each kernel, operator and launch, and each name once
class KinetoKernels {
 public:
  /// `whose`: as notes say it.
  explicit KinetoKernels(std::string whose = "PyTorch's") : whose_{std::move(whose)} {}
  /// Whether events of this `cat` are its own, which no line of another producer has.
  static bool takes(std::string_view kind);
  /// Errors: a kernel without a beginning or a duration; one of negative duration.
  Status add(const ChromeTraceEvent& event, const SourceLocation& where);
  /// Tells `sink` all kernels, on lines numbered from `next` on, if it takes streams; and `profile` their devices, the steps and what was measured on. `root`: the JSON beside the events.
  void finish(ProfileSink& sink, ProfileLine next, std::string_view root, ReadProfile& profile) const;

 private:
  using Name = std::uint32_t;  // position in names_
  struct Kernel {
    Name name = 0;
    std::int64_t device = 0, stream = 0;
    double begin_us = 0, duration_us = 0;
    std::int64_t external = -1, correlation = -1;
    std::uint32_t collective = 0;  // position in collectives_; 0: none
  };
  struct Message {
    Name operation = 0;
    Bytes bytes{};
    int group = 0;
  };
  /// On a thread of the CPU.
  struct Span {
    std::int64_t pid = 0, tid = 0;
    double begin_us = 0, end_us = 0;
    Name name = 0;
    std::int64_t correlation = -1;  // of a launch
  };
  Name name_of(std::string_view text);
  void add_annotation(const ChromeTraceEvent& event);
  [[nodiscard]] std::unordered_map<std::int64_t, Name> operators_of_launches() const;
  [[nodiscard]] std::int64_t steps_with_kernels() const;
  void tell_steps(ReadProfile& profile) const;

  std::string whose_;
  std::vector<std::string> names_;
  std::map<std::string, Name, std::less<>> known_;
  std::vector<Kernel> kernels_;
  std::vector<Message> messages_{{}};
  std::unordered_map<std::int64_t, Name> operators_, annotations_;       // by External id
  std::vector<Span> spans_, launches_, steps_;                           // of operators, of launches, of ProfilerStep#N
  std::map<std::string, std::pair<double, int>, std::less<>> repeated_;  // annotations of the CPU: time, count
};

}  // namespace podsim
