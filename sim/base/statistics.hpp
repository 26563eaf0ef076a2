// Summary statistics of samples, and their confidence.
#pragma once

#include <vector>

namespace podsim {

/// The median; for an even number of samples the mean of the middle two. Zero without samples. O(n).
double median(std::vector<double> samples);

/// The nearest-rank percentile, `rank` in [0, 1]: the smallest sample that at least this share of the samples does not exceed. No interpolation, so
/// the 95th percentile of errors is an error that occurred. Zero without samples. O(n).
double percentile(std::vector<double> samples, double rank);

/// The two-sided quantile of Student's t: |t| stays below it with probability `confidence`. Infinite for 0 degrees of freedom.
double student_quantile(double confidence, int degrees);

}  // namespace podsim
