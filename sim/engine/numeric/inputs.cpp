#include "sim/engine/numeric/inputs.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "sim/base/invariant.hpp"
#include "sim/base/rng.hpp"
#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/reference_evaluator.hpp"
#include "sim/engine/numeric/storage.hpp"
#include "sim/schedule/submesh.hpp"

namespace podsim {
namespace {

constexpr std::int64_t exact_integers = std::int64_t{1} << 24;  // float32 holds all up to here
constexpr std::int64_t largest_s8 = 127;
constexpr std::uint64_t position_stream = stream_of("position");

/// Non-zero, of either sign, at most `range`.
float integer_of(std::uint64_t hash, std::uint64_t range) {
  const auto magnitude = static_cast<std::int64_t>(1 + ((hash >> 32) * range >> 32));
  return static_cast<float>((hash & 1) != 0 ? -magnitude : magnitude);
}

/// Odd multiples of 2^-23: exact in float32, symmetric, never 0 or +-1.
float fraction_of(std::uint64_t hash) { return static_cast<float>(2 * static_cast<std::int32_t>(hash >> 41) + 1) * 0x1p-23F - 1.0F; }

/// Of one tensor.
struct Elements {
  std::uint64_t seed, stream, range, s8_range;
  Filling filling;
  DType dtype;
  std::int64_t below;  // 0: any numbers
};

/// From 0 to below - 1.
std::int64_t whole_number_of(const Elements& of, std::int64_t word) {
  if (of.filling == Filling::arange) return word / words_of(of.dtype) % of.below;
  if (of.filling == Filling::ones) return std::min<std::int64_t>(1, of.below - 1);
  const std::uint64_t hash = counter_hash(of.seed, of.stream, static_cast<std::uint64_t>(word));
  return static_cast<std::int64_t>((hash >> 32) * static_cast<std::uint64_t>(of.below) >> 32);
}
float word_holding(const Elements& of, std::int64_t whole_number) {
  if (of.dtype == DType::s32) return std::bit_cast<float>(static_cast<std::int32_t>(whole_number));
  return stored_in(carried_in(of.filling, of.dtype), static_cast<float>(whole_number));
}

/// What a word of a tensor of integers holds.
std::int32_t s32_of(const Elements& of, std::int64_t word) {
  if (of.filling == Filling::arange) return static_cast<std::int32_t>(word);
  if (of.filling == Filling::ones) return 1;
  return static_cast<std::int32_t>(integer_of(counter_hash(of.seed, of.stream, static_cast<std::uint64_t>(word)), of.range));
}

/// Calls store(i, value) for `count` words from global index `first` on.
template <class Store>
void generate(const Elements& of, std::int64_t first, std::int64_t count, Store store) {
  const auto each = [&](auto value_of) {
    for (std::int64_t i = 0; i < count; ++i) store(i, value_of(counter_hash(of.seed, of.stream, static_cast<std::uint64_t>(first + i))));
  };
  const std::int64_t words = words_of(of.dtype);
  if (of.below > 0)
    for (std::int64_t i = 0; i < count; ++i) store(i, word_holding(of, (first + i) % words == 0 ? whole_number_of(of, first + i) : 0));
  else if (of.dtype == DType::s32)
    for (std::int64_t i = 0; i < count; ++i) store(i, std::bit_cast<float>(s32_of(of, first + i)));
  else if (of.filling == Filling::integers)
    each([range = of.range](std::uint64_t hash) { return integer_of(hash, range); });
  else if (of.filling == Filling::arange)
    for (std::int64_t i = 0; i < count; ++i) store(i, (first + i) % words == 0 ? static_cast<float>((first + i) / words) : 0.0F);
  else if (of.filling == Filling::ones)
    for (std::int64_t i = 0; i < count; ++i) store(i, (first + i) % words == 0 ? 1.0F : 0.0F);
  else if (of.dtype == DType::s8)
    each([range = of.s8_range](std::uint64_t hash) { return integer_of(hash, range); });
  else if (const DType carried = carried_in(of.filling, of.dtype); is_narrow(carried))
    each([carried](std::uint64_t hash) { return stored_in(carried, fraction_of(hash)); });
  else if (of.filling == Filling::positive)
    each([](std::uint64_t hash) { return std::abs(fraction_of(hash)); });
  else
    each(fraction_of);
}

bool adds_up(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce;
}

/// Whether no two positions along the axes hold the same part of the tensor.
bool is_sharded_over(const Buffer& buffer, const std::vector<AxisView>& axes) {
  return std::all_of(axes.begin(), axes.end(), [&](const AxisView& axis) {
    return std::any_of(buffer.sharding.begin(), buffer.sharding.end(),
                       [&](const std::vector<AxisView>& views) { return std::find(views.begin(), views.end(), axis) != views.end(); });
  });
}

/// The buffer dimensions [first, first + dims) that stand for one dimension of the tensor.
struct DimensionGroup {
  std::size_t first = 0, dims = 1;
};
std::vector<DimensionGroup> groups_of(const Buffer& buffer) {
  std::vector<DimensionGroup> groups;
  std::size_t first = 0;
  for (std::size_t t = 0; t < buffer.unpadded.size(); first += groups[t++].dims)
    groups.push_back({first, buffer.grouped.empty() ? 1 : static_cast<std::size_t>(buffer.grouped[t])});
  PODSIM_ASSERT(first == buffer.extents.size());
  return groups;
}

}  // namespace

Layout shard_layout(const Mesh& mesh, const Buffer& buffer, DeviceId device) {
  const std::size_t rank = buffer.extents.size();
  PODSIM_ASSERT(rank <= static_cast<std::size_t>(max_rank) && buffer.sharding.size() == rank);
  BoxExtents extents{}, begin{};
  for (std::size_t i = 0; i < rank; ++i) {
    std::int64_t shards = 1;
    for (const AxisView& axis : buffer.sharding[i]) shards *= axis.size;
    extents[i] = buffer.extents[i] * shards;
    begin[i] = buffer.extents[i] * position_along(mesh, buffer.sharding[i], device);
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

std::int64_t data_elements(const Buffer& buffer) {
  if (buffer.unpadded.empty()) return global_elements(buffer);
  std::int64_t count = 1;
  for (const std::int64_t extent : buffer.unpadded) count = saturating_multiply(count, extent);
  return count;
}

ShardData data_of_shard(const Mesh& mesh, const Buffer& buffer, DeviceId device) {
  if (buffer.unpadded.empty()) return {contiguous(size_of(buffer).count() / size_of(buffer.dtype).count()), shard_layout(mesh, buffer, device)};
  const std::size_t rank = buffer.extents.size();
  PODSIM_ASSERT(rank <= static_cast<std::size_t>(max_rank));
  BoxExtents zero{};
  Layout in_tensor;
  in_tensor.rank = static_cast<int>(rank);
  std::int64_t stride = 1;
  const std::vector<DimensionGroup> groups = groups_of(buffer);
  for (std::size_t t = groups.size(); t-- > 0; stride *= buffer.unpadded[t]) {
    const auto [first, dims] = groups[t];
    const auto put = [&, first = first](std::size_t d, std::int64_t length, std::int64_t step) {
      in_tensor.length[first + d] = length;
      in_tensor.stride[first + d] = step * stride;
    };
    if (dims == 1) {
      const std::int64_t begin = std::min(buffer.extents[first] * position_along(mesh, buffer.sharding[first], device), buffer.unpadded[t]);
      put(0, std::min(buffer.extents[first], buffer.unpadded[t] - begin), 1);
      in_tensor.offset += begin * stride;
      continue;
    }
    std::int64_t block = 1, shards = 1;
    for (std::size_t d = dims; d-- > 2; block *= buffer.extents[first + d]) put(d, buffer.extents[first + d], block);
    for (const AxisView& axis : buffer.sharding[first + 1]) shards *= axis.size;
    const std::int64_t blocks = buffer.unpadded[t] / block, own = position_along(mesh, buffer.sharding[first + 1], device);
    put(0, own < blocks ? (blocks - own + shards - 1) / shards : 0, shards * block);
    put(1, 1, block);
    in_tensor.offset += own * block * stride;
  }
  return {box_of(buffer.extents, std::span{zero}.first(rank), std::span{in_tensor.length}.first(rank)), in_tensor};
}

namespace {

/// Of the sum that a collective makes; 1 if it makes none.
std::int64_t terms_of(const Computes& computes) {
  std::int64_t terms = 1;
  if (const auto* collective = std::get_if<Collective>(&computes); collective != nullptr && adds_up(collective->kind))
    for (const AxisView& axis : collective->axes) terms = saturating_multiply(terms, axis.size);
  return terms;
}

}  // namespace

std::int64_t integer_range(const Computes& computes, const Mesh& mesh) {
  if (const auto* reference = std::get_if<ReferenceProgram>(&computes)) return exact_range(*reference, mesh).range;
  if (std::holds_alternative<Collective>(computes)) return std::max<std::int64_t>(1, exact_integers / terms_of(computes));
  const auto* products = std::get_if<Products>(&computes);
  if (products == nullptr || products->empty()) return 8;
  std::int64_t longest = 1;
  for (const Product& product : *products) longest = std::max(longest, product.k);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::sqrt(static_cast<double>(exact_integers / longest))));
}

InputMaker::InputMaker(const Schedule& lowered, std::uint64_t seed, Filling filling, Cancellation stop, const GivenTensors* given)
    : mesh_{lowered.mesh},
      seed_{seed},
      filling_{filling},
      range_{static_cast<std::uint64_t>(integer_range(lowered.computes, lowered.mesh))},
      s8_range_{static_cast<std::uint64_t>(std::max<std::int64_t>(1, largest_s8 / terms_of(lowered.computes)))},
      stop_{stop},
      given_{given} {
  if (const auto* program = std::get_if<ReferenceProgram>(&lowered.computes))
    for (const ReferenceNode& node : program->nodes)
      if (node.kind == ReferenceKind::input && node.below > 0) below_.emplace(node.tensor, node.below);
  const auto* collective = std::get_if<Collective>(&lowered.computes);
  if (collective == nullptr) return;
  const Buffer& input = lowered.programs[0].buffers[collective->input.buffer.index()];
  if (input.role != Role::input || is_sharded_over(input, collective->axes)) return;
  apart_ = collective;
  tensor_ = &input.tensor;
}

std::uint64_t InputMaker::stream_on(DeviceId device, const Buffer& buffer) const {
  const std::uint64_t stream = stream_of(buffer.tensor);
  if (apart_ == nullptr || buffer.tensor != *tensor_) return stream;
  return counter_hash(stream, position_stream, static_cast<std::uint64_t>(position_along(mesh_, apart_->axes, device)));
}

std::int64_t InputMaker::below(const Buffer& buffer) const {
  const auto found = below_.find(buffer.tensor);
  return found == below_.end() ? 0 : found->second;
}

void InputMaker::fill_shard(const Buffer& buffer, DeviceId device, float* out) const {
  const ShardData data = data_of_shard(mesh_, buffer, device);
  if (given_ != nullptr) {
    const auto tensor = given_->find(buffer.tensor);
    PODSIM_ASSERT(tensor != given_->end());
    return cut_shard(buffer, data, tensor->second, out);
  }
  if (!buffer.unpadded.empty()) return fill_data(buffer, data, stream_on(device, buffer), out);
  const Layout layout = in_words(data.in_tensor, buffer.dtype);
  const Elements of{seed_, stream_on(device, buffer), range_, s8_range_, filling_, buffer.dtype, below(buffer)};
  constexpr std::int64_t piece = 1 << 16;
  for_each_run<1>({&layout}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
    const std::int64_t step = at[0].stride();
    for (std::int64_t done = 0; done < count && !stop_.requested(); done += piece) {
      const std::int64_t here = std::min(piece, count - done), first = at[0].offset() + done * step;
      float* const to = out + done;
      if (step == 1) {
        generate(of, first, here, [to](std::int64_t i, float value) { to[i] = value; });
      } else {  // a shard of width 1: every run is of spaced elements
        for (std::int64_t i = 0; i < here; ++i) generate(of, first + i * step, 1, [&](std::int64_t, float value) { to[i] = value; });
      }
    }
    out += count;
  });
}

