// Logs of the collective benchmarks of MeshSlice (github hwnam831/meshslice).
#pragma once

#include "validation/calibration/importers/imported.hpp"

namespace podsim {

/// Lines `Size: 8KB,\t Time: 0.0123+-0.0004ms` under headers, as printed by BenchCollectives2D.py for its three operations:
///
///   Allgather_y: dim=0    Allgather_y dim=1:      along the mesh axis y, dimension 0 or 1 of the array
///   Allgather_x: dim=0    Allgather_x:            the second of dimension 1
///   ReduceScatter_y:      ReduceScatter_y: dim=1  the first of dimension 0; the same of x
///   SendRecv_y:           SendRecv_x:             a permute, which has no array dimension
///
/// BenchCollectives.py has one unnamed axis: `Allgather:`, `ReduceScatter:` and `SendRecv:`, of dimension 0. A size is that of one device's data (for
/// a reduce-scatter of its output); KB is 1024 bytes. The devices along an axis are given by the line `Running benchmark on (8, 4) devices.` (8 along
/// x, 4 along y: the mesh that JAX's create_device_mesh laid), else by `options.axes` or `options.devices`. Other lines are skipped and counted.
/// Errors: a size before any header, a header of another form, invalid numbers, a number of devices that is not given, or differs between log and
/// options.
Expected<Imported> import_meshslice_log(std::string_view text, const std::string& file, const ImportOptions& options = {});

}  // namespace podsim
