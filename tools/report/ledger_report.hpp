// The ledger of a run's collectives, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/operations.hpp"
#include "tools/report/json.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// collectives: [ {name, path, source, kind, axis, devices, bytes, count, in_flight_s, exposed_s, hidden_s, share} ], most exposed first
/// (workloads/ledger/ledger.hpp). share: of the run, in which the core waits for it.
Json ledger_json(const Run& run, const std::vector<OperationMetrics>& operations);

/// The first rows, and what the others come to. Empty: nothing is sent.
std::string ledger_table(const Run& run);

}  // namespace podsim
