#include "workloads/advice/gemm_choice.hpp"

#include <optional>
#include <utility>

#include "algorithms/gemm/gemm.hpp"
#include "sim/base/cancellation.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

Expected<ChosenGemm> fastest_gemm_algorithm(const Fields& fields, const System& system, const RunOptions& options) {
  RunOptions how = options;
  how.control.record = false;
  how.control.progress = {};
  std::optional<std::pair<bool, double>> least;  // whether operands are replicated, and the time
  std::optional<Diagnostic> first_error;
  ChosenGemm chosen;
  options.tell("choosing an algorithm");
  for (const GemmAlgorithmEntry& entry : gemm_algorithms()) {
    const bool is_sliced = entry.needs_slice_count && !fields.has("slice_count");
    for (const int slices : {2, 4, 8, 16}) {
      if (!is_sliced && slices > 2) break;
      std::vector<FieldChange> changes{{"algorithm", std::string{entry.name}}};
      if (is_sliced) changes.push_back({"slice_count", std::to_string(slices)});
      const Fields tried = with(fields, Remedy{"", changes});
      const auto problem = read_problem(tried, system, DType::bf16);
      const auto run = problem ? simulate(system, *problem, how) : Expected<Run>{problem.error()};
      if (options.stopped()) return cancelled_work();
      if (!run) {
        if (!first_error) first_error = run.error();
        continue;
      }
      ++chosen.simulated;
      const std::pair this_one{!run->row.problem.replicated.empty(), run->row.result.makespan_s};
      if (!least || this_one < *least) least = this_one, chosen.changes = std::move(changes);
    }
  }
  if (!least) return *first_error;
  return chosen;
}

}  // namespace podsim
