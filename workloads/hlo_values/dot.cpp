// Products: dot and convolution, both as sums of products of matrices.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/engine/numeric/kernels.hpp"
#include "workloads/hlo_values/array_operation.hpp"
#include "workloads/hlo_values/products.hpp"
#include "workloads/hlo_values/strided.hpp"

namespace podsim {

namespace {

using Dims = std::vector<std::int64_t>;

std::int64_t extent(const HloArray& array, const Dims& dimensions) {
  std::int64_t product = 1;
  for (const std::int64_t d : dimensions) product *= array.dims[static_cast<std::size_t>(d)];
  return product;
}

/// Dimensions that are in neither list.
Dims others(const HloArray& array, const Dims& a, const Dims& b) {
  Dims rest;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(array.dims.size()); ++d)
    if (std::find(a.begin(), a.end(), d) == a.end() && std::find(b.begin(), b.end(), d) == b.end()) rest.push_back(d);
  return rest;
}

Dims joined(const Dims& a, const Dims& b, const Dims& c) {
  Dims all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

}  // namespace

ProductSum::ProductSum(const ArrayOperation& operation, HloType type, std::size_t elements)
    : operation_{operation}, type_{type}, is_real_{is_float(type)} {
  if (is_real_) {
    reals_.assign(elements, 0.0);
    absolutes_.assign(elements, 0.0);
  } else {
    integers_.assign(elements, 0);
  }
}

bool has_products(HloType a, HloType b, HloType result) {
  if (is_complex(a) || is_complex(b) || is_complex(result) || !has_values(a) || !has_values(b) || !has_values(result)) return false;
  return is_float(result) || (is_integer(a) && is_integer(b));
}

ProductFactors::ProductFactors(HloArray array, HloType result) : array_{std::move(array)} {
  if (is_float(result) && is_integer(array_.type)) array_.reals.assign(array_.integers.begin(), array_.integers.end());
  absolutes_.resize(array_.reals.size());
  std::transform(array_.reals.begin(), array_.reals.end(), absolutes_.begin(), [](double value) { return std::fabs(value); });
}

void ProductSum::add(const ProductOperand& a, const ProductOperand& b, std::size_t first, std::size_t stride, const ProductExtents& extents) {
  if (extents.rows == 0 || extents.columns == 0 || extents.inner == 0) return;
  if (is_real_) {
    const auto multiply = [&](const std::vector<double>& left, const std::vector<double>& right, std::vector<double>& sums) {
      multiply_add({&left[a.first], static_cast<std::int64_t>(a.stride)}, {&right[b.first], static_cast<std::int64_t>(b.stride)}, &sums[first],
                   static_cast<std::int64_t>(stride), extents.rows, extents.columns, extents.inner);
    };
    multiply(a.factors->array().reals, b.factors->array().reals, reals_);
    multiply(a.factors->absolutes(), b.factors->absolutes(), absolutes_);
    return;
  }
  const auto rows = static_cast<std::size_t>(extents.rows), columns = static_cast<std::size_t>(extents.columns),
             inner = static_cast<std::size_t>(extents.inner);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < inner; ++k) {
      const auto factor = static_cast<std::uint64_t>(a.factors->array().integers[a.first + i * a.stride + k]);
      const std::int64_t* const row = &b.factors->array().integers[b.first + k * b.stride];
      for (std::size_t j = 0; j < columns; ++j) integers_[first + i * stride + j] += factor * static_cast<std::uint64_t>(row[j]);
    }
}

HloArray ProductSum::result(Dims dims) {
  HloArray array{type_, std::move(dims), {}, {}};
  if (!is_real_) {
    array.integers.reserve(integers_.size());
    for (const std::uint64_t value : integers_) array.integers.push_back(wrapped(type_, value));
    return array;
  }
  // Partial sums round, too, as much as a sum without cancellation.
  if (operation_.arithmetic.perturb_seed)
    for (std::size_t i = 0; i < reals_.size(); ++i)
      if (std::isfinite(absolutes_[i])) reals_[i] += rounded(operation_.arithmetic, HloType::f32, absolutes_[i]) - absolutes_[i];
  for (double& value : reals_) value = rounded(operation_.arithmetic, type_, value);
  for (const double value : absolutes_) note_sum(operation_.arithmetic, value);
  array.reals = std::move(reals_);
  return array;
}

