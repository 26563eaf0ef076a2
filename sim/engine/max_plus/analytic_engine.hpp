// Longest path with uncontended durations: exact without contention, otherwise a lower bound on the other engines.
#pragma once

#include <optional>

#include "sim/engine/engine.hpp"

namespace podsim {

/// The max-plus pass (max_plus.hpp) without a look at who meets: each flow and each work takes what it takes alone. Any schedule has such a path: tasks that
/// wait for each other in a circle are played instance by instance, and where instances do so, that is a deadlock. In a folded model the flows
/// of a class that cross one link share it, so its times may be later than those of the model with one node per device, which the engine is given.
///   result   never above des's, and equal where nothing is shared
///   cost     2 ns per task instance, and the times of the tasks that others still ask for; a recorded timeline adds 16 bytes per instance
Expected<Timeline> run_analytic(const Model& model, const RunControl& control);

/// Its makespan only, of a folded model too. nullopt: a deadlock, beyond the clock, or stopped.
std::optional<Picoseconds> least_makespan(const Model& model, Cancellation stop = {});

}  // namespace podsim
