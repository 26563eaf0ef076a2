// The interface of engines.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "sim/model/model.hpp"
#include "sim/engine/timeline.hpp"

namespace podsim {

/// How far a run is.
struct RunProgress {
  Picoseconds now;
  std::int64_t finished = 0, activities = 0;
};

/// What a caller may want of a run beside its result.
struct RunControl {
  Cancellation stop;                                 // requested: the run ends soon, with what it knows
  std::function<void(const RunProgress&)> progress;  // now and then, from the thread of the run
  bool record = true;                                // false: only the makespan and the counts
  /// A run that would end later than this may end, interrupted, as soon as that is certain. One that ends by then is not touched. Engines other
  /// than des play to the end.
  Picoseconds limit = end_of_clock;
};

/// A timing engine: when everything happens. The same model gives the same Timeline.
struct EngineEntry {
  std::string_view name, summary;
  bool folds = false;  // plays folded models; the others need a node per device (an assert)
  /// Errors: the schedule cannot progress (names the tasks that wait for each other), or ends beyond the clock.
  Expected<Timeline> (*run)(const Model&, const RunControl&);
};

/// The table is built in sim/engine/table and passed as an argument: no static self-registration, static libraries drop it.
using EngineTable = std::span<const EngineEntry>;

}  // namespace podsim
