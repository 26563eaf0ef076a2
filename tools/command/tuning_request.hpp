// What a command line asks the tuner.
#pragma once

#include "tools/command/options.hpp"
#include "workloads/scenario/plan_config.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim {

/// --gemm --algorithms --pass --max-slice-count --top --explain ...
OptionGroup tuning_options();

/// All but baselines. Errors: neither or both of --workload and --gemm; what an option finds wrong; those of systems_to_search().
Expected<TuningRequest> tuning_request(const Options& options, const Console& console);

/// A plan that was found, with where it runs as the command line says it.
SavedPlan saved_plan(const TuningRequest& request, const TunedPlan& plan, const Options& options);

}  // namespace podsim
