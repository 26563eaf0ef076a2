#include "workloads/hlo/hlo_transform.hpp"

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

}  // namespace podsim
