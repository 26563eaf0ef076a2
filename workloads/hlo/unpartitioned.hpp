// Modules from before the compiler has divided them over the devices.
#pragma once

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// Errors, at its first instruction that says so: the module is not partitioned yet, so its shapes are those of whole arrays and it holds no
/// collectives of its own. That is a module that is not scheduled, and
///   has custom-calls by which the partitioner is told what to do: Sharding, SPMDFullToShardShape, SPMDShardToFullShape, those of Shardy (xla.sdy.);
///   or has shardings that divide arrays, no collectives, and an entry that is not named as the partitioner names it (main_spmd).
/// Compiled modules keep the shardings of their parameters; they are scheduled.
Status check_partitioned(const HloModule& module);

}  // namespace podsim
