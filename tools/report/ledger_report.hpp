// The ledger of a run's collectives, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/operations.hpp"
#include "tools/report/json.hpp"
#include "workloads/ledger/ledger.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// collectives: [ {name, path, source, kind, axis, devices, bytes, count, in_flight_s, exposed_s, hidden_s, share} ], most exposed first
/// (workloads/ledger/ledger.hpp). share: of the run, in which the core waits for it.
Json ledger_json(const Run& run, const std::vector<OperationMetrics>& operations);

/// "fsdp,tensor"
std::string axes_text(const LedgerRow& row);
/// Where a row comes from, with the end of a long path: "...layers/dot_general"; empty: not said.
std::string origin_text(const LedgerRow& row);

/// The first rows, and what the others come to. Empty: nothing is sent.
std::string ledger_table(const Run& run);

}  // namespace podsim
