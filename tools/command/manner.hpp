// How the command line wants things simulated.
#pragma once

#include "tools/command/options.hpp"
#include "tools/command/simulate.hpp"

namespace podsim {

/// --engine --fold --force --threads
po::options_description engine_options();
po::options_description threads_option();

/// With the console's interrupt as `stop`. Errors: no such engine, values out of range.
Expected<Manner> manner_of(const Options& options, const Console& console);

}  // namespace podsim
