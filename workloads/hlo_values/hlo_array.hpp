// The value of an HLO array on one device: whole numbers exactly, real numbers in double, whatever the HLO type rounds to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/hlo/hlo_shape.hpp"

namespace podsim {

/// Values row-major by logical dimensions: layouts do not matter to them. Whole numbers are in one list, real ones in the other, complex ones in the other two, as `type` says. Tokens and opaques
/// have neither dimensions nor values.
struct HloArray {
  HloType type = HloType::f32;
  std::vector<std::int64_t> dims{};      // none: a scalar
  std::vector<std::int64_t> integers{};  // of integer types and pred (0, 1); each within its type, u64 as its bits
  std::vector<double> reals{};           // of floating-point types; the real parts of complex ones
  std::vector<double> imaginaries{};     // of complex types
  friend bool operator==(const HloArray&, const HloArray&) = default;
};

/// Of an index or an extent that is 0 or more.
inline std::size_t to_size(std::int64_t number) { return static_cast<std::size_t>(number); }

/// A value: the leaves of its shape in the order of leaves_of() (hlo_leaves.hpp).
using HloArrays = std::vector<HloArray>;

/// Product of the dimensions; 1 of a scalar, 0 of a token. Saturates at 2^62.
std::int64_t elements_of(const HloArray& array);

/// Whether the interpreter has values for a type: pred, integers, floating-point and complex numbers.
bool has_values(HloType type);

/// The type of the parts of a complex type: f32 of c64. Other types: themselves.
HloType part_of(HloType type);
/// Whether numbers of both types may be operands of one operation: what a TPU's compiler writes mixes widths.
bool mixes(HloType a, HloType b);
/// Real numbers, and the parts of complex ones.
inline bool has_reals(HloType type) { return is_float(type) || is_complex(type); }

/// All zero. The dimensions must be 0 or more and their product small enough for memory (an assert).
HloArray zeros(HloType type, std::vector<std::int64_t> dims);
HloArray integer_array(HloType type, std::vector<std::int64_t> dims, std::vector<std::int64_t> values);  // values are wrapped
HloArray real_array(HloType type, std::vector<std::int64_t> dims, std::vector<double> values);
HloArray integer_scalar(HloType type, std::int64_t value);
HloArray real_scalar(HloType type, double value);

/// Whether the array has the type and dimensions of a shape and as many values as these say.
bool fits(const HloArray& array, const HloShape& shape);
/// "s32[4,8]"
std::string short_text(const HloArray& array);

/// A value modulo 2^width as the type holds it: sign-extended of s, zero-extended of u; pred: whether it is not 0.
std::int64_t wrapped(HloType type, std::uint64_t bits);
bool is_unsigned(HloType type);  // u and pred
/// The value of an integer element as a real number.
double real_of(HloType type, std::int64_t value);
/// Towards zero; beyond the type its nearest value; NaN is 0. To pred: whether it is not 0.
std::int64_t integer_of(HloType type, double value);

}  // namespace podsim
