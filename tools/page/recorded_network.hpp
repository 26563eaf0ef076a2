// What crosses each link of a run.
#pragma once

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "tools/page/record.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// Every chip, switch and link. Of a folded run what is known is of classes, and of a call what it sends along an axis, so the routes are looked up
/// again: those of the program and, once for each program that calls it, of each function. Errors: cancelled work.
Expected<RecordedNetwork> network_of(const Run& run, Cancellation stop);

}  // namespace podsim
