// Logs of the collective benchmarks of MeshSlice (github hwnam831/meshslice).
#pragma once

#include "validation/importers/imported.hpp"

namespace podsim {

/// Lines `Size: 8KB,\t Time: 0.0123+-0.0004ms` under headers `Allgather_y: dim=0`: along the mesh axis y, dimension 0 of the array. A size is the
/// shard, of a reduce-scatter that of the output; KB is 1024 bytes. Devices along an axis are not in the log: `options.axes` or `options.devices`.
/// Errors: a size before any header, a header of an unknown operation, numbers that are none, devices that nothing tells.
Expected<Imported> import_meshslice_log(std::string_view text, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
