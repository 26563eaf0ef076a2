// What a search found, as a table for people and JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/tuning/plan_difference.hpp"
#include "workloads/tuning/reference_tuner.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

/// What tune prints.
struct TuningReport {
  const TuningRequest* request = nullptr;
  Tuning tuning;
  double wall_s = 0;
  std::optional<ReferenceTuning> reference;  // of the first baseline
  std::vector<TunedPlan> pareto{};           // where asked for
  std::vector<TimeSplit> splits{};           // with an explanation: of each plan
  std::vector<Flip> flips{};                 // what makes the second plan the first
};

std::string tuning_table(const TuningReport& report);
std::string tuning_json(const TuningReport& report);

/// A plan alone, of the request's systems: `show plan`.
std::string plan_table(const TuningRequest& request, const TunedPlan& plan);
std::string plan_json(const TuningRequest& request, const TunedPlan& plan);

}  // namespace podsim
