// What compare says about the rows of one pod.
#pragma once

#include <string>
#include <vector>

#include "tools/command/simulate.hpp"

namespace podsim {

/// Which row wins, by what margin over another algorithm and, of a GEMM, over the next slice counts, and what makes the difference. The rows are of
/// one pod and one problem, best first.
std::string verdict(const std::vector<const Row*>& rows);

}  // namespace podsim