Expected<HloArrays> dot_operation(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(2); !ok) return ok.error();
  const HloArray &a = operation.operand(0), &b = operation.operand(1);
  const HloAttributes& attributes = operation.attributes();
  const HloType type = operation.shape().type;
  if (!has_products(a.type, b.type, type))
    return operation.error(fmt::format("a dot of {} and {} to {} is not interpreted", name_of(a.type), name_of(b.type), name_of(type)));
  const auto pairs = [&](const Dims& left, const Dims& right) {
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const auto l = static_cast<std::size_t>(left[i]), r = static_cast<std::size_t>(right[i]);
      if (l >= a.dims.size() || r >= b.dims.size() || a.dims[l] != b.dims[r]) return false;
    }
    return true;
  };
  const Dims rows = others(a, attributes.lhs_batch, attributes.lhs_contracting),
             columns = others(b, attributes.rhs_batch, attributes.rhs_contracting);
  const Dims order_a = joined(attributes.lhs_batch, rows, attributes.lhs_contracting),
             order_b = joined(attributes.rhs_batch, attributes.rhs_contracting, columns);
  if (!pairs(attributes.lhs_batch, attributes.rhs_batch) || !pairs(attributes.lhs_contracting, attributes.rhs_contracting) ||
      !is_permutation_of(order_a, a.dims.size()) || !is_permutation_of(order_b, b.dims.size()))
    return operation.error(fmt::format("expected batch and contracting dimensions that agree in {} and {}", short_text(a), short_text(b)));
  Dims dims;
  for (const std::int64_t d : attributes.lhs_batch) dims.push_back(a.dims[static_cast<std::size_t>(d)]);
  for (const std::int64_t d : rows) dims.push_back(a.dims[static_cast<std::size_t>(d)]);
  for (const std::int64_t d : columns) dims.push_back(b.dims[static_cast<std::size_t>(d)]);
  if (dims != operation.shape().dims) return operation.error("expected batch dimensions, free ones of the left and free ones of the right operand");

  const ProductExtents extents{extent(a, rows), extent(b, columns), extent(a, attributes.lhs_contracting)};
  const std::int64_t batch = extent(a, attributes.lhs_batch);
  const double multiplications =
      static_cast<double>(batch) * static_cast<double>(extents.rows) * static_cast<double>(extents.columns) * static_cast<double>(extents.inner);
  if (const auto ok = operation.spend(multiplications); !ok) return ok.error();
  const ProductFactors left{transposed(a, order_a), type}, right{transposed(b, order_b), type};
  ProductSum sum{operation, type, static_cast<std::size_t>(batch * extents.rows * extents.columns)};
  // In pieces, so that a long product can be cancelled.
  const double row_steps = std::max(1.0, static_cast<double>(extents.columns) * static_cast<double>(extents.inner));
  const auto piece = static_cast<std::int64_t>(std::clamp(0x1p24 / row_steps, 1.0, 0x1p24));
  for (std::int64_t i = 0; i < batch; ++i)
    for (std::int64_t row = 0; row < extents.rows; row += piece) {
      if (operation.budget.cancelled()) return cancelled_work();
      const std::int64_t first = i * extents.rows + row;
      sum.add({&left, to_size(first * extents.inner), to_size(extents.inner)},
              {&right, to_size(i * extents.inner * extents.columns), to_size(extents.columns)}, to_size(first * extents.columns),
              to_size(extents.columns), {std::min(piece, extents.rows - row), extents.columns, extents.inner});
    }
  return HloArrays{sum.result(std::move(dims))};
}

}  // namespace podsim
