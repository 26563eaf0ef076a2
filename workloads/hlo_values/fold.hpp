// The function of a reduction, on the elements of arrays. Internal.
#pragma once

#include <vector>

#include "workloads/hlo_values/array_operation.hpp"
#include "workloads/hlo_values/scalar_functions.hpp"

namespace podsim {

/// A computation (a0, a1, .., b0, b1, ..) -> (a0, a1, ..) of scalars that folds values b into accumulators a. One that is a single operation of two
/// numbers is applied directly.
class Fold {
 public:
  /// `call` runs the computation; it and the others must outlive this.
  Fold(const HloModule& module, const HloInstruction& instruction, const HloComputation& computation, HloType type, std::size_t count,
       HloArithmetic& arithmetic, const ArrayOperation::Call& call);

  /// accumulators[n][i] = f(accumulators[n][i], values[n][j]) of all n. Errors: those of the computation; a result of another shape.
  Status apply(std::vector<HloArray>& accumulators, std::size_t i, const std::vector<const HloArray*>& values, std::size_t j) const;
  /// Whether it adds real numbers: then sums of absolute values are noted.
  [[nodiscard]] bool is_real_sum() const { return real_ != nullptr && is_sum_; }

 private:
  Status run(std::vector<HloArray>& accumulators, std::size_t i, const std::vector<const HloArray*>& values, std::size_t j) const;

  const HloModule& module_;
  const HloInstruction& instruction_;
  const HloComputation& computation_;
  HloType type_;
  HloArithmetic& arithmetic_;
  const ArrayOperation::Call& call_;
  RealBinary real_ = nullptr;
  IntegerBinary integer_ = nullptr;
  bool swapped_ = false, is_sum_ = false, is_rounded_ = false;
};

/// Element i of an array as a scalar.
HloArray element_of(const HloArray& array, std::size_t i);
void set_element(HloArray& array, std::size_t i, const HloArray& scalar);

}  // namespace podsim
