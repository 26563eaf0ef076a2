// Runs the points of a sweep that its store does not know yet.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "sim/base/cancellation.hpp"
#include "tools/sweep/point_runner.hpp"
#include "tools/sweep/points.hpp"
#include "tools/sweep/recorder.hpp"
#include "tools/sweep/store.hpp"

namespace podsim {

/// How far a sweep is.
struct SweepCount {
  std::size_t points = 0, known = 0;                     // in all; in the store before
  std::size_t finished = 0, skipped = 0, simulated = 0;  // now: points, among them what does not apply; runs
  std::size_t failed = 0;                                // now: points that the computer failed to run (Cause::environment); they remain
  [[nodiscard]] std::size_t remaining() const { return points - known - finished; }
};

/// What came of a sweep, with the first points that failed and why.
struct SweepEnd {
  SweepCount count;
  std::map<std::size_t, std::string> failures;  // by position
};

struct SweepOptions {
  int threads = 0;                                  // 0: all cores
  Cancellation stop;                                // requested: ends soon, with what is finished
  std::function<void(const SweepCount&)> progress;  // now and then, from one thread at a time
};

/// Makes the store that of these points, and returns the positions of those that it does not know. Errors: as SweepStore::begin().
Expected<std::vector<std::size_t>> begin_sweep(const SweepText& sweep, const AskedPoints& asked, SweepStore& store);

/// Simulates what is not known, each content once however many points ask for it, on all cores, and stores it as it goes. Points whose combination
/// does not apply are stored with the reason; of a run that was interrupted or that the computer failed (Diagnostic::cause) nothing is stored, so that
/// the next sweep tries it again. What is stored does not depend on the number of threads, nor on interruptions, but for the times that runs took.
/// Errors: the store cannot be written (what had been written stays).
Expected<SweepEnd> run_sweep(const SweepText& sweep, const Points& points, SweepStore& store, const SweepOptions& options);

}  // namespace podsim
