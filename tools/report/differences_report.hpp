// Differences of compiled modules as tables and JSON.
#pragma once

#include <string>

#include "workloads/differences/module_differences.hpp"

namespace podsim {

std::string differences_table(const ModuleComparison& comparison);
/// `differences` lists those of all schedules; with several of these, each difference tells its schedule.
std::string differences_json(const ModuleComparison& comparison);

}  // namespace podsim
