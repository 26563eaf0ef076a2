// Gathers of weights and reductions of gradients. Internal to workloads/training.
#pragma once

#include <string>
#include <vector>

#include "workloads/training/function_writer.hpp"

namespace podsim {

/// Those of one function. They run one after the other, like all collectives along an axis.
class WeightTransfers {
 public:
  /// The writer must outlive it.
  explicit WeightTransfers(FunctionWriter& w) : w_{w} {}

  /// Converts a shard, which is work of the core here, and gathers it. Returns the ends.
  Edges gather(const StepWeight& weight, Region shard, const Region& block, const Edges& after);
  /// The weights that a work has as blocks, for the next call.
  void fetch(StepWork work, const Edges& after);

  /// Reduces a gradient and adds it to `sum`, or begins that. What waits for a reduction is added by finish(), so that the core does not wait.
  void reduce(WeightGroup of, const StepWeight& weight, const Region& gradient, const Region& sum, bool first, const Edges& made);
  /// The gradients that the call before handed over.
  void reduce(const StepCall& call);
  void finish();

 private:
  struct Sum {
    WeightGroup of;
    std::string name;
    Region gradient, sum;
    bool first;
    Edges ready;
  };
  void write(const Sum& sum);

  FunctionWriter& w_;
  Edges queue_;
  std::vector<Sum> sums_;
};

}  // namespace podsim
