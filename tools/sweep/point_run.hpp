// One point of a sweep as a run: what `podsim run` would do with the same arguments.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "sim/base/cancellation.hpp"
#include "tools/command/problem.hpp"
#include "tools/command/simulate.hpp"
#include "tools/sweep/points.hpp"

namespace podsim {

/// The options that a point may have: those of `podsim run` that say what to simulate and how.
po::options_description point_options();
/// Asserts that the inputs parse: every field is one of point_options().
Options options_of(const PointInputs& inputs, const po::options_description& described);

/// A pod, or why there is none, with the key of what it is made of.
struct SharedPod {
  Expected<Pod> pod;
  std::string hardware;
};
/// The pods that were made last: neighbours in a sweep mostly have the same. Any thread may ask.
class RecentPods {
 public:
  explicit RecentPods(std::size_t most) : most_{most} {}
  std::shared_ptr<const SharedPod> pod(const PointInputs& inputs, const Options& options);

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::deque<std::pair<std::string, std::shared_ptr<const SharedPod>>> pods_;  // the newest last
};

/// A run that is ready to go.
struct ReadyRun {
  Options options;
  Manner manner;
  std::shared_ptr<const SharedPod> shared;
  Pod pod;  // as the algorithm uses it
  Problem problem;
  Schedule lowered;
  std::string key;  // of all that its result depends on
  double build_s = 0;
};

/// Errors: why the combination does not apply, or (by their cause) why it could not be tried.
Expected<ReadyRun> make_ready(const PointInputs& inputs, const po::options_description& described, RecentPods& pods, const std::string& version,
                              Cancellation stop);

/// Errors: those of a run.
Expected<SimulatedRun> simulate(ReadyRun ready);

}  // namespace podsim
