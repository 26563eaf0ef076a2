// Longest path with uncontended durations: exact where nobody shares a link, never later than an engine that shares them.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

/// A node per device. The control has nothing to say here: it takes a fraction of the time of writing the model out.
Expected<Timeline> run_analytic(const Model& model, const RunControl& control);

}  // namespace podsim
