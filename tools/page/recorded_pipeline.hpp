// The picture of a pipeline, from a simulated training step.
#pragma once

#include <optional>

#include "tools/report/pipeline_chart.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// A row per rank of the axis `stage`: what the core of its first device does, forwards and backwards of microbatches and the optimizer, each from its first task to the last before the core turns to another,
/// waiting for transfers within it included. Nothing: the run is no training step, or has one stage. The timeline must be recorded and complete.
///   cost    O(n log n) for the n tasks of each of these devices
std::optional<DrawnPipeline> pipeline_of(const Run& run);

}  // namespace podsim
