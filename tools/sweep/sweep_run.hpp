// Runs the points of a sweep that its store does not know yet.
#pragma once

#include <atomic>
#include <functional>

#include "tools/sweep/points.hpp"
#include "tools/sweep/recorder.hpp"
#include "tools/sweep/store.hpp"

namespace podsim {

/// How far a sweep is.
struct SweepCount {
  std::size_t points = 0, known = 0;                     // in all; in the store before
  std::size_t finished = 0, skipped = 0, simulated = 0;  // now: points, among them what does not apply; runs
  [[nodiscard]] std::size_t remaining() const { return points - known - finished; }
};

struct SweepManner {
  int threads = 0;                                  // 0: all cores
  const std::atomic<bool>* stop = nullptr;          // becomes true: ends soon, with what is finished
  std::function<void(const SweepCount&)> progress;  // now and then, from one thread at a time
};

/// Simulates what is not known, each content once however many points ask for it, on all cores, and stores it as it goes. Points whose combination
/// does not apply are stored with the reason. What is stored does not depend on the number of threads, nor on interruptions, but for the times that
/// runs took. Errors: the store cannot be written (what had been written stays).
Expected<SweepCount> run_sweep(const SweepText& sweep, const Points& points, SweepStore& store, const SweepManner& manner);

}  // namespace podsim
