// Many models at once, those that are variants of each other in one walk.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/engine.hpp"

namespace podsim {

/// run_des() of each model. Those that differ in costs only are tried as lanes of one max-plus pass (../max_plus/lanes.hpp) first; whatever a lane
/// cannot prove is played alone. `threads` at a time.
std::vector<Expected<Timeline>> run_des_variants(std::span<const Model* const> models, const RunControl& control, int threads);

}  // namespace podsim
