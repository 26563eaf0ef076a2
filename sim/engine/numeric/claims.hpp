// What a schedule claims to compute.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

/// What its results are compared with: "Y = X W, dX = dY W^T", "all-gather along row, col"; "nothing" if it claims nothing.
std::string claim_of(const Schedule& schedule);
bool claims_something(const Schedule& schedule);

/// One problem for each output of which the claim says nothing, or nothing about a part: whatever it holds, no comparison finds it wrong. (That a
/// reduce leaves other devices than the root alone, and a permute those that receive nothing, is part of the claim.) The schedule is well-shaped
/// and claims something.
std::vector<Diagnostic> unclaimed_outputs(const Schedule& schedule);

}  // namespace podsim
