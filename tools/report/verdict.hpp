// The conclusions that compare prints.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/compare.hpp"

namespace podsim {

/// Of each problem (group) and each choice of varied machine values: which topology is fastest, each at its best mesh, or which mesh of one topology; then of
/// the fastest systems that it names (of several meshes the fastest) the winner, its margin over another algorithm and, for a GEMM, over the next slice counts, and the cause of the difference.
std::vector<std::string> verdicts(const std::vector<RankedGroup>& by_system);

}  // namespace podsim
