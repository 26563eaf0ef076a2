// Peak memory of a run.
#pragma once

#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"

namespace podsim {

/// Per node, the largest sum of live buffers over time: a scratch buffer lives from its earliest write to its last use, inputs and outputs always.
std::vector<Bytes> peak_memory(const Model& model, const Timeline& timeline);

}  // namespace podsim
