// Traces of jax.profiler: Chrome trace events as JSON.
#pragma once

#include <memory>

#include "validation/importers/byte_source.hpp"
#include "validation/importers/imported.hpp"

namespace podsim {

/// Collectives and matmul fusions on the lines `XLA Ops` of the processes `/device:TPU:<n>`, one observation for each operation: ProfileOps::finish.
/// Reads event by event: its memory grows with the events that it keeps (16 bytes each), not with the file. The time of an event is its
/// `device_duration_ps` if it has one, else `dur`. Errors: JSON that is cut short or none, at its line and column; no traceEvents; no TPU.
Expected<Imported> import_trace_json(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
