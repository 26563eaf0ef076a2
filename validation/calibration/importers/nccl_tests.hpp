// The text that nccl-tests prints (github NVIDIA/nccl-tests).
#pragma once

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

/// Rows of out-of-place times. The collective is that of the last `<name>_perf` in the text, else `options.op`, else what the ratio of bus to
/// algorithm bandwidth tells of a reduction; devices are counted from `#  Rank` lines, else `options.devices`. The size column is the total: the
/// input of each device is size / devices in an all-gather, size in the others. Rows of size 0 and rows with wrong results are skipped and noted.
/// Lines may be labelled with their process (process_label.hpp), in any order between processes: each process's lines are read by themselves. Of rows
/// of several processes with the same collective, devices, size and type the first process's is taken, so that no table counts twice.
/// Errors: no heading, no row, rows that are cut short, numbers that are none, a collective or devices that nothing tells.
Expected<Imported> import_nccl_tests(std::string_view text, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
