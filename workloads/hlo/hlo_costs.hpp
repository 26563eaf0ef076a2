// What every instruction of a module costs the core, with loops and branches decided: what counting and windows are made of.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/hlo/hlo_summary.hpp"
#include "workloads/hlo/hlo_traffic.hpp"

namespace podsim {

class HloCosts {
 public:
  /// The module must outlive it. O(module). Errors: those of summary_of().
  static Expected<HloCosts> of(const HloModule& module, const Machine& machine, const HloCountOptions& options);

  /// How an instruction runs its n-th computation. 0 times: it does not, as the sums of a reduce, which are part of it, and branches not taken.
  struct Call {
    std::int64_t times = 0;
    bool fused = false, asynchronous = false;
  };
  [[nodiscard]] Call call(const HloPlace& place, std::size_t n) const;

  /// Of a dot or convolution; nullptr for others.
  [[nodiscard]] const HloProduct* product(const HloPlace& place) const;
  [[nodiscard]] std::optional<HloTripCount> trips(const HloPlace& loop) const;
  [[nodiscard]] std::optional<int> branch(const HloPlace& conditional) const;
  /// Starts and their dones in one computation, by start.
  [[nodiscard]] const std::vector<std::pair<int, int>>& windows(int computation) const { return windows_[static_cast<std::size_t>(computation)]; }
  /// The core's work behind `first` and before `last`. O(1).
  [[nodiscard]] HloWork between(int computation, int first, int last) const;
  /// Padded bytes of operands and result, in any memory.
  [[nodiscard]] Bytes boundary_bytes(const HloPlace& place) const;

  struct Move {
    int from = 0, to = 0;
    Bytes bytes;
  };
  /// Of an instruction that only moves data into another memory space.
  [[nodiscard]] std::optional<Move> move_of(const HloPlace& place) const;
  /// The result of a fused computation, if it is a slice of this all-reduce, which nothing else uses; else nullptr.
  [[nodiscard]] const HloShape* only_slice(const HloPlace& all_reduce) const;

  [[nodiscard]] const std::vector<HloWarning>& warnings() const { return warnings_; }

 private:
  struct Totals {
    HloWork control, fused;  // of one execution: by control flow; within a fusion, whose bytes are those of its own boundary
  };
  HloCosts(const HloModule& module, const Machine& machine, const HloCountOptions& options);
  Status add_computation(int c, bool reached, HloTraffic& traffic);
  Status decide(const HloPlace& place);
  [[nodiscard]] Totals work_of(const HloPlace& place, HloTraffic& traffic) const;
  [[nodiscard]] HloWork timed(double flops, Seconds arithmetic, double bytes) const;
  [[nodiscard]] const HloInstruction& at(const HloPlace& place) const;
  [[nodiscard]] static int sliced_all_reduce(const HloComputation& computation);
  void warn(const std::string& message, const HloInstruction& instruction);

  const HloModule* module_;
  const Machine* machine_;
  const HloCountOptions* options_;
  std::map<HloPlace, HloProduct> products_;
  std::map<HloPlace, HloTripCount> trips_;
  struct Branch {
    int branch = 0;
    std::size_t call = 0;  // in HloInstruction::calls
  };
  std::map<HloPlace, Branch> branches_;
  std::vector<int> sliced_;  // of each computation the all-reduce that its result is a slice of, or HloInstruction::missing
  std::vector<Totals> totals_;
  std::vector<std::vector<std::pair<int, int>>> windows_;
  std::vector<std::vector<HloWork>> before_;  // of a computation that has windows: the core's work in front of each instruction
  std::vector<HloWarning> warnings_;
};

}  // namespace podsim
