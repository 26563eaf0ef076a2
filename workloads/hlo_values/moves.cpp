// Operations that only move values: broadcasts, transposes, slices, updates, concatenations, paddings; constants and iotas.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "workloads/hlo_values/array_operation.hpp"
#include "workloads/hlo_values/strided.hpp"

namespace podsim {

namespace {

using Word = HloOpcode;
using Dims = std::vector<std::int64_t>;

Expected<HloArrays> constant(const ArrayOperation& operation) {
  const HloLiteral& literal = operation.attributes().literal;
  const HloShape& shape = operation.shape();
  if (literal.kind == HloLiteral::Kind::elided) return operation.error("the value of this constant is not in the text: it was elided as {...}");
  if (literal.kind != HloLiteral::Kind::values)
    return operation.error("the value of this constant was not read: it is a tuple or has more than 2^20 numbers");
  HloArray array{shape.type, shape.dims, {}, literal.reals};
  if (is_complex(shape.type)) {  // pairs
    array = zeros(shape.type, shape.dims);
    for (std::size_t i = 0; i < array.reals.size(); ++i) array.reals[i] = literal.reals[2 * i], array.imaginaries[i] = literal.reals[2 * i + 1];
  }
  for (const std::int64_t value : literal.integers) array.integers.push_back(wrapped(shape.type, static_cast<std::uint64_t>(value)));
  // The text has as few digits as tell the number from its neighbours.
  const HloType part = is_complex(shape.type) && bits_of(shape.type) == 64 ? HloType::f32 : shape.type;
  for (std::vector<double>* values : {&array.reals, &array.imaginaries})
    for (double& value : *values) value = made(operation.arithmetic, nearest(part, value));
  return HloArrays{std::move(array)};
}

Expected<HloArrays> iota(const ArrayOperation& operation) {
  const HloShape& shape = operation.shape();
  const Dims& dimension = operation.attributes().dimensions;
  if (dimension.size() != 1 || to_size(dimension[0]) >= shape.rank())
    return operation.error("expected one iota_dimension, a dimension of the result");
  HloArray result = zeros(shape.type, shape.dims);
  Dims strides(shape.rank(), 0);
  strides[to_size(dimension[0])] = 1;
  std::size_t to = 0;
  for_each_offset(shape.dims, strides, 0, [&](std::int64_t value) {
    if (has_reals(shape.type))
      result.reals[to++] = static_cast<double>(value);
    else
      result.integers[to++] = wrapped(shape.type, static_cast<std::uint64_t>(value));
  });
  return HloArrays{std::move(result)};
}

/// Dimension i of the operand is dimension dimensions[i] of the result.
Expected<HloArrays> broadcast(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  const HloShape& shape = operation.shape();
  const Dims& dimensions = operation.attributes().dimensions;
  if (dimensions.size() != x.dims.size())
    return operation.error(fmt::format("expected a dimension of the result for each of {}, got {}", short_text(x), dimensions.size()));
  const Dims strides = row_major_strides(x.dims);
  Dims moved(shape.rank(), 0);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const std::size_t d = to_size(dimensions[i]);
    if (d >= shape.rank() || (x.dims[i] != shape.dims[d] && x.dims[i] != 1))
      return operation.error(fmt::format("expected dimension {} of {} to be dimension {} of {}", i, short_text(x), d, short_text(shape)));
    moved[d] += x.dims[i] == 1 ? 0 : strides[i];
  }
  for (std::size_t i = 0; i < dimensions.size(); ++i)
    if (std::count(dimensions.begin(), dimensions.end(), dimensions[i]) > 1) return operation.error("expected each dimension of the result once");
  return HloArrays{strided(x, shape.dims, 0, moved)};
}

Expected<HloArrays> reshape(const ArrayOperation& operation) {
  if (operation.operands.size() != 1) return operation.not_interpreted();  // with sizes that are computed
  const HloArray& x = operation.operand(0);
  if (elements_of(operation.shape()) != elements_of(x))
    return operation.error(fmt::format("expected as many elements as {} has, got {}", short_text(x), short_text(operation.shape())));
  HloArray result = x;
  result.dims = operation.shape().dims;
  return HloArrays{std::move(result)};
}

Expected<HloArrays> transpose(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  if (!is_permutation_of(operation.attributes().dimensions, x.dims.size()))
    return operation.error(fmt::format("expected the dimensions of {}, each once", short_text(x)));
  return HloArrays{transposed(x, operation.attributes().dimensions)};
}

Expected<HloArrays> reverse(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  Dims strides = row_major_strides(x.dims);
  std::int64_t base = 0;
  for (std::size_t d = 0; d < x.dims.size(); ++d) {
    const Dims& reversed = operation.attributes().dimensions;
    if (std::find(reversed.begin(), reversed.end(), static_cast<std::int64_t>(d)) == reversed.end() || x.dims[d] == 0) continue;
    base += (x.dims[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return HloArrays{strided(x, x.dims, base, strides)};
}

Expected<HloArrays> slice(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  const auto& extents = operation.attributes().slice;
  if (extents.size() != x.dims.size()) return operation.error(fmt::format("expected an extent for each dimension of {}", short_text(x)));
  Dims strides = row_major_strides(x.dims), dims;
  std::int64_t base = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const HloSliceExtent& extent = extents[d];
    if (extent.limit > x.dims[d]) return operation.error(fmt::format("expected extents within {}", short_text(x)));
    dims.push_back((extent.limit - extent.start + extent.stride - 1) / extent.stride);
    base += extent.start * strides[d];
    strides[d] = dims[d] > 1 ? strides[d] * extent.stride : 0;  // the stride may be larger than the array
  }
  return HloArrays{strided(x, std::move(dims), base, strides)};
}

/// The starts of a dynamic slice of `sizes`, from operand `first` on: scalars or one vector, clamped so that the slice lies within `dims`.
Expected<Dims> clamped_starts(const ArrayOperation& operation, std::size_t first, const Dims& dims, const Dims& sizes) {
  std::vector<std::pair<HloType, std::int64_t>> given;
  for (std::size_t i = first; i < operation.operands.size(); ++i) {
    const HloArray& index = operation.operand(i);
    if (!is_integer(index.type) || index.dims.size() > 1)
      return operation.error(fmt::format("expected integers as indices, got {}", short_text(index)));
    for (const std::int64_t value : index.integers) given.emplace_back(index.type, value);
  }
  if (given.size() != dims.size() || sizes.size() != dims.size())
    return operation.error(fmt::format("expected {} indices and sizes, got {} and {}", dims.size(), given.size(), sizes.size()));
  Dims starts;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (sizes[d] > dims[d]) return operation.error("expected a slice that is no larger than the array");
    const auto [type, value] = given[d];
    const std::int64_t last = dims[d] - sizes[d];
    const bool beyond = is_unsigned(type) ? static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(last) : value > last;
    starts.push_back(beyond ? last : std::max<std::int64_t>(value, 0));
  }
  return starts;
}

Expected<HloArrays> dynamic_slice(const ArrayOperation& operation) {
  if (operation.operands.empty()) return operation.takes(2).error();
  const HloArray& x = operation.operand(0);
  const Dims& sizes = operation.attributes().dynamic_slice_sizes;
  const auto starts = clamped_starts(operation, 1, x.dims, sizes);
  if (!starts) return starts.error();
  const Dims strides = row_major_strides(x.dims);
  return HloArrays{strided(x, sizes, offset_of(*starts, strides), strides)};
}

Expected<HloArrays> dynamic_update_slice(const ArrayOperation& operation) {
  if (operation.operands.size() < 2) return operation.takes(3).error();
  const HloArray &x = operation.operand(0), &update = operation.operand(1);
  if (!mixes(update.type, x.type)) return operation.error("expected an update of the type of the array");
  const auto starts = clamped_starts(operation, 2, x.dims, update.dims);
  if (!starts) return starts.error();
  const Dims strides = row_major_strides(x.dims);
  HloArray result = x;
  put_strided(result, offset_of(*starts, strides), strides, update);
  return HloArrays{std::move(result)};
}

Expected<HloArrays> concatenate(const ArrayOperation& operation) {
  const Dims& dimension = operation.attributes().dimensions;
  if (operation.operands.empty() || dimension.size() != 1 || to_size(dimension[0]) >= operation.operand(0).dims.size())
    return operation.error("expected operands and one dimension of theirs");
  const std::size_t along = to_size(dimension[0]);
  Dims dims = operation.operand(0).dims;
  dims[along] = 0;
  for (const HloArray* part : operation.operands) {
    Dims other = part->dims;
    if (other.size() == dims.size()) other[along] = dims[along];
    if (other != dims || !mixes(part->type, operation.operand(0).type))
      return operation.error(fmt::format("expected operands that differ in dimension {} alone, got {}", along, short_text(*part)));
    dims[along] += part->dims[along];
  }
  if (dims != operation.shape().dims)
    return operation.error(fmt::format("expected a result that holds all operands, got {}", short_text(operation.shape())));
  const Dims strides = row_major_strides(dims);
  HloArray result = zeros(operation.operand(0).type, dims);
  std::int64_t start = 0;
  for (const HloArray* part : operation.operands) {
    put_strided(result, start * strides[along], strides, *part);
    start += part->dims[along];
  }
  return HloArrays{std::move(result)};
}

/// Padding may be negative: elements that it cuts off are left out.
Expected<HloArrays> pad(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(2); !ok) return ok.error();
  const HloArray &x = operation.operand(0), &value = operation.operand(1);
  const auto& padding = operation.attributes().padding;
  if (padding.size() != x.dims.size() || !mixes(value.type, x.type) || !value.dims.empty())
    return operation.error("expected a padding for each dimension and a scalar of the type of the array");
  const HloShape& shape = operation.shape();
  Dims dims, kept, from(x.dims.size(), 0);
  std::int64_t base = 0, source = 0;
  for (std::size_t d = 0; d < padding.size(); ++d) {
    const auto [low, high, interior] = padding[d];
    if (std::max({std::abs(low), std::abs(high), interior}) > largest_window) return operation.error("expected paddings of at most 2^31");
    const std::int64_t spread = x.dims[d] == 0 ? 0 : (x.dims[d] - 1) * (interior + 1) + 1;
    dims.push_back(low + spread + high);
    if (dims[d] < 0) return operation.error("expected a padding that leaves no negative dimension");
    // Elements first .. last-1 come to low + i * (interior + 1) within the result.
    const std::int64_t first = low < 0 ? (-low + interior) / (interior + 1) : 0;
    std::int64_t last = dims[d] - low <= 0 ? 0 : (dims[d] - low - 1) / (interior + 1) + 1;
    last = std::min(last, x.dims[d]);
    kept.push_back(std::max<std::int64_t>(last - first, 0));
    from[d] = first;
  }
  if (dims != shape.dims)
    return operation.error(fmt::format("expected a shape as the padding of {} makes it, got {}", short_text(x), short_text(shape)));
  HloArray result = strided(value, dims, 0, Dims(dims.size(), 0));
  const Dims strides = row_major_strides(x.dims), row_major = row_major_strides(dims);
  if (std::find(kept.begin(), kept.end(), 0) != kept.end()) return HloArrays{std::move(result)};
  Dims spread(dims.size(), 0);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    source += from[d] * strides[d];
    base += (padding[d].low + from[d] * (padding[d].interior + 1)) * row_major[d];
    spread[d] = kept[d] > 1 ? (padding[d].interior + 1) * row_major[d] : 0;
  }
  put_strided(result, base, spread, strided(x, kept, source, strides));
  return HloArrays{std::move(result)};
}

}  // namespace

Expected<HloArrays> move_operation(const ArrayOperation& operation) {
  switch (operation.instruction.opcode) {
    case Word::constant: return constant(operation);
    case Word::iota: return iota(operation);
    case Word::broadcast: return broadcast(operation);
    case Word::reshape: return reshape(operation);
    case Word::transpose: return transpose(operation);
    case Word::reverse: return reverse(operation);
    case Word::slice: return slice(operation);
    case Word::dynamic_slice: return dynamic_slice(operation);
    case Word::dynamic_update_slice: return dynamic_update_slice(operation);
    case Word::concatenate: return concatenate(operation);
    case Word::pad: return pad(operation);
    default: return operation.not_interpreted();
  }
}

}  // namespace podsim
