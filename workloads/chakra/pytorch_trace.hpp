// Execution traces as PyTorch itself writes them (ExecutionTraceObserver), JSON: their collectives.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "workloads/chakra/trace.hpp"

namespace podsim {

/// Whether a text is one, not a trace of records: it begins with a brace.
bool is_pytorch_trace(std::string_view bytes);

/// The nodes `record_param_comms` with `collective_name`, `in_msg_nelems`, `out_msg_nelems`, `dtype`, `pg_name`, `pg_size`, `global_rank_start` and `global_rank_stride`, as collectives of one stream for each process group, one after the other. These
/// traces tell no times, so that of all other operators nothing remains: a run of it is of the collectives alone. Waits, barriers and the setting up of groups are left out. Sources: pytorch/pytorch,
/// torch/csrc/profiler/standalone/execution_trace_observer.cpp (getCommsNodeAttrs) and torch/csrc/distributed/c10d/ParamCommsUtils.hpp.
/// Errors, as `FILE: record N`, N the node's place in the list: what is no JSON or has no `nodes`; a collective without these attributes, of an unknown name or dtype; sends and receives, as they do not say with whom; no collective at all.
Expected<ChakraTrace> parse_pytorch_trace(std::string_view bytes, const std::string& file);

}  // namespace podsim
