// One point of a sweep as a run: what `podsim run` would do with the same arguments.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "sim/base/cancellation.hpp"
#include "tools/sweep/points.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// A system, or why there is none, with the key of what it is made of.
struct SharedSystem {
  Expected<System> system;
  std::string hardware;
};
/// The systems that were made last: neighbours in a sweep mostly have the same. Any thread may ask.
class RecentSystems {
 public:
  explicit RecentSystems(std::size_t most) : most_{most} {}
  std::shared_ptr<const SharedSystem> system(const PointInputs& inputs);

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::deque<std::pair<std::string, std::shared_ptr<const SharedSystem>>> systems_;  // the newest last
};

/// A run that is ready to go.
struct ReadyRun {
  RunOptions options;
  std::shared_ptr<const SharedSystem> shared;
  ProblemSpec problem;
  System system;  // as the problem uses it
  LoweredProblem lowered;
  std::string key;  // of all that its result depends on
  double build_s = 0;
};

/// Errors: why the combination does not apply, or (by their cause) why it could not be tried.
Expected<ReadyRun> make_ready(const PointInputs& inputs, RecentSystems& systems, const std::string& version, Cancellation stop);

/// Errors: those of a run.
Expected<Run> simulate(ReadyRun ready);

}  // namespace podsim
