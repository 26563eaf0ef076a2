#include "tools/report/task_role.hpp"

#include "sim/analysis/operations.hpp"
#include "workloads/ledger/label_place.hpp"

namespace podsim {

std::string_view role_of(const Task& task) {
  if (is_launch(task.op)) return "launch";
  if (const auto pass = std::holds_alternative<Call>(task.op) ? place_of(task.label).pass : StepPass::none; pass != StepPass::none) return name_of(pass);
  return category_of(task);
}

}  // namespace podsim
