// Tables of HLO op statistics, as XProf makes of profiles of TPUs.
#pragma once

#include "validation/calibration/importers/imported.hpp"
#include "validation/calibration/importers/profile_operations.hpp"

namespace podsim {

/// CSV in one of two forms, told apart by their columns:
///
///   collectives   kind, hlo_op, input_bytes, output_bytes, avg_self_time_us   also input_shape, in_megacore_fusion
///   operations    category, hlo_op, avg_self_time_us, model_GFLOPs            also result_shapes_prefix (rates are per core, in GFLOP/s)
///
/// Of the first all collectives but the starts and ends of asynchronous ones; of the second matmul fusions that ran on all cores. Devices of an
/// all-gather or a reduce-scatter follow from its bytes; the others take those, if all agree, else options.devices. Times are means.
/// Rows whose rate is above options.core_peak are rejected and noted. Errors: other columns, numbers that are none.
Expected<Imported> import_hlo_stats(std::string_view text, const std::string& file, const ImportOptions& options = {});

/// All rows of either form, which must then have the column occurrences; `total_self_time_us` counts where it is there. The times of idling are in
/// neither. Errors: those of above; steps without the devices that the sums are over.
Expected<ProfiledOperations> operations_of_hlo_stats(std::string_view text, const std::string& file, const ProfileOptions& options);

}  // namespace podsim
