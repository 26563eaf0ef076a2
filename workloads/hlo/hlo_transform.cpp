#include "workloads/hlo/hlo_transform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace podsim {

HloTransform transform_of(const HloInstruction& fft) {
  const auto times = [](std::int64_t a, std::int64_t b) {
    constexpr std::int64_t largest = std::int64_t{1} << 62;
    std::int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) || product > largest ? largest : product;
  };
  const std::vector<std::int64_t>& lengths = fft.attributes->fft_length;
  HloTransform made;
  std::int64_t stored = 1;  // numbers of the result for each transform
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::int64_t length = std::max<std::int64_t>(1, lengths[i]);
    made.points = times(made.points, length);
    // The spectrum of real numbers is symmetric: half of the last dimension is kept.
    stored = times(stored, fft.attributes->fft_type == "RFFT" && i + 1 == lengths.size() ? length / 2 + 1 : length);
  }
  made.real = fft.attributes->fft_type == "RFFT" || fft.attributes->fft_type == "IRFFT";
  made.batch = elements_of(*fft.shape) / stored;
  const auto n = static_cast<double>(made.points);
  made.flops = (made.real ? 2.5 : 5) * n * std::log2(n) * static_cast<double>(made.batch);
  return made;
}

std::optional<std::string> transform_problem(const HloInstruction& fft, const HloShape& operand, const HloShape& result) {
  const auto text = [](const std::vector<std::int64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")).substr(0, 200); };
  const std::string& kind = fft.attributes->fft_type;
  const std::vector<std::int64_t>& lengths = fft.attributes->fft_length;
  const bool forward = kind == "RFFT", back = kind == "IRFFT";
  if (kind != "FFT" && kind != "IFFT" && !forward && !back) return fmt::format("expected fft_type=FFT, IFFT, RFFT or IRFFT, found {}", quoted(kind));
  const auto is_of = [](bool reals, const HloShape& shape) { return reals ? is_float(shape.type) : is_complex(shape.type); };
  if (!is_of(forward, operand) || !is_of(back, result))
    return fmt::format("expected {} from {} to {} numbers, got {} and {}", kind, forward ? "real" : "complex", back ? "real" : "complex", cut_text(operand), cut_text(result));
  if (lengths.empty() || lengths.size() > operand.rank() || result.rank() != operand.rank()) return fmt::format("expected fft_length for the last dimensions of {}, got {}", cut_text(operand), text(lengths));
  std::vector<std::int64_t> wanted = operand.dims;
  std::copy(lengths.begin(), lengths.end(), wanted.end() - static_cast<std::ptrdiff_t>(lengths.size()));
  std::vector<std::int64_t> made = wanted;
  if (back) wanted.back() = lengths.back() / 2 + 1;
  if (forward) made.back() = lengths.back() / 2 + 1;
  if (operand.dims != wanted) return fmt::format("expected an operand of {} for this fft_length, got {}", text(wanted), cut_text(operand));
  if (result.dims != made) return fmt::format("expected a result of {}, got {}", text(made), cut_text(result));
  return {};
}

}  // namespace podsim
