// Figures that stand for many samples, and how far they can be trusted.
#pragma once

#include <vector>

namespace podsim {

/// The middle sample in order; of an even number the mean of the two in the middle. Zero of none. Linear in their number.
double median(std::vector<double> samples);

/// The smallest sample that a share `rank` in [0, 1] of them do not exceed (the nearest rank, without interpolation): a 95th percentile of errors is
/// then an error that occurred. Zero of none. Linear in their number.
double percentile(std::vector<double> samples, double rank);

/// Student's t of so many degrees of freedom: the value that |t| stays below with probability `confidence`. Infinite without any.
double student_quantile(double confidence, int degrees);

}  // namespace podsim
