// One problem on one pod by one engine: lowering, the run, its figures.
#pragma once

#include "sim/engine/engine.hpp"
#include "sim/engine/result.hpp"
#include "tools/command/pod.hpp"
#include "tools/command/problem.hpp"

namespace podsim {

/// A result with what the command line adds to it.
struct Row {
  Result result;
  std::string algorithm, dataflow;
  std::optional<std::int64_t> slice_count;
  double padding = 0;
  bool over_hbm = false;  // the peak memory does not fit the device
};

/// Errors: those of lowering and of the engine.
Expected<Row> simulate(const Pod& pod, const Problem& problem, const EngineEntry& engine);

}  // namespace podsim
