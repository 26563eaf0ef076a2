// What a command line asks to compare: systems, and what is simulated on each.
#pragma once

#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "workloads/scenario/compare.hpp"

namespace podsim {

/// --vary --given --equal --crossover
OptionGroup comparison_options();

/// All that a command line asks for, in order.
struct ComparisonSetup {
  std::vector<ComparedSystem> systems;
  std::vector<Skipped> skipped;  // machines and slices that do not go together
  std::vector<std::string> notes;
  [[nodiscard]] std::size_t variants() const;
};
/// Machines x slices x topologies x meshes x varied values, each with
///   --gemm        --dataflow x --algorithms x --slice-count
///   --collective  kinds x --axis x --bytes, a group each, x --algorithms
///   --workload    --algorithms
/// Everything is read before anything is simulated, so that a typing error does not cost minutes. Errors: what is missing or unknown; of a single system
/// why there is none.
Expected<ComparisonSetup> read_comparison(const Options& options);

}  // namespace podsim
