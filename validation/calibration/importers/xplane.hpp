// Imports XProf profiles: *.xplane.pb, one XSpace.
#pragma once

#include <memory>

#include "sim/config/byte_source.hpp"
#include "validation/calibration/importers/imported.hpp"
#include "validation/calibration/importers/profile_ops.hpp"

namespace podsim {

/// Passes the events of lines that the sink takes, of planes `/device:TPU:<n>` and `/device:GPU:<n>`. Reads plane by plane and field by field: only one line is in memory,
/// and 32 bytes for each of its events and their statistics. The duration of an event is its stat `device_duration_ps` if present.
/// Errors: truncated or invalid fields, with their byte position.
Expected<ReadProfile> read_xplane(std::unique_ptr<ByteSource> bytes, const std::string& file, ProfileSink& sink);

/// Collectives and matmul fusions on the lines `XLA Ops`, one observation per operation: ProfileOps::finish(). Errors: those of reading; no such
/// operation on any TPU.
Expected<Imported> import_xplane(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
