// The conclusions that compare prints.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/compare.hpp"

namespace podsim {

/// Of each problem (group) and each choice of varied machine values one verdict over all: which topology is fastest, each at its best mesh, or which mesh order or mesh of one topology; the first says on which `terms`
/// (terms_of()). Then of the fastest systems that it names (of several meshes the fastest), where they have several rows, the winner, its margin over another algorithm and, for a GEMM, over the next slice counts, and the
/// cause of the difference.
std::vector<std::string> verdicts(const std::vector<RankedGroup>& by_system, const std::string& terms);

}  // namespace podsim
