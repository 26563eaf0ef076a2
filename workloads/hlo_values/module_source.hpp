// A compiled module as the source of its schedule: what the opaque tasks compute, and what the module computes by itself.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/schedule/source_module.hpp"
#include "workloads/hlo/hlo_schedule.hpp"

namespace podsim {

/// Whose kernels run, and whose results are right.
struct SourceModules {
  std::shared_ptr<const HloModule> run, meant;
};

/// Of a schedule with values (HloScheduleOptions::values) and its kernels. Tasks run evaluate(), the module runs interpret(): they share the arithmetic of
/// single instructions, and nothing of order, buffers, loops and communication.
/// `modules.meant` may be another module than the one that runs, with the same parameters and results: one that was rewritten is held to what was given.
/// `branches`: those that the schedule has of conditionals, by name; where the inputs lead to others, results() ends with Cause::data.
std::shared_ptr<const SourceModule> module_source(SourceModules modules, std::vector<HloKernel> kernels, std::map<std::string, int> branches);

}  // namespace podsim
