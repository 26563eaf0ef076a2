// What would help a run: a table for people, JSON for programs.
#pragma once

#include <string>

#include "tools/report/json.hpp"
#include "workloads/advice/advice.hpp"

namespace podsim {

std::string advice_table(const Advice& advice);
Json advice_json(const Advice& advice);

}  // namespace podsim
