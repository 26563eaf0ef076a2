// The collectives of a sharded program as a table and JSON.
#pragma once

#include <string>

#include "tools/report/json.hpp"
#include "workloads/sharded/summary.hpp"

namespace podsim {

/// Every statement with its collectives, their bytes and reasons, and the next best way; the outputs; whether it contains an all-gather.
std::string program_table(const ProgramSummary& summary);

/// Which device has which block of the outputs that shard_map makes, those of one or two dimensions, as `show sharding` draws them.
std::string program_drawings(const ProgramSummary& summary, const Mesh& mesh);

/// `collectives`, `received_bytes`, `contains_all_gather`, `outputs`, `padded_bytes`; of chains `association`, `shards`, `collectives_count`,
/// `per_iteration_bytes`.
Json program_json(const ProgramSummary& summary);

}  // namespace podsim
