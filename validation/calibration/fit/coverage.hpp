// What a run asks of a machine, and what a fit to observations covers, in the same terms: so that a prediction beyond the fit is recognised.
#pragma once

#include <vector>

#include "validation/calibration/fit/predict.hpp"

namespace podsim {

/// The products and the communication of a schedule before it is lowered, a range of sizes for each operation on so many devices along the same
/// dimensions. A Shift or Send that an algorithm wrote is a permute; copies in memory count where they are all there is. Groups are looked at on one
/// device, the first; groups of one device move nothing.
std::vector<Coverage> operations_in(const Schedule& schedule, const Pod& pod);

/// Adds operations to others, those of the same kind to one range.
void merge(std::vector<Coverage>& into, const std::vector<Coverage>& more);

/// What a fit to these observations covers. Errors: those of schedule_of().
Expected<std::vector<Coverage>> coverage_of(const std::vector<Observation>& observations, const Pod& pod, const PredictOptions& options = {});

}  // namespace podsim
