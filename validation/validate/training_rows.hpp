// Measured training steps: their prediction, and machines fitted to them.
#pragma once

#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "topologies/system.hpp"
#include "validation/validate/study.hpp"

namespace podsim {

/// The step of a row, on the slices where it ran. Errors, at the row: the study has no step of that name; those of read_maxtext() and divided(); a mesh
/// of another number of devices than the row's.
Expected<TrainingStep> step_of(const Observation& row, const Study& study, const System& base);

/// One step by des, calls played: on the row's slices of the base system's machine, in its order of devices, with the step's own mesh; collectives by
/// direct_between_slices(). Errors: those of step_of(), make_system(), training_schedule() and simulate().
///   cost    about 0.05 s, with 32 slices of 256 chips 0.5 s
Expected<Seconds> predict_step(const Observation& row, const Study& study, const System& base, Cancellation stop = {});

/// The machine of `base` with the values of `paths` that take the rows nearest to their times, by least squares on ln(predicted / observed). A value of a
/// rate or share is positive, a time at least zero. Errors: those of predict_step(); no paths, more of them than rows, a path that is no number of a machine.
Expected<Machine> fit_to_steps(const std::vector<Observation>& rows, const Study& study, const System& base, const std::vector<std::string>& paths,
                               Cancellation stop = {});

}  // namespace podsim
