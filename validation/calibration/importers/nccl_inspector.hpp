// What NCCL's inspector writes (NVIDIA/nccl, plugins/profiler/inspector): an object a line for each collective that a rank took part in.
#pragma once

#include <string_view>

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

/// Whether the beginning of a file is such a line.
bool is_nccl_inspector(std::string_view head);

/// Of every collective, number of ranks and size one row: the median of its times. These are the kernels' on one rank: they begin when that rank comes, and end when all are done, so that
/// in a training run they hold the wait for the last rank. Sends and receives are skipped, with a note.
/// Errors: no collective; lines that are no such object; numbers out of range.
Expected<Imported> import_nccl_inspector(std::string_view text, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
