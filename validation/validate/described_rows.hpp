// Rows that a study describes, training steps and runs: their prediction on one machine after the other, for a fit.
#pragma once

#include "topologies/system.hpp"
#include "validation/calibration/fit/calibrate.hpp"
#include "validation/validate/study.hpp"

namespace podsim {

/// predict_step() (training_rows.hpp), or predict_run() (run_rows.hpp), with other machines in the place of the base system's; rows of other places in a file are
/// other rows. What is asked again is not simulated again. The study must outlive it.
DescribedTime described_time(const Study& study, const System& base);

}  // namespace podsim
