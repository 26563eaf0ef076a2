// Both bounds of a module that the compiler has not scheduled.
#pragma once

#include <optional>

#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// The time in the order of the text, where collectives block, and with collectives that begin when their operands are there: the compiler's order is
/// expected between them. Neither is proven to be a bound: ready tasks in a list order may be slower (Graham's anomalies).
struct HloOrderTimes {
  double text_s = 0, overlap_s = 0;
};

/// The makespan in the order that the problem does not ask for; nullopt if it is no module, or a scheduled one. Simulated with played calls, folded,
/// by des where the engine is simgrid (which keeps the same times, but more slowly). Errors: those of a run.
Expected<std::optional<double>> other_order_makespan(const System& system, const ProblemSpec& problem, const RunOptions& options);

/// Beside the makespan in the order that the problem asks for.
HloOrderTimes both_orders(const ProblemSpec& problem, double makespan_s, double other_s);

}  // namespace podsim
