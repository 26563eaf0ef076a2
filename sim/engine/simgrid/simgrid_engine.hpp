// The same meaning on SimGrid's solver, in a forked child per run: the referee for contention.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

/// A node per device. A run that is told to stop has no result: cancelled_work(). There is no progress.
Expected<Timeline> run_simgrid(const Model& model, const RunControl& control);

}  // namespace podsim
