#include "workloads/hlo_values/strided.hpp"

namespace podsim {

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * (dims[d] > 0 ? dims[d] : 1);
  return strides;
}

std::int64_t offset_of(const std::vector<std::int64_t>& index, const std::vector<std::int64_t>& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

HloArray strided(const HloArray& source, std::vector<std::int64_t> dims, std::int64_t base, const std::vector<std::int64_t>& strides) {
  HloArray result = zeros(source.type, std::move(dims));
  std::size_t to = 0;
  if (is_float(source.type))
    for_each_offset(result.dims, strides, base, [&](std::int64_t from) { result.reals[to++] = source.reals[static_cast<std::size_t>(from)]; });
  else
    for_each_offset(result.dims, strides, base, [&](std::int64_t from) { result.integers[to++] = source.integers[static_cast<std::size_t>(from)]; });
  return result;
}

void put_strided(HloArray& target, std::int64_t base, const std::vector<std::int64_t>& strides, const HloArray& source) {
  std::size_t from = 0;
  if (is_float(source.type))
    for_each_offset(source.dims, strides, base, [&](std::int64_t to) { target.reals[static_cast<std::size_t>(to)] = source.reals[from++]; });
  else
    for_each_offset(source.dims, strides, base, [&](std::int64_t to) { target.integers[static_cast<std::size_t>(to)] = source.integers[from++]; });
}

HloArray transposed(const HloArray& source, const std::vector<std::int64_t>& order) {
  const std::vector<std::int64_t> strides = row_major_strides(source.dims);
  std::vector<std::int64_t> dims, moved;
  for (const std::int64_t d : order) {
    dims.push_back(source.dims[static_cast<std::size_t>(d)]);
    moved.push_back(strides[static_cast<std::size_t>(d)]);
  }
  return strided(source, std::move(dims), 0, moved);
}

bool is_permutation_of(const std::vector<std::int64_t>& order, std::size_t rank) {
  if (order.size() != rank) return false;
  std::vector<bool> seen(rank, false);
  for (const std::int64_t d : order) {
    if (d < 0 || static_cast<std::size_t>(d) >= rank || seen[static_cast<std::size_t>(d)]) return false;
    seen[static_cast<std::size_t>(d)] = true;
  }
  return true;
}

}  // namespace podsim
