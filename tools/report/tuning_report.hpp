// The result of a search, as a table for people and JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/tuning/plan_difference.hpp"
#include "workloads/tuning/reference_tuner.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

/// The output of `tune`.
struct TuningReport {
  const TuningRequest* request = nullptr;
  Tuning tuning;
  double wall_s = 0;
  std::optional<ReferenceTuning> reference;  // for the first baseline
  std::vector<TunedPlan> pareto{};           // if requested
  std::vector<TimeSplit> splits{};           // per plan, with --explain
  std::vector<Flip> flips{};                 // changes of the machine that make the second plan the fastest
  std::vector<std::string> not_searched{};
  std::string jax{};                         // the best plan as Python, if asked for (jax_plan_code())
};

std::string tuning_table(const TuningReport& report);
std::string tuning_json(const TuningReport& report);

/// A single plan on the request's systems, for `show plan`.
std::string plan_table(const TuningRequest& request, const TunedPlan& plan);
std::string plan_json(const TuningRequest& request, const TunedPlan& plan);

}  // namespace podsim
