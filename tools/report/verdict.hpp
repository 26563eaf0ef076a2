// The conclusion that compare prints for one system.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// Names the winner, its margin over another algorithm and, for a GEMM, over the next slice counts, and the cause of the difference. All rows must be
/// of one system and one problem, best first.
std::string verdict(const std::vector<Row>& rows);

}  // namespace podsim
