// The text that nccl-tests prints (github NVIDIA/nccl-tests).
#pragma once

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

/// Imports the out-of-place times. The collective is that of the last `<name>_perf` in the text, else `options.op`, else the reduction that the ratio
/// of bus to algorithm bandwidth identifies, else that in the file's name; of the last two a note tells. Devices are counted from `#  Rank` lines, else `options.devices`. The size column is the total: the
/// input of each device is size / devices for an all-gather, size for the others. Rows of size 0 and rows with wrong results are skipped, with a
/// note: those that the column `#wrong` counts; older versions have a column `error`, a rounding error, and say below a table whether any of it is wrong. What a paste does
/// to a log is undone: comments without their `#`, `> ` and timestamps in front of lines. Lines may carry process labels (process_label.hpp) in any interleaving; each process's lines are read separately. Of rows of several
/// processes with equal collective, devices, size and type the first process's counts, so that no table counts twice.
/// A row may lack its figures in place (the test was killed, or is made of nccl-tests), and other output, as of NCCL_DEBUG=INFO, may stand between its size and its figures.
/// Errors: no heading, no row, truncated rows, invalid numbers, a bandwidth that is not size / time, a bus bandwidth of another collective or number of devices, a collective or number of devices that is not stated.
Expected<Imported> import_nccl_tests(std::string_view text, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
