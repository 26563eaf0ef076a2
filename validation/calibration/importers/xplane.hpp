// Profiles as XProf keeps them: *.xplane.pb, one XSpace.
#pragma once

#include <memory>

#include "validation/calibration/importers/byte_source.hpp"
#include "validation/calibration/importers/imported.hpp"
#include "validation/calibration/importers/profile_ops.hpp"

namespace podsim {

/// Tells a sink of the lines that it takes of the planes `/device:TPU:<n>`. Reads plane by plane, and of a plane field by field: only one line of it
/// is in memory, and 32 bytes for each of its events and their numbers. The duration of an event is its stat `device_duration_ps` if it has one.
/// Errors: fields that are cut short or of another kind, at their byte.
Expected<ReadProfile> read_xplane(std::unique_ptr<ByteSource> bytes, const std::string& file, ProfileSink& sink);

/// Collectives and matmul fusions on the lines `XLA Ops`, one observation for each operation: ProfileOps::finish. Errors: those of reading; neither
/// of them on any TPU.
Expected<Imported> import_xplane(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
