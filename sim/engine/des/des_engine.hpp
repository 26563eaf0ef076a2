// The discrete-event engine, in integer picoseconds; the default, also for whole pods.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

/// Simulates any model; a folded model gives the same picoseconds as the unfolded one. Where few flows hold back others, there is a shorter way than
/// events (../max_plus/max_plus.hpp), which is tried first.
Expected<Timeline> run_des(const Model& model, const RunControl& control);

/// By events alone, for tests and benchmarks.
///   memory  4 bytes per task instance; per flow in flight about 100 bytes, and 12 per link of its path; a recorded timeline adds 16 bytes per
///           instance
Expected<Timeline> run_events(const Model& model, const RunControl& control);

}  // namespace podsim
