// Plans in files.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "workloads/plan.hpp"
#include "workloads/scenario/fields.hpp"

namespace podsim {

/// A plan with its workload and where it runs.
struct SavedPlan {
  Fields system;  // machine, slice and mesh, and what else is not as it is by default
  Workload workload;
  Pass pass = Pass::both;
  Plan plan;
  std::string predicted{};
  SourceLocation collectives_where{};  // of the algorithm of its collectives
};

std::string write_plan(const SavedPlan& plan);

/// Errors: `file:line:column` of what is wrong: unknown fields, fields of a scenario that a plan has no use for, a workload that is none or two, stages that are not the workload's, products without
/// an algorithm, or one that does not exist. What does not fit the mesh is found when the plan is used.
Expected<SavedPlan> read_plan(std::string_view text, const std::string& file);

}  // namespace podsim
