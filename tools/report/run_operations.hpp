// The operations of a simulated run, written into its JSON and read back as a prediction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/operations.hpp"
#include "sim/base/expected.hpp"
#include "tools/report/json.hpp"
#include "workloads/ledger/ledger.hpp"
#include "workloads/scenario/simulate.hpp"
#include "validation/diff/step_diff.hpp"

namespace podsim {

/// The operations of the device whose core is busy longest (measure_operations()), an array of
///
///   name, category, count           sim/analysis/operations.hpp
///   busy_s, exposed_s               sum to compute_s and exposed_communication_s over all
///   overlapped_s                    in flight while the core is busy
///   flops, m, n, k                  of one occurrence of a matmul; of several in one operation, or of unknown extents, only flops
///   bytes, devices                  of one occurrence of a collective: input per device, devices that take part
///   operations                      of one occurrence of a call that was played as one task: what is in it
Json operations_json(const std::vector<OperationMetrics>& operations);

/// The run as one step. The time of an operation is the time in which the core is busy with it or waits only for it. What is in a call that was played as one task stands for it.
StepTimes step_of(const Run& run);
/// The same of any device's operations, calls as they are: a step has one for each of them.
StepTimes step_of(const std::vector<OperationMetrics>& operations, Picoseconds makespan);

inline constexpr std::int64_t most_layers = 1 << 20;

/// A simulated block, and how many of it a step has in sequence: the layers of its model.
struct PredictedStep {
  StepTimes block;
  std::int64_t layers = 1;
  std::string machine{};  // its name; empty: the JSON does not say it
  std::vector<LedgerRow> collectives{};  // of the block; none: the JSON is of a podsim that did not write them
};

/// Reads the output of `run --format json`, with its `blocks` and `collectives`, and calls as step_of(Run) has them. Errors, with `file:line:column`: invalid JSON; JSON of another kind, or of a run
/// without operations; impossible times and numbers.
Expected<PredictedStep> read_run_step(std::string_view text, const std::string& file);

}  // namespace podsim
