// The operations of a simulated run, written into its JSON and read back: what a prediction is made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/expected.hpp"
#include "tools/report/json.hpp"
#include "workloads/scenario/simulate.hpp"
#include "validation/diff/step_diff.hpp"

namespace podsim {

/// Of the device whose core is busy longest (measure_operations()), an array of
///
///   name, category, count           sim/analysis/operations.hpp
///   busy_s, exposed_s               sum to compute_s and exposed_communication_s over all
///   overlapped_s                    in flight beside a busy core
///   flops, m, n, k                  of one occurrence of a matmul
///   bytes, devices                  of one occurrence of a collective: its input on each device, who takes part
Json operations_json(const Run& run);

/// The run as one step: an operation takes the time that the core is busy with it or waits for it alone.
StepTimes step_of(const Run& run);

inline constexpr std::int64_t most_layers = 1 << 20;

/// What was simulated, and how many of it follow each other in a step: of a block the layers of its model.
struct PredictedStep {
  StepTimes block;
  std::int64_t layers = 1;
};

/// What `run --format json` prints, with its `blocks`. Errors: `file:line:column` of what is no JSON; JSON of something else, or of a run without
/// operations; times and numbers that cannot be.
Expected<PredictedStep> read_run_step(std::string_view text, const std::string& file);

}  // namespace podsim
