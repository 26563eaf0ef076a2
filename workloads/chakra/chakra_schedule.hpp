// Chakra execution traces as a schedule.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "sim/schedule/schedule.hpp"
#include "workloads/chakra/trace.hpp"

namespace podsim {

/// Where the time of a computation comes from.
enum class ChakraCost {
  recorded,  // work_s, else duration_ps, else duration_micros; where neither is given, as below
  flops,     // num_ops and tensor_size on the machine; without them no time
};

struct ChakraSchedule {
  Schedule schedule;
  std::string collective_algorithm;  // that the traces name: the policy for collectives; empty: none
  int collective_chunks = 0;         // 0: none
};

using ChakraSource = std::function<Expected<ChakraTrace>(int rank)>;

/// The schedule of as many traces as the mesh has devices; rank r is device r. Ranks whose traces are equal, relative to the rank, share a program;
/// so do those of a collective that differ in times and messages alone.
///
///   dependencies   edges
///   comp           an opaque Local on the core, in the order of chakra_order(); of the host (is_cpu_op) beside the core, one at a time
///   comm_coll      a Collective along the axes, or strided views of them, that the ranks of its process group lie along
///   comm_send      a Send; comm_recv: a Recv into a buffer of its own, so that a message never waits for its receiver, and what depends on the
///                  receive waits for the node's dependencies and the message. k-th send and receive of one (source, destination, tag) match
///   mem_load, mem_store   a copy from or to the host's memory, beside the core
///
/// What podsim wrote itself (ChakraExtension) becomes what it was: to the same picosecond.
/// `read` gives the trace of one rank; it is called at most twice for each. `groups`: of pg_name; they count before those that traces tell.
/// Errors, with FILE and record: those of `read`; unmatched sends and receives; a rank that is none; a group that is not given, without the rank,
/// along no axes, or with ranks whose traces have other nodes; collectives that podsim does not have (gather, scatter).
Expected<ChakraSchedule> chakra_schedule(const Mesh& mesh, const ChakraSource& read, const ChakraGroups& groups, ChakraCost cost);

}  // namespace podsim
