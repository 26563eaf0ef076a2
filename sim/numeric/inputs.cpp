#include "sim/numeric/inputs.hpp"

#include <limits>

#include "sim/base/rng.hpp"
#include "sim/numeric/bf16.hpp"
#include "sim/numeric/storage.hpp"

namespace podsim {
namespace {

/// Calls store(i, value) for `count` elements from global index `first` on.
template <class Store>
void generate(std::uint64_t seed, std::uint64_t stream, Filling filling, DType dtype, std::int64_t first, std::int64_t count, Store store) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t hash = counter_hash(seed, stream, static_cast<std::uint64_t>(first + i));
    float value = 0;
    if (filling == Filling::integers) {
      value = static_cast<float>(static_cast<int>((hash >> 32) * 9 >> 32) - 4);
    } else {
      // Odd multiples of 2^-23: exact in float32, symmetric, never 0 or +-1.
      value = static_cast<float>(2 * static_cast<std::int32_t>(hash >> 41) + 1) * 0x1p-23F - 1.0F;
    }
    store(i, dtype == DType::bf16 ? round_to_bf16(value) : value);
  }
}

}  // namespace

Layout shard_layout(const Mesh& mesh, const Buffer& buffer, DeviceId device) {
  const std::size_t rank = buffer.extents.size();
  assert(rank <= static_cast<std::size_t>(max_rank) && buffer.sharding.size() == rank);
  Extents extents{}, begin{};
  for (std::size_t i = 0; i < rank; ++i) {
    std::int64_t shards = 1, position = 0;
    for (const AxisView& axis : buffer.sharding[i]) {
      shards *= axis.size;
      position = position * axis.size + mesh.coordinate(device, axis);
    }
    extents[i] = buffer.extents[i] * shards;
    begin[i] = buffer.extents[i] * position;
  }
  return box_of(std::span{extents}.first(rank), std::span{begin}.first(rank), buffer.extents);
}

std::int64_t global_elements(const Buffer& buffer) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < buffer.extents.size(); ++i) {
    count = saturating_multiply(count, buffer.extents[i]);
    for (const AxisView& axis : buffer.sharding[i]) count = saturating_multiply(count, axis.size);
  }
  return count;
}

void fill_shard(const Mesh& mesh, const Buffer& buffer, DeviceId device, std::uint64_t seed, Filling filling, float* out) {
  const Layout layout = shard_layout(mesh, buffer, device);
  const std::uint64_t stream = stream_of(buffer.tensor);
  for_each_run<1>({&layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
    if (at[0].stride() == 1) {
      generate(seed, stream, filling, buffer.dtype, at[0].offset(), count, [out](std::int64_t i, float value) { out[i] = value; });
    } else {  // a shard of width 1: every run is of spaced elements
      for (std::int64_t i = 0; i < count; ++i)
        generate(seed, stream, filling, buffer.dtype, at[0].offset() + i * at[0].stride(), 1, [&](std::int64_t, float value) { out[i] = value; });
    }
    out += count;
  });
}

void prepare_buffer(const Mesh& mesh, const Buffer& buffer, DeviceId device, std::uint64_t seed, Filling filling, float* out) {
  if (buffer.role == Role::input) return fill_shard(mesh, buffer, device, seed, filling, out);
  std::fill_n(out, size_of(buffer).count() / size_of(buffer.dtype).count(), std::numeric_limits<float>::quiet_NaN());
}

std::vector<double> global_tensor(std::string_view tensor, std::int64_t elements, DType dtype, std::uint64_t seed, Filling filling,
                                  ThreadPool& pool) {
  std::vector<double> values(static_cast<std::size_t>(elements));
  constexpr std::int64_t piece = 1 << 16;
  pool.for_each(static_cast<std::size_t>((elements + piece - 1) / piece), [&](std::size_t p, std::size_t) {
    const std::int64_t first = static_cast<std::int64_t>(p) * piece;
    double* out = values.data() + first;
    generate(seed, stream_of(tensor), filling, dtype, first, std::min(piece, elements - first),
             [out](std::int64_t i, float value) { out[i] = static_cast<double>(value); });
  });
  return values;
}

}  // namespace podsim
