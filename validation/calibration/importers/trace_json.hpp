// Imports Chrome trace events as JSON: the traces of jax.profiler and of PyTorch's profiler (Kineto).
#pragma once

#include <memory>

#include "sim/config/byte_source.hpp"
#include "validation/calibration/importers/imported.hpp"
#include "validation/calibration/importers/profile_ops.hpp"

namespace podsim {

/// Passes the events of lines that the sink takes, of processes `/device:TPU:<n>` and `/device:GPU:<n>`, one by one, and stores none. The duration of an event is its
/// `device_duration_ps` if present, else `dur`. Kernels of PyTorch are stored until the end (KinetoKernels). Errors: truncated or invalid JSON, with line and column; no traceEvents; a kernel of
/// negative duration.
Expected<ReadProfile> read_trace_json(std::unique_ptr<ByteSource> bytes, const std::string& file, ProfileSink& sink);

/// Collectives and matmul fusions on the lines `XLA Ops` of processes `/device:TPU:<n>`, one observation per operation: ProfileOps::finish().
/// Memory: 16 bytes per event of these operations. Errors: those of reading; no such operation on any TPU.
Expected<Imported> import_trace_json(std::unique_ptr<ByteSource> bytes, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
