// What remedies of compiled modules are called where they come from: flags of XLA.
#pragma once

#include <string>

#include "workloads/advice/remedies.hpp"

namespace podsim {

/// The variable and its flags that ask XLA for what the remedy simulates: "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true" of GPUs, "LIBTPU_INIT_ARGS=.." of TPUs. Whether a compiler
/// then does it is for it to say. Empty: no flag is known, as for sums in bf16, which the program itself says.
///   sources  of GPUs openxla/xla @00ccad5d xla/debug_options_flags.cc; of TPUs the flags that MaxText's benchmarks set (AI-Hypercomputer/maxtext, benchmarks/xla_flags_library.py: CF_FOR_ALL_GATHER,
///            REDUCE_SCATTER_FUSION, HOST_OFFLOAD_FLAGS, DISABLE_COLLECTIVE_MATMUL), and of the threshold of all-reduces the list of libtpu's own flags
std::string xla_flags(const Remedy& remedy, bool is_gpu);

}  // namespace podsim
