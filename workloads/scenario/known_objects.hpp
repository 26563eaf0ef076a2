// Objects in memory that the texts of fields may name, beside files and what is shipped: of a program that has read or made them already.
#pragma once

#include <map>
#include <string>

#include "sim/machine/machine.hpp"
#include "sim/schedule/schedule.hpp"
#include "workloads/scenario/plan_config.hpp"

namespace podsim {

/// By the text that names them. A name that is known stands for the object, whatever files there are.
struct KnownObjects {
  std::map<std::string, Machine, std::less<>> machines;
  std::map<std::string, Schedule, std::less<>> schedules;
  std::map<std::string, SavedPlan, std::less<>> plans;
};

/// The machine that a text names among `fields`. Errors: as find_machine().
Expected<Machine> machine_named(const Fields& fields, const std::string& name_or_file);
/// The schedule that `schedule` names. Errors: as load_schedule().
Expected<Schedule> schedule_named(const Fields& fields);
/// The plan that `plan` names. Errors: as load_plan().
Expected<SavedPlan> plan_named(const Fields& fields);

}  // namespace podsim
