// The claim of a schedule: the results that it says it computes.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// The claim as text: "Y = X W, dX = dY W^T", "all-gather along row, col"; "nothing" if there is none.
std::string claim_of(const Schedule& schedule);
bool claims_something(const Schedule& schedule);

/// One problem for each output that the claim does not cover, wholly or in part: no comparison could find it wrong. (Devices other than the root of a
/// reduce, and devices that a permute sends nothing, are covered: their outputs must stay unwritten.) The schedule must be well-shaped and claim
/// something.
std::vector<Diagnostic> unclaimed_outputs(const Schedule& schedule);

}  // namespace podsim
