// The workload that a command line asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/command/options.hpp"
#include "workloads/transformer.hpp"

namespace podsim {

/// --workload --only --batch --seq --heads --kv-heads --head-dim --ff --layers
po::options_description workload_options();

/// Of --workload, on so many devices. Errors: it is not known, what an option finds wrong; options of a workload without one.
Expected<Workload> workload_asked_for(const Options& options, int devices);
/// Errors: an option of --workload without it.
Done no_workload_options(const Options& options);

}  // namespace podsim
