// The interface of engines.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/base/expected.hpp"
#include "sim/model/model.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/engine/times_reader.hpp"

namespace podsim {

/// The progress of a run.
struct RunProgress {
  Picoseconds now;
  std::int64_t finished = 0, activities = 0;
};

/// Options of a run: cancellation, progress, recording, a time limit.
struct RunControl {
  Cancellation stop;                                 // requested: the run ends soon, with a partial timeline
  std::function<void(const RunProgress&)> progress;  // called now and then, from the thread of the run
  bool record = true;                                // false: only the makespan and the counts
  /// Without `record`: reads all times. An engine that cannot tell them task by task records the timeline instead, and the reader is not called, or not to
  /// the end; so Timeline::size() tells which. It may be called once only.
  TimesReader* reader = nullptr;
  /// A run that is certain to end later may stop early, marked `interrupted`. A run that ends by then is complete. simgrid knows no
  /// limit and runs to the end.
  Picoseconds limit = end_of_clock;
  /// Of a run that goes event by event, as where thousands of flows share links: its events, and flows that were given a rate, some million a second. One that needs more
  /// is interrupted and `is_long`; its makespan is then what it takes at least.
  std::int64_t most_work = std::numeric_limits<std::int64_t>::max();
};

/// A timing engine: computes when everything happens. Equal models give equal timelines.
struct EngineEntry {
  std::string_view name, summary;
  bool folds = false;  // simulates folded models; other engines need one node per device (an assert)
  /// Errors: the schedule deadlocks (the message names the tasks that wait for each other), or ends beyond the clock.
  Expected<Timeline> (*run)(const Model&, const RunControl&);
  /// The same for models that recost() made from one another, all at once, by several threads. Of each what run() gives, or nullopt where that must find it.
  /// `readers`: one per model, as RunControl::reader; or none. Null: the engine gains nothing by that.
  std::vector<std::optional<Timeline>> (*run_together)(std::span<const Model* const>, const RunControl&, std::span<TimesReader* const> readers,
                                                       int threads) = nullptr;
};

/// The timeline of each model, as entry.run() gives it: together where the engine can, the others alone, `threads` at a time.
std::vector<Expected<Timeline>> run_variants(const EngineEntry& entry, std::span<const Model* const> models, const RunControl& control, int threads);

/// sim/engine/table builds the table and callers pass it as an argument. There is no static self-registration: static libraries would drop it.
using EngineTable = std::span<const EngineEntry>;

}  // namespace podsim
