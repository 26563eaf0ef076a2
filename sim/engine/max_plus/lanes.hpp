// Many variants of one model in one walk over its tasks and devices.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/engine/engine.hpp"

namespace podsim {

/// What run_max_plus() does where no flow is held back, for models that differ in costs only (differ_in_costs_only(), recost.hpp) and are not folded. Each
/// has a proof of its own.
///   result   of each model, in any order and by any number of threads: the timeline that run_max_plus() gives for it alone. nullopt: flows meet, tasks
///            wait for each other in a circle, or the run takes more than two hours
///   control  no progress is told; a run that ends beyond the limit is marked, at its end
///   readers  of each model, as RunControl::reader, which is not used; or none. Without a result, a reader may have been told a part
///   cost     1 to 3 ns per task instance and model, in blocks of 8 models
std::vector<std::optional<Timeline>> run_max_plus_lanes(std::span<const Model* const> models, const RunControl& control, std::span<TimesReader* const> readers,
                                                        int threads);

}  // namespace podsim
