// A schedule that a fit simulates again and again, each time on a machine with other values.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/model/model.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// Keeps the models of a small schedule, one node per device, so that only their costs are found anew (recost()): deployment, routes and classes of devices
/// take most of the time of such a run. One model for each pattern of limits, as with and without one of injection. Equal to simulated_time() to the picosecond.
/// A machine whose values give a kept model the costs of one of its last runs takes that run's time: of the values that a fit turns one by one, most belong to other operations.
class RepeatedRun {
 public:
  /// `system` must be the one on which the schedule was lowered.
  RepeatedRun(Schedule lowered, std::shared_ptr<const System> system);

  /// On the same system with another machine, as with_machine() makes it. Errors: those of simulated_time().
  [[nodiscard]] Expected<Seconds> time_on(const System& turned, Cancellation stop);
  [[nodiscard]] const std::shared_ptr<const System>& system() const { return system_; }
  /// Whether a transfer crosses links of this dimension; true where that is not known.
  [[nodiscard]] bool crosses(int dimension) const;

 private:
  struct Kept {
    std::shared_ptr<const Machine> machine;  // the model points at it
    Model model;
    std::vector<std::pair<std::vector<double>, Seconds>> runs{};  // costs and times, the latest first
  };
  static Expected<Seconds> time_of(Kept& kept, const Model& model, Cancellation stop);
  std::shared_ptr<const Schedule> lowered_;  // models point at it
  std::shared_ptr<const System> system_;
  std::vector<Kept> kept_;
  bool is_small_ = false;  // else a folded model is smaller
};

}  // namespace podsim
