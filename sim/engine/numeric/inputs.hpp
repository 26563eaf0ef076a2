// Inputs made by counting: any element of a global tensor is a function of (seed, tensor, its row-major index), so shards agree without
// anyone holding the whole.
#pragma once

#include <vector>

#include "sim/base/thread_pool.hpp"
#include "sim/engine/numeric/layout.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"

namespace podsim {

/// Where a device's shard of an input or output lies in the global tensor, flattened row-major.
Layout shard_layout(const Mesh& mesh, const Buffer& buffer, DeviceId device);
/// Of the whole tensor that the buffer is a shard of; stops at the largest number.
std::int64_t global_elements(const Buffer& buffer);
/// Of a device along the axes, first most significant.
std::int64_t position_along(const Mesh& mesh, const std::vector<AxisView>& axes, DeviceId device);

/// The largest r such that sums of what the schedule claims cannot leave the integers that float32 holds, 2^24, in any order, if the inputs are
/// integers of at most r: r^2 K <= 2^24 for products over at most K, P r <= 2^24 for sums over P devices, r = 2^24 where a collective only moves.
/// At least 1: from K = 2^24 on inputs are +-1, whose partial sums, with random signs, stay near sqrt(K). Should one round all the same, a right
/// schedule is called wrong, never a wrong one right. 8 where nothing is claimed.
///
/// So no contribution is zero, and a lost or doubled one always changes its sum; two are equal by chance in 1 of 2r cases.
std::int64_t integer_range(const Computes& computes);

/// The inputs of a schedule.
///
/// Where a schedule computes a collective whose input is replicated, wholly or in part, along the collective's axes, the devices there get
/// different values all the same: a collective is defined on whatever each device has.
class InputMaker {
 public:
  /// The schedule is well-shaped and must outlive this. Requested to stop, the functions return early and leave things unfilled.
  InputMaker(const Schedule& lowered, std::uint64_t seed, Filling filling, Cancellation stop = {});

  /// The device's shard of an input, in the dtype that it is carried in.
  void fill_shard(const Buffer& buffer, DeviceId device, float* out) const;
  /// A buffer as a run begins: an input is filled, everything else is NaN, so that reading what was never written shows.
  void prepare_buffer(const Buffer& buffer, DeviceId device, float* out) const;
  /// The whole of an input tensor of `elements`, carried as a buffer of `dtype`. Of products: their inputs have one value per element.
  [[nodiscard]] std::vector<double> global_tensor(std::string_view tensor, std::int64_t elements, DType dtype, ThreadPool& pool) const;

 private:
  [[nodiscard]] std::uint64_t stream_on(DeviceId device, const Buffer& buffer) const;

  const Mesh& mesh_;
  std::uint64_t seed_;
  Filling filling_;
  std::uint64_t range_;
  const Collective* apart_ = nullptr;   // along whose axes the input is made different
  const std::string* tensor_ = nullptr;  // that input
  Cancellation stop_;
};

}  // namespace podsim
