// Sums of products of matrices, which dots and convolutions are made of. Internal.
#pragma once

#include <vector>

#include "workloads/hlo_values/array_operation.hpp"

namespace podsim {

/// Whether numbers of these types have products of that one: whole numbers also real ones, truths also a truth (whether any pair is true), none of them complex.
bool has_products(HloType a, HloType b, HloType result);

/// An operand, as real numbers if those of the result are, with their absolute values beside it.
class ProductFactors {
 public:
  ProductFactors(HloArray array, HloType result);
  [[nodiscard]] const HloArray& array() const { return array_; }
  [[nodiscard]] const std::vector<double>& absolutes() const { return absolutes_; }

 private:
  HloArray array_;
  std::vector<double> absolutes_;
};

/// A matrix within an array: element (i, j) at first + i * stride + j.
struct ProductOperand {
  const ProductFactors* factors = nullptr;
  std::size_t first = 0, stride = 0;
};

/// result [rows, columns] += a [rows, inner] * b [inner, columns]
struct ProductExtents {
  std::int64_t rows = 0, columns = 0, inner = 0;
};

/// The result of a dot or a convolution while its products are added up, with the sums of absolute values beside it.
class ProductSum {
 public:
  ProductSum(const ArrayOperation& operation, HloType type, std::size_t elements);
  /// Adds a product to the elements first + i * stride + j. Partial sums are perturbed as in f32, since hardware adds in that.
  void add(const ProductOperand& a, const ProductOperand& b, std::size_t first, std::size_t stride, const ProductExtents& extents);
  HloArray result(std::vector<std::int64_t> dims);

 private:
  const ArrayOperation& operation_;
  HloType type_;
  bool is_real_;
  std::vector<double> reals_, absolutes_;
  std::vector<std::uint64_t> integers_;
};

}  // namespace podsim
