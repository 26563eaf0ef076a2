// What the parts of the interpreter share: an operation on arrays with its operands, bounds, and the treatment of real results. Internal.
#pragma once

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/rng.hpp"
#include "workloads/hlo_values/evaluate.hpp"

namespace podsim {

/// Steps that may still be made.
class HloBudget {
 public:
  HloBudget(std::int64_t steps, Cancellation stop) : left_{steps}, stop_{stop} {}
  /// False where they are used up; then nothing more may be done.
  bool spend(std::int64_t steps) {
    if (steps < 0 || steps > left_) return left_ = 0, false;
    left_ -= steps;
    return true;
  }
  [[nodiscard]] bool cancelled() const { return stop_.requested(); }

 private:
  std::int64_t left_;
  Cancellation stop_;
};

/// An operation whose operands and results are arrays.
struct ArrayOperation {
  using Call = std::function<Expected<HloArrays>(const HloComputation&, const std::vector<const HloArray*>&)>;

  const HloModule& module;
  const HloComputation& computation;
  const HloInstruction& instruction;
  const std::vector<const HloArray*>& operands;
  HloArithmetic& arithmetic;
  HloBudget& budget;
  const Call& call;  // runs a computation on arrays, on the same device

  [[nodiscard]] const HloAttributes& attributes() const { return *instruction.attributes; }
  [[nodiscard]] const HloShape& shape() const { return *instruction.shape; }
  [[nodiscard]] const HloArray& operand(std::size_t i) const { return *operands[i]; }
  /// As its instruction has it, with the layout.
  [[nodiscard]] const HloShape& operand_shape(std::size_t i) const {
    return *computation.instructions[static_cast<std::size_t>(instruction.operands[i])].shape;
  }
  /// `NAME: message` at the instruction.
  [[nodiscard]] Diagnostic error(const std::string& message) const;
  [[nodiscard]] Diagnostic not_interpreted() const;
  /// Errors: another number of operands.
  [[nodiscard]] Status takes(std::size_t count) const;
  /// Errors: too many; cancellation.
  [[nodiscard]] Status spend(std::int64_t steps) const;
  [[nodiscard]] Status spend(double steps) const;  // of a product that may pass 2^63
};

/// Paddings, strides, dilations and sizes of windows up to this: their products with extents of arrays fit into 64 bits.
inline constexpr std::int64_t largest_window = std::int64_t{1} << 31;
bool is_sane(const HloWindowDimension& window);

/// Several operations on one device, by opcode. Each returns its results, whose types and dimensions the caller compares with the shape.
Expected<HloArrays> elementwise_operation(const ArrayOperation& operation);
Expected<HloArrays> complex_operation(const ArrayOperation& operation);  // elementwise ones, with complex operands or results
Expected<HloArrays> transform_operation(const ArrayOperation& operation);
/// A dot or convolution of complex numbers: `real` makes that of their parts.
Expected<HloArrays> complex_product(const ArrayOperation& operation, Expected<HloArrays> (*real)(const ArrayOperation&));
Expected<HloArrays> move_operation(const ArrayOperation& operation);
Expected<HloArrays> bitcast_operation(const ArrayOperation& operation);
/// The operands behind each other in memory, seen as one array of the result's type and layout: a bitcast of several.
Expected<HloArrays> memory_operation(const ArrayOperation& operation);
Expected<HloArrays> dot_operation(const ArrayOperation& operation);
Expected<HloArrays> ragged_dot_operation(const ArrayOperation& operation);
Expected<HloArrays> convolution_operation(const ArrayOperation& operation);
/// What a convolution computes of its input, kernel and output, from the other two: the gradients have the attributes of the convolution that they are of.
enum class Convolved : std::uint8_t { output, input, kernel };
/// a, b: input and kernel; gradient of the output and kernel; input and gradient of the output.
Expected<HloArray> convolve(const ArrayOperation& operation, Convolved makes, const HloArray& a, const HloArray& b, const HloShape& shape);
/// A custom-call of a library whose values are known: nullptr for other targets.
using LibraryCall = Expected<HloArrays> (*)(const ArrayOperation& operation);
LibraryCall library_call(std::string_view target);
Expected<HloArrays> reduce_operation(const ArrayOperation& operation);
Expected<HloArrays> reduce_window_operation(const ArrayOperation& operation);
Expected<HloArrays> select_and_scatter_operation(const ArrayOperation& operation);
Expected<HloArrays> map_operation(const ArrayOperation& operation);
Expected<HloArrays> sort_operation(const ArrayOperation& operation);
Expected<HloArrays> gather_operation(const ArrayOperation& operation);
Expected<HloArrays> scatter_operation(const ArrayOperation& operation);

/// A real value was made without rounding.
inline double made(HloArithmetic& arithmetic, double value) {
  if (arithmetic.integral && value != std::floor(value)) arithmetic.integral = false;  // also NaN
  return value;
}

/// The nearest number of a floating-point type, ties to even; beyond its largest one an infinity, NaN in types of 8 bits. Other types and f64: the value.
double nearest(HloType type, double value);

/// Beyond the largest number of float32, whatever roundings made of that one: masks are made with it.
constexpr double beyond_f32 = 0x1.01p128;

/// The least normal number of float32 and bf16. Roundings make 0 of what is smaller, as processors do, so that what differs in float64 may be equal.
constexpr double least_normal_f32 = 0x1p-126;

/// A real value of a type was made by an operation that rounds.
inline double rounded(HloArithmetic& arithmetic, HloType type, double value) {
  if (arithmetic.round_8_bits && bits_of(type) == 8) return made(arithmetic, nearest(type, value));
  if (arithmetic.perturb_seed && std::isfinite(value)) {  // an infinity, as of a mask, is exact
    const int bits = bits_of(type);
    const double off = value * (bits <= 16 && !arithmetic.narrow_as_f32 ? (bits <= 8 ? 0x1p-4 : 0x1p-9) : bits == 64 ? 0x1p-53 : 0x1p-24);
    // A branch on a random bit would be guessed wrong every other time.
    const std::uint64_t down = ~counter_hash(*arithmetic.perturb_seed, 0, arithmetic.results++) << 63;
    value += std::bit_cast<double>(std::bit_cast<std::uint64_t>(off) ^ down);
    if (std::abs(value) > beyond_f32 && bits < 64) value = std::copysign(std::numeric_limits<double>::infinity(), value);
    if (std::abs(value) < least_normal_f32 && bits < 64) value = std::copysign(0.0, value);
  }
  return made(arithmetic, value);
}

/// A sum with this sum of absolute values of its terms was made.
inline void note_sum(HloArithmetic& arithmetic, double absolutes) {
  if (absolutes > arithmetic.largest_sum && std::isfinite(absolutes)) arithmetic.largest_sum = absolutes;
}
inline double finite_or_zero(double value) { return std::isfinite(value) ? value : 0.0; }

}  // namespace podsim
