// A compiled module as the source of its schedule: what the opaque tasks compute, and what the module computes by itself.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/schedule/source_module.hpp"
#include "workloads/hlo/hlo_schedule.hpp"

namespace podsim {

/// Of a schedule with values (HloScheduleOptions::values) and its kernels. Tasks run evaluate(), the module runs interpret(): they share the arithmetic of
/// single instructions, and nothing of order, buffers, loops and communication.
/// `branches`: those that the schedule has of conditionals, by name; where the inputs lead to others, results() ends with Cause::data.
std::shared_ptr<const SourceModule> module_source(std::shared_ptr<const HloModule> module, std::vector<HloKernel> kernels, std::map<std::string, int> branches);

}  // namespace podsim
