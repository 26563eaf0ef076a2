// The minimum of a function of one number.
#pragma once

#include <functional>
#include <utility>

namespace podsim {

/// Where a function that has one minimum from `low` to `high` is least, and its value there: Brent's method (boost::math::tools::brent_find_minima), to `bits` bits of the place, in at most `most_steps` evaluations. Of several minima it is one of them.
std::pair<double, double> find_minimum(const std::function<double(double)>& of, double low, double high, int bits, int most_steps);

}  // namespace podsim
