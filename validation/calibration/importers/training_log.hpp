// Logs of training runs: torchtitan, Megatron-LM (and what is built on it: NeMo, Megatron-DeepSpeed).
#pragma once

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

/// One row, a training step of the median time of the steady ones; its name in the study is the file's, without folder and extension.
///   torchtitan    the time between the lines of two steps, by their stamps; the first, in which things are compiled, does not count
///   Megatron-LM   "elapsed time per iteration", a mean over the steps since the line before; likewise
/// Devices: the file's world size, else `options.devices`. Notes say tokens a second and memory, as the log has them.
/// Errors: no line of a step, fewer than three; times that do not grow; numbers that are none; a number of devices that is not stated.
Expected<Imported> import_training_log(std::string_view text, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
