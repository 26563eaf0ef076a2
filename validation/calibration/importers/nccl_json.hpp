// What nccl-tests -J and rccl-tests -Z write: JSON, and CSV of the same columns.
#pragma once

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

/// Imports the out-of-place times, as import_nccl_tests() does of the printed text: sizes become those of one device, rows of size 0 and with wrong results
/// are skipped with a note, and so are rows in place.
///   nccl-tests -J   one object: the test in `args` or `experiment_name`, devices from `config`
///   rccl-tests -Z   an array of objects, or an object a line: the test in `name`, devices in `ranks`; csv: the same names in the heading
/// Errors: no JSON; no row; fields that are missing or no numbers; a collective or number of devices that is not stated.
Expected<Imported> import_nccl_json(std::string_view text, const std::string& file, const ImportOptions& options = {});
Expected<Imported> import_nccl_csv(std::string_view text, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
