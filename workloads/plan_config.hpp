// Plans in files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"
#include "workloads/plan.hpp"

namespace podsim {

/// A plan with its workload and where it runs; texts as on the command line.
struct SavedPlan {
  std::string machine;
  std::vector<std::string> sets{};
  std::string slice, wrap = "auto", topology{}, mesh, mesh_order = "row-major";
  Workload workload;
  Pass pass = Pass::both;
  Plan plan;
  std::string predicted{};
  std::map<std::string, SourceLocation, std::less<>> places{};  // of what may be said otherwise, by its field: "slice", "mesh", ...
};

std::string write_plan(const SavedPlan& plan);

/// Errors: `file:line:column` of what is wrong: unknown fields, a workload that is none or two, stages that are not the workload's, products without
/// an algorithm, or one that does not exist. What does not fit the mesh is found when the plan is used.
Expected<SavedPlan> read_plan(std::string_view text, const std::string& file);

}  // namespace podsim
