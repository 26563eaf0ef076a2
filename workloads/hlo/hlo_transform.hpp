// Floating-point operations of Fourier transforms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "workloads/hlo/hlo_module.hpp"

namespace podsim {

/// `batch` transforms of `points` numbers each: the product of fft_length. Between real and complex numbers (RFFT, IRFFT) `points` are the real ones.
///   flops   5 n log2 n of each, half of it of real ones: of vector units, by convention, whatever an implementation does
///   source  FFTW, benchFFT methodology (fftw.org/speed/method.html): 5 N log2 N of complex transforms, 2.5 N log2 N of real ones
struct HloTransform {
  std::int64_t batch = 1, points = 1;
  bool real = false;
  double flops = 0;
  friend bool operator==(const HloTransform&, const HloTransform&) = default;
};

/// Of an fft instruction, by its result. Counts saturate at 2^62.
HloTransform transform_of(const HloInstruction& fft);

/// What is wrong with an fft of an array, as XLA has it: fft_length names its last dimensions, real numbers are on the side that fft_type says, and of
/// the last dimension of their spectrum the first length / 2 + 1 are kept. nullopt: nothing.
std::optional<std::string> transform_problem(const HloInstruction& fft, const HloShape& operand, const HloShape& result);

}  // namespace podsim
