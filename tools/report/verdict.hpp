// What compare says about the rows of one system.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// Which row wins, by what margin over another algorithm and, of a GEMM, over the next slice counts, and what makes the difference. The rows are of
/// one system and one problem, best first.
std::string verdict(const std::vector<Row>& rows);

}  // namespace podsim
