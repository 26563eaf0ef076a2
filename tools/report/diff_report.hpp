// The result of diff as a table, JSON or CSV.
#pragma once

#include <string>
#include <vector>

#include "tools/report/collective_diff.hpp"
#include "validation/diff/late_ranks.hpp"
#include "validation/diff/match_coverage.hpp"
#include "validation/diff/step_diff.hpp"

namespace podsim {

struct DiffReport {
  StepDiff diff;
  MatchCoverage coverage;
  std::vector<CollectiveDiff> collectives;
  std::vector<std::string> notes, warnings;
  LateRanks late{};  // of a profile of several devices
};

/// Without the warnings, which go to standard error.
std::string diff_table(const DiffReport& report);
/// One JSON object, followed by a newline.
std::string diff_json(const DiffReport& report);
std::string diff_csv(const DiffReport& report);

}  // namespace podsim
