// Counter-based inputs: every word of a global tensor is a function of (seed, tensor, row-major index), so shards agree although no device holds the
// whole tensor. The parts of complex numbers are words 2 i and 2 i + 1.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/base/thread_pool.hpp"
#include "sim/engine/numeric/layout.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"

namespace podsim {

/// The position of a device's shard of an input or output in the global tensor, which is flattened row-major. In elements, as all layouts here.
Layout shard_layout(const Mesh& mesh, const Buffer& buffer, DeviceId device);
/// The element count of the global tensor that the buffer is a shard of, with its padding; saturates.
std::int64_t global_elements(const Buffer& buffer);
/// The same without its padding.
std::int64_t data_elements(const Buffer& buffer);
/// The part of a device's shard that is no padding: where it lies in the buffer, and in the tensor without padding, flattened row-major. Without
/// padding these are all of the buffer, and shard_layout().
struct ShardData {
  Layout in_buffer, in_tensor;
};
ShardData data_of_shard(const Mesh& mesh, const Buffer& buffer, DeviceId device);

/// The range r of integer inputs. It is the largest r for which all sums that the schedule claims stay exact in float32 (at most 2^24) in any order:
/// r^2 K <= 2^24 for products over at most K, P r <= 2^24 for sums over P devices, r = 2^24 for collectives that only move data, exact_range() for a
/// graph of operations on `mesh`, 8 without a claim.
/// At least 1: from K = 2^24 on, inputs are +-1 and partial sums stay near sqrt(K). If one of them still rounds, a correct schedule is reported
/// wrong, never the reverse.
///
/// Inputs are never zero, so a lost or doubled contribution always changes its sum. Two inputs are equal by chance in 1 of 2r cases.
std::int64_t integer_range(const Computes& computes, const Mesh& mesh = {});

/// Whole tensors by name, without padding: words (storage.hpp), row-major.
using GivenTensors = std::map<std::string, std::vector<float>, std::less<>>;

/// Makes the inputs of a schedule, or cuts them out of given tensors.
///
/// If the schedule computes a collective whose input is replicated along the collective's axes, wholly or in part, its devices still get different
/// values: the definition of a collective holds for any values.
class InputMaker {
 public:
  /// The schedule must be well-shaped and outlive this object, as `given` must, which has every input or is null. If cancelled, the functions return early
  /// and leave elements unfilled.
  InputMaker(const Schedule& lowered, std::uint64_t seed, Filling filling, Cancellation stop = {}, const GivenTensors* given = nullptr);

  /// The device's shard of an input, in the dtype given by carried_in().
  void fill_shard(const Buffer& buffer, DeviceId device, float* out) const;
  /// The initial contents of a buffer: inputs are filled, everything else is NaN, so that a read of unwritten data shows.
  void prepare_buffer(const Buffer& buffer, DeviceId device, float* out) const;
  /// The whole tensor of an input buffer, rounded as the buffer is, with its padding (zeros) or without. Not for claims of a collective, whose inputs
  /// may have several values per element.
  /// Complex numbers are two elements.
  [[nodiscard]] std::vector<double> global_tensor(const Buffer& buffer, bool padded, ThreadPool& pool) const;

 private:
  [[nodiscard]] std::int64_t below(const Buffer& buffer) const;
  void cut_shard(const Buffer& buffer, const ShardData& data, const std::vector<float>& tensor, float* out) const;
  /// The shard of a padded tensor.
  void fill_data(const Buffer& buffer, const ShardData& data, std::uint64_t stream, float* out) const;
  [[nodiscard]] std::uint64_t stream_on(DeviceId device, const Buffer& buffer) const;

  const Mesh& mesh_;
  std::uint64_t seed_;
  Filling filling_;
  std::uint64_t range_, s8_range_;  // s8_range_: of s8 data that a sum over devices seldom wraps
  const Collective* apart_ = nullptr;   // the collective along whose axes replicated inputs are made different
  const std::string* tensor_ = nullptr;  // the tensor of that input
  std::map<std::string, std::int64_t> below_;  // of tensors of whole numbers below a bound: ReferenceNode::below
  Cancellation stop_;
  const GivenTensors* given_;
};

}  // namespace podsim
