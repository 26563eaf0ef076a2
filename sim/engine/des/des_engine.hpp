// Event by event, in integer picoseconds: the engine for pods.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

/// Plays any model, folded or not; a folded one gives the same picoseconds.
///   memory  4 bytes per task instance, and per flow in flight about 100 bytes and 12 per link of its path; recording adds 16 bytes per instance
Expected<Timeline> run_des(const Model& model, const RunControl& control);

}  // namespace podsim
