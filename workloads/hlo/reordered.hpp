// Instructions put into a computation and taken out of it, the rest in its order. Internal to what rewrites modules.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

class Reordered {
 public:
  explicit Reordered(HloComputation& computation);

  /// Its number until finish(); it stands as late as `place` in the old order, or behind its operands where these come later. References to the computation's instructions end.
  int add(HloInstruction instruction, int place);
  /// Nothing uses it any more; what comes after it by a control dependency comes after `instead`.
  void remove(int instruction, int instead);
  /// Operands before their users, and else in the order of the places. Must be possible.
  void finish();

 private:
  HloComputation& computation_;
  std::vector<std::pair<int, int>> places_;  // by instruction: where it stood, and the order among those added there
  std::vector<int> instead_;                 // by instruction; `missing`: it stays
  bool changed_ = false;
};

/// By computation: whether its instructions are written one after the other, so not those of fusions, sums and asynchronous operations.
std::vector<bool> runs_in_order(const HloModule& module);

}  // namespace podsim
