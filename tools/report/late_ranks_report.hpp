// Which rank the others wait for, as a table and JSON.
#pragma once

#include <string>

#include "tools/report/json.hpp"
#include "validation/diff/late_ranks.hpp"

namespace podsim {

/// Empty where no rank waits.
std::string late_ranks_table(const LateRanks& late);
Json late_ranks_json(const LateRanks& late);

}  // namespace podsim
