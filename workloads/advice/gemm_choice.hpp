// The algorithm of a product for which nobody names one: the fastest that was simulated.
#pragma once

#include <string>
#include <vector>

#include "workloads/advice/remedies.hpp"
#include "workloads/scenario/run_options.hpp"

namespace podsim {

struct ChosenGemm {
  std::vector<FieldChange> changes;  // algorithm, and slice_count where it takes one
  std::size_t simulated = 0;         // variants
};

/// Of every algorithm that divides the problem on this mesh, those in slices with 2, 4, 8 and 16 of them unless `slice_count` is given. Those that find a whole operand on each device before they begin count only where there are no others. Ties: the first in the order of gemm_algorithms(). Variants that would take long (RunOptions::most_instances) are left
/// out. Errors: those of the first variant where none is possible; cancelled work.
Expected<ChosenGemm> fastest_gemm_algorithm(const Fields& fields, const System& system, const RunOptions& options);

}  // namespace podsim
