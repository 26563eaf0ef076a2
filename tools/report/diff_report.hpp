// The result of diff as a table, JSON or CSV.
#pragma once

#include <string>
#include <vector>

#include "validation/diff/step_diff.hpp"

namespace podsim {

std::string diff_table(const StepDiff& diff, const std::vector<std::string>& notes);
/// One JSON object, followed by a newline.
std::string diff_json(const StepDiff& diff, const std::vector<std::string>& notes);
std::string diff_csv(const StepDiff& diff);

}  // namespace podsim
