// What every instruction of a module costs the core, with loops and branches decided: what counting and windows are made of.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/hlo/hlo_summary.hpp"
#include "workloads/hlo/task_costs.hpp"

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
  /// Of one execution of an instruction of a computation that runs, by itself.
  [[nodiscard]] const HloTaskCost& cost(const HloPlace& place) const { return costs_[static_cast<std::size_t>(place.computation)][static_cast<std::size_t>(place.instruction)]; }
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
  /// sliced_all_reduces() of a computation.
  [[nodiscard]] std::map<int, int> sliced(int computation, bool is_fused) const;

  [[nodiscard]] const std::vector<HloWarning>& warnings() const { return warnings_; }

 private:
  HloCosts(const HloModule& module, const Machine& machine, const HloCountOptions& options);
  Status add_computation(int c, bool reached, HloTaskCosts& costs);
  Status decide(const HloPlace& place);
  [[nodiscard]] HloWork work_of(const HloPlace& place) const;
  [[nodiscard]] const HloInstruction& at(const HloPlace& place) const;
  void warn(const std::string& message, const HloInstruction& instruction);

  const HloModule* module_;
  const Machine* machine_;
  HloCountOptions options_;
  std::map<HloPlace, HloProduct> products_;
  std::map<HloPlace, HloTripCount> trips_;
  struct Branch {
    int branch = 0;
    std::size_t call = 0;  // in HloInstruction::calls
  };
  std::map<HloPlace, Branch> branches_;
  std::vector<std::vector<HloTaskCost>> costs_;  // by computation and instruction
  std::vector<HloWork> totals_;                  // of one execution of a computation, by control flow
  std::vector<std::vector<std::pair<int, int>>> windows_;
  std::vector<std::vector<HloWork>> before_;  // of a computation that has windows: the core's work in front of each instruction
  std::vector<HloWarning> warnings_;
};

}  // namespace podsim
