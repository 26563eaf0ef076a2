// What a run waits for: the collectives of its busiest device, those first that are exposed longest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/operations.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// All executions of one instruction of a module, or of what serves one purpose in all layers, microbatches and slices of a schedule.
struct LedgerRow {
  std::string name;    // "all-gather.83"; "forward ff1: gather W"
  std::string path;    // of a module, in the user's program: "jit(step)/while/body/dot_general"; empty: not said
  std::string source;  // "layers.py:85"; empty: not said
  std::string kind;    // name_of(CollectiveKind), or send
  std::vector<std::string> axes;  // of the mesh, along which it moves, in order; empty: along several at once
  int devices = 0;                // that take part; 0: of a send
  Bytes bytes;                    // of one execution: the input per device
  std::int64_t count = 0;         // executions; trips of loops and calls count each
  Picoseconds in_flight;          // all executions added up
  Picoseconds exposed;            // of that, the core waits for it: of several that it could wait for, one (exposed_by(), sim/analysis/operations.hpp)
  Picoseconds hidden;             // of that, the core works meanwhile
};

/// Most exposed first; ties: longest in flight, then name. The exposed times add up to Metrics::split.exposed_communication, exactly. Of a schedule of
/// several programs, such as a pipeline, they are those of the device whose core is busy longest. What the core waits for in a call that is played is shared
/// out among the call's collectives as it would be if the call ran alone.
/// `operations`: those of that device (measure_operations()).
std::vector<LedgerRow> collective_ledger(const Run& run, const std::vector<OperationMetrics>& operations);
/// The same where they are not needed for anything else.
std::vector<LedgerRow> collective_ledger(const Run& run);

/// The row that an operation of the run is part of: `name` and `category` as OperationMetrics has them, `bytes` of one execution. Null: none, as it is no collective.
const LedgerRow* ledger_row_of(const std::vector<LedgerRow>& ledger, std::string_view name, std::string_view category, Bytes bytes);

}  // namespace podsim
