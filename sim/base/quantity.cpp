#include "sim/base/quantity.hpp"

#include <cmath>

#include "sim/base/invariant.hpp"

namespace podsim {

Picoseconds ceil_to_clock(Seconds duration) {
  const double exact = duration.count() * 1e12;
  PODSIM_ASSERT(exact >= 0 && exact < 0x1p63 && "a duration is finite, not negative, and at most 106 days");
  const double nearest = std::round(exact);
  // Relative, so that the shortest positive duration still takes a picosecond.
  const bool whole = std::abs(exact - nearest) <= 1e-12 * exact;
  return Picoseconds{static_cast<std::int64_t>(whole ? nearest : std::ceil(exact))};
}

}  // namespace podsim
