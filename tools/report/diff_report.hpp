// What diff found, as a table, JSON or CSV.
#pragma once

#include <string>
#include <vector>

#include "validation/diff/step_diff.hpp"

namespace podsim {

std::string diff_table(const StepDiff& diff, const std::vector<std::string>& notes);
/// One JSON object, with a newline behind it.
std::string diff_json(const StepDiff& diff, const std::vector<std::string>& notes);
std::string diff_csv(const StepDiff& diff);

}  // namespace podsim
