// Measured runs, of whatever `podsim run` simulates: their prediction.
#pragma once

#include "sim/base/cancellation.hpp"
#include "sim/machine/machine.hpp"
#include "validation/validate/study.hpp"

namespace podsim {

/// What `podsim run` gives on the machine of the fields that the study has for the row's run. Around broken cables transfers are routed: what was measured is
/// the schedule of the whole system. Errors, at the row: the study has no run of that name; another number of devices; in the study: those of read_system(),
/// read_problem(), pose() and simulate().
Expected<Seconds> predict_run(const Observation& row, const Study& study, const Machine& machine, Cancellation stop = {});

}  // namespace podsim
