// Logs of training runs: torchtitan, Megatron-LM (and what is built on it: NeMo, Megatron-DeepSpeed).
#pragma once

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

/// One row, a training step of the median time of the steady ones; its name in the study is the file's, without folder and extension.
///   torchtitan    the time between the lines of two steps, by their stamps; the first, in which things are compiled, does not count
///   Megatron-LM   "elapsed time per iteration", a mean over the steps since the line before; likewise
/// Of "1460.8/1450.4", as AMD's Primus writes the time of the last step and the mean since the beginning, the first.
/// Devices: the file's world size, else `options.devices`; not that of DeepSpeed's settings, which is the data-parallel size. Notes say tokens a second and memory, as the log has them.
/// Errors: no line of a step, fewer than three; times that do not grow; numbers that are none; a number of devices that is not stated.
Expected<Imported> import_training_log(std::string_view text, const std::string& file, const ImportOptions& options = {});

/// Whether a line of either is in a text.
bool has_training_log(std::string_view text);

}  // namespace podsim
