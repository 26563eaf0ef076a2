// The plans that a search for training steps has found, as a table for people and JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/training_search.hpp"

namespace podsim {

/// A text, or why there is none.
struct TextOrReason {
  std::string text{}, reason{};
};

struct TrainingTuningReport {
  const TrainingRequest* request = nullptr;
  TrainingTuning tuning;
  double wall_s = 0;
  std::vector<TextOrReason> runs;  // per plan: the command line that simulates it
  std::vector<std::string> not_searched{};
};

std::string training_tuning_table(const TrainingTuningReport& report);
/// One object; each plan has what `run` says of a training step, with all six axes in `mesh`.
std::string training_tuning_json(const TrainingTuningReport& report);

}  // namespace podsim
