// Imports tables of HLO op statistics, which XProf makes from TPU profiles.
#pragma once

#include "validation/calibration/importers/imported.hpp"
#include "validation/calibration/importers/profile_operations.hpp"

namespace podsim {

/// CSV in one of two forms, recognised by their columns:
///
///   collectives   kind, hlo_op, input_bytes, output_bytes, avg_self_time_us   also input_shape, in_megacore_fusion
///   operations    category, hlo_op, avg_self_time_us, model_GFLOPs            also result_shapes_prefix (rates are per core, in GFLOP/s)
///
/// Imports from the first all collectives except the starts and dones of asynchronous ones; from the second the matmul fusions that ran on all cores.
/// The number of devices of an all-gather or reduce-scatter follows from its bytes; other rows take that number if all agree, else options.devices.
/// Times are means. Rows with a rate above options.core_peak are rejected, with a note. Errors: other columns, invalid numbers.
Expected<Imported> import_hlo_stats(std::string_view text, const std::string& file, const ImportOptions& options = {});

/// All rows of either form, which must have the column occurrences; `total_self_time_us` is used if present. Neither form contains idle time.
/// Errors: those above; steps without the number of devices that the sums cover.
Expected<ProfiledOperations> operations_of_hlo_stats(std::string_view text, const std::string& file, const ProfileOptions& options);

}  // namespace podsim
