// Profiles as XProf keeps them: *.xplane.pb, one XSpace.
#pragma once

#include <memory>

#include "validation/importers/byte_source.hpp"
#include "validation/importers/imported.hpp"

namespace podsim {

/// Collectives and matmul fusions on the lines `XLA Ops` of the planes `/device:TPU:<n>`, one observation for each operation: ProfileOps::finish.
/// Reads plane by plane, and of a plane field by field: only one line of it is in memory, and 24 bytes for each of its events and their numbers. The
/// time of an event is its stat `device_duration_ps` if it has one. Errors: fields that are cut short or of another kind, at their byte; no TPU.
Expected<Imported> import_xplane(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
