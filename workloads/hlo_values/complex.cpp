// Complex numbers: elementwise operations, products, Fourier transforms.
#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>

#include "sim/engine/numeric/reference_linear_algebra.hpp"
#include "workloads/hlo/hlo_transform.hpp"
#include "workloads/hlo/shared_value.hpp"
#include "workloads/hlo_values/array_operation.hpp"

namespace podsim {

namespace {

using Word = HloOpcode;
using Complex = std::complex<double>;
using ComplexUnary = Complex (*)(Complex);
using ComplexBinary = Complex (*)(Complex, Complex);

Complex value_at(const HloArray& array, std::size_t i) { return {array.reals[i], array.imaginaries.empty() ? 0 : array.imaginaries[i]}; }

/// nullptr where an operation is not one of these on complex numbers.
ComplexUnary complex_unary(Word opcode) {
  switch (opcode) {
    case Word::copy:
    case Word::convert:
    case Word::reduce_precision: return [](Complex x) { return x; };
    case Word::negate: return [](Complex x) { return -x; };
    case Word::sign: return [](Complex x) { return x == Complex{} ? x : x / std::abs(x); };
    case Word::exponential: return [](Complex x) { return std::exp(x); };
    case Word::exponential_minus_one: return [](Complex x) { return Complex{std::expm1(x.real()) * std::cos(x.imag()) - 2 * std::pow(std::sin(x.imag() / 2), 2), std::exp(x.real()) * std::sin(x.imag())}; };
    case Word::log: return [](Complex x) { return std::log(x); };
    case Word::log_plus_one: return [](Complex x) { return std::log(1.0 + x); };
    case Word::logistic: return [](Complex x) { return 1.0 / (1.0 + std::exp(-x)); };
    case Word::tanh: return [](Complex x) { return std::tanh(x); };
    case Word::tan: return [](Complex x) { return std::tan(x); };
    case Word::sine: return [](Complex x) { return std::sin(x); };
    case Word::cosine: return [](Complex x) { return std::cos(x); };
    case Word::sqrt: return [](Complex x) { return std::sqrt(x); };
    case Word::rsqrt: return [](Complex x) { return 1.0 / std::sqrt(x); };
    default: return nullptr;
  }
}

ComplexBinary complex_binary(Word opcode) {
  switch (opcode) {
    case Word::add: return [](Complex a, Complex b) { return a + b; };
    case Word::subtract: return [](Complex a, Complex b) { return a - b; };
    case Word::multiply: return [](Complex a, Complex b) { return a * b; };
    case Word::divide: return [](Complex a, Complex b) { return a / b; };
    case Word::power: return [](Complex a, Complex b) { return a == Complex{} && b != Complex{} ? Complex{} : std::pow(a, b); };
    default: return nullptr;
  }
}

bool keeps_parts(Word opcode) { return opcode == Word::copy || opcode == Word::negate || opcode == Word::complex || opcode == Word::convert; }

/// A part as large as the other one may be off as much as that.
void set(const ArrayOperation& operation, HloArray& result, std::size_t i, Complex value) {
  const HloType part = part_of(result.type);
  const auto round = [&](double number) { return keeps_parts(operation.instruction.opcode) ? made(operation.arithmetic, number) : rounded(operation.arithmetic, part, number); };
  result.reals[i] = round(value.real());
  result.imaginaries[i] = round(value.imag());
  note_sum(operation.arithmetic, finite_or_zero(std::abs(value)));
}

/// A real number of each: real, imag and abs; of real numbers, too.
Expected<HloArrays> real_part(const ArrayOperation& operation) {
  const HloArray& x = operation.operand(0);
  const Word opcode = operation.instruction.opcode;
  HloArray result = zeros(part_of(x.type), x.dims);
  for (std::size_t i = 0; i < result.reals.size(); ++i) {
    const Complex value = value_at(x, i);
    result.reals[i] = opcode == Word::real   ? made(operation.arithmetic, value.real())
                      : opcode == Word::imag ? made(operation.arithmetic, value.imag())
                                             : rounded(operation.arithmetic, result.type, std::abs(value));
  }
  return HloArrays{std::move(result)};
}

Expected<HloArrays> compare_complex(const ArrayOperation& operation) {
  const HloArray &a = operation.operand(0), &b = operation.operand(1);
  const HloDirection direction = operation.attributes().direction;
  if (direction != HloDirection::eq && direction != HloDirection::ne) return operation.error("expected EQ or NE of complex numbers");
  HloArray result = zeros(HloType::pred, a.dims);
  for (std::size_t i = 0; i < result.integers.size(); ++i) result.integers[i] = (value_at(a, i) == value_at(b, i)) == (direction == HloDirection::eq) ? 1 : 0;
  return HloArrays{std::move(result)};
}

Expected<HloArrays> to_complex(const ArrayOperation& operation) {
  const HloArray& x = operation.operand(0);
  const HloType type = operation.shape().type;
  if (!is_complex(type)) return operation.not_interpreted();
  HloArray result = zeros(type, x.dims);
  for (std::size_t i = 0; i < result.reals.size(); ++i) set(operation, result, i, is_integer(x.type) ? Complex{real_of(x.type, x.integers[i])} : value_at(x, i));
  return HloArrays{std::move(result)};
}

/// One of the two arrays that complex numbers consist of, as an array of real numbers.
HloArray part_array(const HloArray& array, bool imaginary) { return {part_of(array.type), array.dims, {}, imaginary ? array.imaginaries : array.reals}; }

}  // namespace

Expected<HloArrays> complex_operation(const ArrayOperation& operation) {
  const Word opcode = operation.instruction.opcode;
  const bool takes_two = opcode == Word::complex || opcode == Word::compare || complex_binary(opcode) != nullptr;
  if (const auto ok = operation.takes(takes_two ? 2 : 1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  for (const HloArray* operand : operation.operands)
    if (operand->dims != x.dims) return operation.error(fmt::format("expected operands of one shape, got {} and {}", short_text(x), short_text(*operand)));
  if (opcode == Word::convert) return to_complex(operation);
  for (const HloArray* operand : operation.operands)
    if (!has_reals(operand->type)) return operation.not_interpreted();
  if (opcode == Word::real || opcode == Word::imag || opcode == Word::abs) return real_part(operation);
  if (opcode == Word::compare) return compare_complex(operation);
  if (!is_complex(operation.shape().type)) return operation.not_interpreted();
  HloArray result = zeros(operation.shape().type, x.dims);
  if (opcode == Word::complex) {
    for (std::size_t i = 0; i < result.reals.size(); ++i) set(operation, result, i, {x.reals[i], operation.operand(1).reals[i]});
    return HloArrays{std::move(result)};
  }
  if (const ComplexBinary function = complex_binary(opcode); function != nullptr) {
    for (std::size_t i = 0; i < result.reals.size(); ++i) set(operation, result, i, function(value_at(x, i), value_at(operation.operand(1), i)));
    return HloArrays{std::move(result)};
  }
  const ComplexUnary function = complex_unary(opcode);
  if (function == nullptr) return operation.not_interpreted();
  for (std::size_t i = 0; i < result.reals.size(); ++i) set(operation, result, i, function(value_at(x, i)));
  return HloArrays{std::move(result)};
}

Expected<HloArrays> complex_product(const ArrayOperation& operation, Expected<HloArrays> (*real)(const ArrayOperation&)) {
  if (const auto ok = operation.takes(2); !ok) return ok.error();
  if (!has_reals(operation.operand(0).type) || !has_reals(operation.operand(1).type)) return operation.not_interpreted();
  HloInstruction instruction = operation.instruction;
  HloShape shape = operation.shape();
  shape.type = part_of(shape.type);
  instruction.shape = SharedValue<HloShape>{shape};
  const HloArray &a = operation.operand(0), &b = operation.operand(1);
  const auto product = [&](bool left_imaginary, bool right_imaginary) -> Expected<HloArrays> {
    const HloArray left = part_array(a, left_imaginary), right = part_array(b, right_imaginary);
    const std::vector<const HloArray*> operands{&left, &right};
    return real({operation.module, operation.computation, instruction, operands, operation.arithmetic, operation.budget, operation.call});
  };
  HloArray result = zeros(operation.shape().type, operation.shape().dims);
  for (const bool left : {false, true})
    for (const bool right : {false, true}) {
      if ((left && !is_complex(a.type)) || (right && !is_complex(b.type))) continue;
      const auto made = product(left, right);
      if (!made) return made.error();
      const double sign = left && right ? -1 : 1;
      std::vector<double>& into = left != right ? result.imaginaries : result.reals;
      for (std::size_t i = 0; i < into.size(); ++i) into[i] += sign * made->front().reals[i];
    }
  return HloArrays{std::move(result)};
}

/// Along the last dimensions. Source: openxla/xla docs/operation_semantics.md, Fft: the inverse ones are divided by their points; RFFT leaves out the second half of the last dimension, which
/// IRFFT takes as the conjugates of the first.
Expected<HloArrays> transform_operation(const ArrayOperation& operation) {
  if (const auto ok = operation.takes(1); !ok) return ok.error();
  const HloArray& x = operation.operand(0);
  const HloShape& shape = operation.shape();
  const std::vector<std::int64_t>& lengths = operation.attributes().fft_length;
  const std::string& kind = operation.attributes().fft_type;
  const bool to_real = kind == "IRFFT", inverse = to_real || kind == "IFFT";
  const std::size_t rank = x.dims.size(), along = lengths.size();
  if (const auto wrong = transform_problem(operation.instruction, HloShape{x.type, x.dims}, shape)) return operation.error(*wrong);
  std::vector<std::int64_t> whole = x.dims;
  std::copy(lengths.begin(), lengths.end(), whole.end() - static_cast<std::ptrdiff_t>(along));
  double count = 1;
  for (const std::int64_t length : whole) count *= static_cast<double>(length);
  if (const auto ok = operation.spend(count * 8); !ok) return ok.error();  // about log2 of a length
  HloArray result = zeros(shape.type, shape.dims);
  if (count == 0 || elements_of(result) == 0) return HloArrays{std::move(result)};

  // Pairs, each row of the last dimension whole.
  const auto row = static_cast<std::size_t>(whole.back()), given_row = static_cast<std::size_t>(x.dims.back()), rows = static_cast<std::size_t>(count) / row;
  std::vector<double> pairs(2 * rows * row);
  double absolutes = 0;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < given_row; ++i) {
      const Complex value = value_at(x, r * given_row + i);
      pairs[2 * (r * row + i)] = value.real(), pairs[2 * (r * row + i) + 1] = value.imag();
      absolutes = std::max(absolutes, finite_or_zero(std::abs(value)));
    }
  Extents extents(whole.begin(), whole.end());
  std::vector<int> outer, last{static_cast<int>(rank) - 1};
  for (std::size_t d = rank - along; d + 1 < rank; ++d) outer.push_back(static_cast<int>(d));
  if (to_real) {
    // The other dimensions first: then each row is that of real numbers.
    if (!outer.empty()) pairs = reference_fft(std::move(pairs), extents, outer, true);
    for (std::size_t r = 0; r < rows; ++r) {
      double* const values = &pairs[2 * r * row];
      values[1] = 0;
      if (row % 2 == 0) values[row + 1] = 0;
      for (std::size_t i = given_row; i < row; ++i) values[2 * i] = values[2 * (row - i)], values[2 * i + 1] = -values[2 * (row - i) + 1];
    }
    pairs = reference_fft(std::move(pairs), extents, last, true);
  } else {
    outer.push_back(last.front());
    pairs = reference_fft(std::move(pairs), extents, outer, inverse);
  }
  double transformed = 1;
  for (const std::int64_t length : lengths) transformed *= static_cast<double>(length);
  note_sum(operation.arithmetic, absolutes * (inverse ? 1 : transformed));
  const auto made_row = static_cast<std::size_t>(shape.dims.back());
  // Roundings of the partial sums, which are as large as the largest values.
  const HloType part = part_of(shape.type);
  const double size = operation.arithmetic.perturb_seed ? std::sqrt(transformed) * absolutes / (inverse ? transformed : 1) : 0;
  const auto with_roundings = [&](double value) { return made(operation.arithmetic, value + (size > 0 ? rounded(operation.arithmetic, part, size) - size : 0)); };
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < made_row; ++i) {
      result.reals[r * made_row + i] = with_roundings(pairs[2 * (r * row + i)]);
      if (!to_real) result.imaginaries[r * made_row + i] = with_roundings(pairs[2 * (r * row + i) + 1]);
    }
  return HloArrays{std::move(result)};
}

}  // namespace podsim
