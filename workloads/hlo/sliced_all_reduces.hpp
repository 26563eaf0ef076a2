// All-reduces of which only a part is used: reduce-scatters, or what could be one.
#pragma once

#include <map>

#include "workloads/hlo/task_costs.hpp"

namespace podsim {

/// The all-reduces of a computation whose result nothing uses but a slice, each with that slice.
///
/// Of a fused computation the result is the slice, perhaps in another form: the compiler's own reduce-scatter. Elsewhere the slice is as much as each device's
/// part, at a place that depends on the device: a reduce-scatter in waiting, as the module runs the whole all-reduce.
std::map<int, int> sliced_all_reduces(const HloModule& module, const HloComputation& computation, const HloUsers& users, bool is_fused);

}  // namespace podsim
