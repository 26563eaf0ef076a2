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
  const auto take = [&](auto& into, const auto& values) {
    std::size_t to = 0;
    if (!values.empty()) for_each_offset(result.dims, strides, base, [&](std::int64_t from) { into[to++] = values[static_cast<std::size_t>(from)]; });
  };
  take(result.integers, source.integers);
  take(result.reals, source.reals);
  take(result.imaginaries, source.imaginaries);
  return result;
}

void put_strided(HloArray& target, std::int64_t base, const std::vector<std::int64_t>& strides, const HloArray& source) {
  const auto put = [&](auto& into, const auto& values) {
    std::size_t from = 0;
    if (!values.empty()) for_each_offset(source.dims, strides, base, [&](std::int64_t to) { into[static_cast<std::size_t>(to)] = values[from++]; });
  };
  put(target.integers, source.integers);
  put(target.reals, source.reals);
  put(target.imaginaries, source.imaginaries);
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
