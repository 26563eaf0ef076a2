// A schedule that a fit simulates again and again, each time on a machine with other values.
#pragma once

#include <memory>
#include <optional>

#include "sim/base/cancellation.hpp"
#include "sim/model/model.hpp"
#include "topologies/system.hpp"

namespace podsim {

/// Keeps the model of a small schedule, one node per device, so that only its costs are found anew (recost()): deployment, routes and classes of devices
/// take most of the time of such a run. Equal to simulated_time() to the picosecond.
class RepeatedRun {
 public:
  /// `system` must be the one on which the schedule was lowered.
  RepeatedRun(Schedule lowered, std::shared_ptr<const System> system);

  /// On the same system with another machine, as with_machine() makes it. Errors: those of simulated_time().
  [[nodiscard]] Expected<Seconds> time_on(const System& turned, Cancellation stop) const;
  [[nodiscard]] const std::shared_ptr<const System>& system() const { return system_; }

 private:
  std::shared_ptr<const Schedule> lowered_;  // the model points at it, and at the system's machine
  std::shared_ptr<const System> system_;
  std::optional<Model> model_;  // none: there are many devices, and a folded model is smaller
};

}  // namespace podsim
