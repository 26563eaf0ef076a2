// What the operations inside of shard_map compute, as nodes of a reference.
#pragma once

#include <vector>

#include "workloads/sharded/program.hpp"

namespace podsim {

/// Appends the nodes of an operation inside of shard_map, or of from_blocks; returns the last one. `node_of`: those of earlier operations.
///
/// The blocks of all devices are one array: the first dimensions are the mesh's axes, of extent 1 where the blocks do not vary along the axis, behind them are those
/// of the block. So a 16x16 array as x,y on x=4,y=2 is [4, 2, 4, 8]; an operation on it is the same on the block of every device, and nothing of how programs
/// are written as schedules is repeated here.
int add_shard_map_node(ReferenceProgram& reference, const ShardedProgram& program, const Operation& operation, const std::vector<int>& node_of);

}  // namespace podsim
