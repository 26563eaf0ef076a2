// Runs many points, each content once however many of them ask for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "tools/sweep/point_run.hpp"
#include "tools/sweep/store.hpp"

namespace podsim {

inline constexpr std::size_t most_failures_told = 10;

/// The points that the computer failed to run (Cause::environment): how many, and the first of them, by position, with the reason.
struct PointFailures {
  std::size_t count = 0;
  std::map<std::size_t, std::string> first;
  void add(std::size_t position, const std::string& why);
};

/// Where finished work goes. Both are called from any thread.
struct WorkSink {
  std::function<void(FinishedWork)> add;
  std::function<bool()> closed = [] { return false; };  // nothing more is taken: the rest need not be run
};

/// Points by their positions.
struct PointsToRun {
  std::vector<std::size_t> positions;
  std::function<PointInputs(std::size_t position)> inputs;  // called from any thread
};

/// Those whose engine forks, and the others. SimGrid's runs are children of this process, and must not be forked from among threads: they come last, one
/// by one, on the caller's thread.
struct Phases {
  PointsToRun threaded, one_by_one;
};
Phases phases_of(const PointsToRun& points);

class PointRunner {
 public:
  /// `version`: of the program. Of a run whose key is in `known` only the key is told.
  PointRunner(std::string version, const std::vector<std::string>& known, Cancellation stop);
  ~PointRunner();

  /// Each point is told to the sink, with the first run of its content or behind it; not those that were interrupted, nor failures. `threads`: 0: all cores.
  void run(const PointsToRun& points, int threads, const WorkSink& sink);
  /// Of all calls of run().
  [[nodiscard]] const PointFailures& failures() const { return failures_; }

 private:
  class Claims;
  void run_point(std::size_t position, const PointInputs& inputs, RecentSystems& systems, const WorkSink& sink);
  Status simulate_or_wait(std::size_t position, const PointInputs& inputs, RecentSystems& systems, std::string& claimed, const WorkSink& sink);
  Status run_as_memory_lasts(std::size_t position, const PointInputs& inputs, RecentSystems& systems, std::string& claimed, const WorkSink& sink);

  std::string version_;
  Cancellation stop_;
  std::unique_ptr<Claims> claims_;
  std::mutex mutex_;  // of the failures
  PointFailures failures_;
};

}  // namespace podsim
