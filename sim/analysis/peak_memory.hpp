// How much memory a run needs.
#pragma once

#include <vector>

#include "sim/model/model.hpp"
#include "sim/engine/timeline.hpp"

namespace podsim {

/// Per node, the largest sum over time of live buffers: a scratch buffer from its earliest write to its last use, inputs and outputs always.
std::vector<Bytes> peak_memory(const Model& model, const Timeline& timeline);

}  // namespace podsim
