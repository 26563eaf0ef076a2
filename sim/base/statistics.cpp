#include "sim/base/statistics.hpp"

#include <algorithm>
#include <boost/math/statistics/univariate_statistics.hpp>
#include <cmath>
#include <limits>
#include <numbers>

namespace podsim {

namespace {

double normal_quantile(double p) {  // bisection of erfc: exact enough, and the same everywhere
  double low = 0, high = 40;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(middle / std::numbers::sqrt2) > 1 - p ? low : high) = middle;
  }
  return low;
}

}  // namespace

double median(std::vector<double> samples) { return samples.empty() ? 0 : boost::math::statistics::median(samples); }

// Boost has quartiles only, between which it interpolates.
double percentile(std::vector<double> samples, double rank) {
  if (samples.empty()) return 0;
  const double count = static_cast<double>(samples.size());
  const double place = std::clamp(std::ceil(rank * count - 1e-9), 1.0, count);  // 0.95 * 20 is 19, whatever the rounding
  const auto found = samples.begin() + static_cast<std::ptrdiff_t>(place) - 1;
  std::nth_element(samples.begin(), found, samples.end());
  return *found;
}

// boost::math::students_t is exact, but intervals that podsim has printed would change in their third or fourth digit: this is 0.1 % less at 3 degrees.
double student_quantile(double confidence, int degrees) {
  const double p = 0.5 + confidence / 2;
  if (degrees <= 0) return std::numeric_limits<double>::infinity();
  if (degrees == 1) return std::tan(std::numbers::pi * (p - 0.5));
  if (degrees == 2) return (2 * p - 1) * std::sqrt(2 / (4 * p * (1 - p)));
  const double z = normal_quantile(p), n = degrees, z2 = z * z;  // Cornish-Fisher (Abramowitz, Stegun 26.7.5)
  const double g1 = z * (z2 + 1) / 4, g2 = z * ((5 * z2 + 16) * z2 + 3) / 96, g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  const double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
  return z + g1 / n + g2 / (n * n) + g3 / (n * n * n) + g4 / (n * n * n * n);
}

}  // namespace podsim