void InputMaker::cut_shard(const Buffer& buffer, const ShardData& data, const std::vector<float>& tensor, float* out) const {
  std::fill_n(out, words_in(buffer), 0.0F);
  const DType carried = carried_in(filling_, buffer.dtype);
  const Layout in_tensor = in_words(data.in_tensor, buffer.dtype), in_buffer = in_words(data.in_buffer, buffer.dtype);
  for_each_run<2>({&in_tensor, &in_buffer}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
    for (std::int64_t i = 0; i < count && !stop_.requested(); ++i) {
      const float value = tensor[static_cast<std::size_t>(at[0].offset() + i * at[0].stride())];
      out[at[1].offset() + i * at[1].stride()] = stored_in(carried, value);
    }
  });
}

void InputMaker::fill_data(const Buffer& buffer, const ShardData& data, std::uint64_t stream, float* out) const {
  std::fill_n(out, words_in(buffer), 0.0F);
  const Elements of{seed_, stream, range_, s8_range_, filling_, buffer.dtype, below(buffer)};
  const Layout in_tensor = in_words(data.in_tensor, buffer.dtype), in_buffer = in_words(data.in_buffer, buffer.dtype);
  for_each_run<2>({&in_tensor, &in_buffer}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
    for (std::int64_t i = 0; i < count && !stop_.requested(); ++i)
      generate(of, at[0].offset() + i * at[0].stride(), 1, [&](std::int64_t, float value) { out[at[1].offset() + i * at[1].stride()] = value; });
  });
}

