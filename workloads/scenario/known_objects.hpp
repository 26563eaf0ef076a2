// Objects in memory that the texts of fields may name, beside files and what is shipped: of a program that has read or made them already.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/machine/machine.hpp"
#include "sim/schedule/schedule.hpp"
#include "workloads/hlo/hlo_module.hpp"
#include "workloads/scenario/plan_config.hpp"
#include "workloads/training/model.hpp"

namespace podsim {

/// A compiled module that has been read, and in sentences what its system is that nobody gave: with_module() of read_scenario.hpp.
struct KnownModule {
  std::shared_ptr<const HloModule> module;
  std::vector<std::string> assumed{};
};

/// By the text that names them. A name that is known stands for the object, whatever files there are.
struct KnownObjects {
  std::map<std::string, Machine, std::less<>> machines;
  std::map<std::string, Schedule, std::less<>> schedules;
  std::map<std::string, SavedPlan, std::less<>> plans;
  std::map<std::string, KnownModule, std::less<>> modules{};
  std::map<std::string, TrainingModel, std::less<>> models{};
};

/// The machine that a text names among `fields`. Errors: as find_machine().
Expected<Machine> machine_named(const Fields& fields, const std::string& name_or_file);
/// The schedule that `schedule` names. Errors: as load_schedule().
Expected<Schedule> schedule_named(const Fields& fields);
/// The plan that `plan` names. Errors: as load_plan().
Expected<SavedPlan> plan_named(const Fields& fields);
/// The model of that name. Errors: as find_training_model().
Expected<TrainingModel> model_named(const Fields& fields, const std::string& name);
/// The module that `hlo` names. Errors: as read_hlo_file().
Expected<KnownModule> module_named(const Fields& fields);

}  // namespace podsim
