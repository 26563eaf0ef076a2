// Longest path with uncontended durations: exact without contention, otherwise a lower bound on the other engines.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

/// The model needs one node per device. `control` is ignored: the run is much shorter than the construction of the model.
Expected<Timeline> run_analytic(const Model& model, const RunControl& control);

}  // namespace podsim
