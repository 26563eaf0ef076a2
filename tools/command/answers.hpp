// What verbs found, as values: for a Caller, and for the texts that the command prints.
#pragma once

#include <vector>

#include "tools/report/run_report.hpp"
#include "tools/report/tuning_report.hpp"
#include "workloads/scenario/plan_config.hpp"

namespace podsim {

/// Of `run`. Of an interrupted one the timeline tells how far it came, and nothing else is known.
struct RunAnswer {
  Run run;
  Details details;
};

/// Of `tune` for products and blocks. `found` refers to `request`, so an answer stays where it is.
struct TuningAnswer {
  TuningRequest request;
  TuningReport found;
  std::vector<SavedPlan> plans{};  // those of found.tuning.plans, with where they run

  TuningAnswer() = default;
  TuningAnswer(const TuningAnswer&) = delete;
  TuningAnswer& operator=(const TuningAnswer&) = delete;
};

}  // namespace podsim
