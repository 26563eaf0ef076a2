// The table from a task to its numeric kernel.
#pragma once

#include <algorithm>
#include <span>

#include "sim/base/expected.hpp"
#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/storage.hpp"

namespace podsim {

/// The largest number of boxes that an operation accesses, other than an opaque one; a Matmul has three.
inline constexpr std::size_t most_accesses = std::max<std::size_t>(most_local_regions, 3);

/// A device, and what opaque operations compute on it; nullptr: nobody knows.
struct DevicePlace {
  DeviceId device;
  const Coordinates& coordinates;
  const SourceModule* source = nullptr;
};

/// Executes a Matmul or Local. `accesses` are in the order of Storage::append_accesses(); `views` are their memory.
/// Errors (Cause::data): a singular matrix, an index that names no row, an opaque operation that the source cannot execute.
Status perform(const Op& op, std::span<const Access> accesses, std::span<const View> views, const DevicePlace& place, PackedOperands& workspace);

/// The error of an activity that could not work on its data: with its task and device.
Diagnostic failure_of(const Schedule& lowered, const Activity& activity, const Diagnostic& why);

/// Delivers a transfer: copies or adds its source to its target. `accesses` and `views` are those of source and target.
void deliver(Combine combine, std::span<const Access> accesses, std::span<const View> views, PackedOperands& workspace);

/// Whether the receiver of a transfer replaces or adds.
Combine combine_of(const Schedule& lowered, const Activity& transfer);

}  // namespace podsim
