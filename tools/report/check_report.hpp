// A proof as a table and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/validate.hpp"
#include "workloads/training/step_schedule.hpp"

namespace podsim {

/// An edge and its purpose.
struct NamedEdge {
  std::string from, to, purpose, race;
};
/// Errors: cancelled work.
Expected<std::vector<NamedEdge>> named_edges(const Schedule& lowered, Cancellation stop);
std::string edges_table(const std::vector<NamedEdge>& edges);

/// What a check of training steps compared, on uniform data; errors relative to the largest element of each tensor.
struct TrainingCheck {
  std::vector<double> losses, reference;  // of each step, on the devices and on one in float64
  double max_gradient_error = 0, max_parameter_error = 0;
};
/// nullopt: the check compared none of these outputs.
std::optional<TrainingCheck> training_check(const CheckReport& report, const TrainingOutputs& outputs);

/// `not_checked`: what of a module stood in for something else, in sentences.
std::string check_table(const CheckReport& report, const std::optional<TrainingCheck>& training = {}, const std::vector<std::string>& not_checked = {});
/// Quantities that were not compared are null. `edges`: null if they were not audited. `received`: by a device of a sharded
/// program, in the element types that are checked.
std::string check_json(const CheckReport& report, const std::vector<NamedEdge>* edges, const std::optional<TrainingCheck>& training = {}, const std::optional<Bytes>& received = {}, const std::vector<std::string>& not_checked = {});

}  // namespace podsim
