// A training model as a message within another file. Internal to readers of files.
#pragma once

#include "sim/config/message_file.hpp"
#include "workloads/training/model.hpp"
#include "workloads/training/model.pb.h"

namespace podsim {

/// The model of a message at `place`. What is wrong with it is recorded in `file`: dtypes other than bf16 and f32, another version, problems_of().
TrainingModel training_model_of(const proto::TrainingModel& message, MessageFile& file, const Place& place);

}  // namespace podsim
