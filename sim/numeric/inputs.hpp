// Inputs made by counting: any element of a global tensor is a function of (seed, tensor, its row-major index), so shards agree without
// anyone holding the whole.
#pragma once

#include <vector>

#include "sim/base/thread_pool.hpp"
#include "sim/numeric/layout.hpp"
#include "sim/numeric/numeric_engine.hpp"

namespace podsim {

/// Where a device's shard of an input or output lies in the global tensor, flattened row-major.
Layout shard_layout(const Mesh& mesh, const Buffer& buffer, DeviceId device);
/// Of the whole tensor that the buffer is a shard of; stops at the largest number.
std::int64_t global_elements(const Buffer& buffer);

/// The device's shard of an input, rounded to its dtype.
void fill_shard(const Mesh& mesh, const Buffer& buffer, DeviceId device, std::uint64_t seed, Filling filling, float* out);

/// A buffer as a run begins: an input is filled, everything else is NaN, so that reading what was never written shows.
void prepare_buffer(const Mesh& mesh, const Buffer& buffer, DeviceId device, std::uint64_t seed, Filling filling, float* out);

/// The whole of an input tensor of `elements`, rounded to `dtype`.
std::vector<double> global_tensor(std::string_view tensor, std::int64_t elements, DType dtype, std::uint64_t seed, Filling filling, ThreadPool& pool);

}  // namespace podsim
