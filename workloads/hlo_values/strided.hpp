// Copies between arrays along dimensions with a stride each. Internal.
#pragma once

#include <vector>

#include "workloads/hlo_values/hlo_array.hpp"

namespace podsim {

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& dims);

/// Sum of index * stride.
std::int64_t offset_of(const std::vector<std::int64_t>& index, const std::vector<std::int64_t>& strides);

/// Calls visit(base + sum of index * stride) for every index below `dims`, row-major.
template <class Visit>
void for_each_offset(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides, std::int64_t base, Visit visit) {
  for (const std::int64_t dim : dims)
    if (dim <= 0) return;
  if (dims.empty()) return visit(base);
  std::vector<std::int64_t> index(dims.size(), 0);
  const std::size_t last = dims.size() - 1;
  std::int64_t row = base;
  while (true) {
    for (std::int64_t i = 0; i < dims[last]; ++i) visit(row + i * strides[last]);
    std::size_t d = last;
    while (d > 0) {
      --d;
      row += strides[d];
      if (++index[d] < dims[d]) break;
      row -= dims[d] * strides[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (last == 0) return;
  }
}

/// result[i] = source[base + sum of i * stride]; all within the source.
HloArray strided(const HloArray& source, std::vector<std::int64_t> dims, std::int64_t base, const std::vector<std::int64_t>& strides);
/// target[base + sum of i * stride] = source[i]; all within the target, of the same type.
void put_strided(HloArray& target, std::int64_t base, const std::vector<std::int64_t>& strides, const HloArray& source);
/// Dimension i of the result is dimension order[i] of the source.
HloArray transposed(const HloArray& source, const std::vector<std::int64_t>& order);
/// Whether it lists 0 .. rank-1, each once.
bool is_permutation_of(const std::vector<std::int64_t>& order, std::size_t rank);

}  // namespace podsim
