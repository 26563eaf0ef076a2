// A compiled module as the source of its schedule: what the opaque tasks compute, and what the module computes by itself.
#pragma once

#include <memory>
#include <vector>

#include "sim/schedule/source_module.hpp"
#include "workloads/hlo/hlo_schedule.hpp"

namespace podsim {

/// Of a schedule with values (HloScheduleOptions::values) and its kernels. Tasks run evaluate(), the module runs interpret(): they share the arithmetic of
/// single instructions, and nothing of order, buffers, loops and communication.
std::shared_ptr<const SourceModule> module_source(std::shared_ptr<const HloModule> module, std::vector<HloKernel> kernels);

}  // namespace podsim
