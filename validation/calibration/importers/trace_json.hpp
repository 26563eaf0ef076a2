// Traces of jax.profiler: Chrome trace events as JSON.
#pragma once

#include <memory>

#include "validation/calibration/importers/byte_source.hpp"
#include "validation/calibration/importers/imported.hpp"
#include "validation/calibration/importers/profile_ops.hpp"

namespace podsim {

/// Tells a sink of the lines that it takes of the processes `/device:TPU:<n>`. Reads event by event: it keeps no event itself. The duration of an
/// event is its `device_duration_ps` if it has one, else `dur`. Errors: JSON that is cut short or none, at its line and column; no traceEvents.
Expected<ReadProfile> read_trace_json(std::unique_ptr<ByteSource> bytes, const std::string& file, ProfileSink& sink);

/// Collectives and matmul fusions on the lines `XLA Ops` of the processes `/device:TPU:<n>`, one observation for each operation: ProfileOps::finish.
/// Its memory grows with the events of these (16 bytes each), not with the file. Errors: those of reading; neither of them on any TPU.
Expected<Imported> import_trace_json(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
