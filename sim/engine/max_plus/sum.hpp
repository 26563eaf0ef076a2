// Times as the pass computes with them.
#pragma once

#include <cstdint>

#include "sim/base/quantity.hpp"

namespace podsim::max_plus {

inline std::int64_t sum(std::int64_t time, std::int64_t duration) { return later(Picoseconds{time}, Picoseconds{duration}).count(); }

}  // namespace podsim::max_plus
