#include "sim/base/minimum.hpp"

#include <boost/math/tools/minima.hpp>

#include <cstdint>

namespace podsim {

std::pair<double, double> find_minimum(const std::function<double(double)>& of, double low, double high, int bits, int most_steps) {
  auto steps = static_cast<std::uintmax_t>(most_steps);
  return boost::math::tools::brent_find_minima(of, low, high, bits, steps);
}

}  // namespace podsim
