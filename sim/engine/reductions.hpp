#pragma once

#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/model/model.hpp"

namespace podsim {

/// How long receivers add up what each activity brings them, as a timeline keeps it.
std::vector<Timeline::Reduction> reductions_of(const Model& model);

}  // namespace podsim
