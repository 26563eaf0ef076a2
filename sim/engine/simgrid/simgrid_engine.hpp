// The reference engine for contention: the same semantics on SimGrid's solver, in a forked child per run.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

/// The model needs one node per device. Cancelled: the error is cancelled_work(), without a partial timeline. Reports no progress.
Expected<Timeline> run_simgrid(const Model& model, const RunControl& control);

}  // namespace podsim
