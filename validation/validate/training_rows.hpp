// Measured training steps: their prediction.
#pragma once

#include "sim/base/cancellation.hpp"
#include "topologies/system.hpp"
#include "validation/validate/study.hpp"

namespace podsim {

/// The step of a row, on the slices where it ran. Errors, at the row: the study has no step of that name; those of read_maxtext() and divided(); a mesh
/// of another number of devices than the row's.
Expected<TrainingStep> step_of(const Observation& row, const Study& study, const System& base);

/// What `podsim run` gives of the step with nothing else stated: posed by pose(), on the row's slices of the base system's machine, in its order of devices,
/// with the step's own mesh. Errors: those of step_of(), make_system(), pose() and simulate().
///   cost    about 0.05 s, with 32 slices of 256 chips 0.5 s; ten times that where layers are divided over row and col, as their products are chosen
Expected<Seconds> predict_step(const Observation& row, const Study& study, const System& base, Cancellation stop = {});

}  // namespace podsim