void InputMaker::prepare_buffer(const Buffer& buffer, DeviceId device, float* out) const {
  if (buffer.role == Role::input) return fill_shard(buffer, device, out);
  std::fill_n(out, words_in(buffer), std::numeric_limits<float>::quiet_NaN());
}

std::vector<double> InputMaker::global_tensor(const Buffer& buffer, bool padded, ThreadPool& pool) const {
  PODSIM_ASSERT(apart_ == nullptr);
  const Elements of{seed_, stream_of(buffer.tensor), range_, s8_range_, filling_, buffer.dtype, below(buffer)};
  const std::int64_t words = words_of(buffer.dtype), elements = words * data_elements(buffer);
  std::vector<double> values(static_cast<std::size_t>(elements));
  constexpr std::int64_t piece = 1 << 16;
  pool.for_each(static_cast<std::size_t>((elements + piece - 1) / piece), [&](std::size_t p, std::size_t) {
    if (stop_.requested()) return;
    const std::int64_t first = static_cast<std::int64_t>(p) * piece;
    double* out = values.data() + first;
    generate(of, first, std::min(piece, elements - first), [&](std::int64_t i, float value) { out[i] = number_in(value, buffer.dtype); });
  });
  if (!padded || buffer.unpadded.empty()) return values;
  const std::vector<DimensionGroup> groups = groups_of(buffer);
  BoxExtents extents{}, zero{};
  for (std::size_t t = 0; t < groups.size(); ++t) {
    extents[t] = 1;
    for (std::size_t i = groups[t].first; i < groups[t].first + groups[t].dims; ++i) {
      extents[t] *= buffer.extents[i];
      for (const AxisView& axis : buffer.sharding[i]) extents[t] *= axis.size;
    }
  }
  std::vector<double> whole(static_cast<std::size_t>(words * global_elements(buffer)), 0.0);
  const Layout box = in_words(box_of(std::span{extents}.first(groups.size()), std::span{zero}.first(groups.size()), buffer.unpadded), words);
  auto next = values.begin();
  for_each_run<1>({&box}, [&](std::int64_t count, const std::array<RunCursor, 1>& at) {
    for (std::int64_t i = 0; i < count; ++i) whole[static_cast<std::size_t>(at[0].offset() + i * at[0].stride())] = *next++;
  });
  return whole;
}

}  // namespace podsim
