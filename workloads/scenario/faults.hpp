// Runs on systems with broken cables, beside the healthy one.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// A way to lower the collectives of a broken ring, with a name for it.
struct Alternative {
  System system;
  std::string rings;
};

/// First the system as it is, whose routes go around broken cables ("detour"). Then the system with dimensions that have a broken cable open, and devices
/// shifted so that they begin behind it: what of the mesh lies along one, an axis or a part of one that folds several ("line along col, cut after 1"), or, where
/// axes split it, what an axis over all devices takes whole ("line along x, cut after 3"). A system without broken cables: only itself.
std::vector<Alternative> alternatives(const System& system);

/// A problem on a system; open choices are made first (pose()). With broken cables the fastest of the alternatives, ties: the system as it is;
/// `row.rings` names it. The simulation of an alternative stops when it is certain to be slower; if all take longer than `options.control.limit`, the run is
/// interrupted. Errors: those of the system as it is.
Expected<Run> simulate(const System& system, const ProblemSpec& problem, const RunOptions& options = {});

/// The makespan without faults. Errors: those of a run.
Expected<double> healthy_makespan(const System& system, const ProblemSpec& problem, const RunOptions& options);

/// The makespan without one cable, for one cable of each class of equivalent ones; worst first. Starts from the system without broken cables. Idle cables
/// are one class: without any of them no route changes, nor does the makespan. Errors: those of a run.
struct CableLoss {
  CableEnds cable;
  std::string name;         // "0.0-0.1"
  std::uint32_t equivalent = 1;  // links in its class; of idle ones, cables
  double makespan_s = 0;
  std::string rings;
  bool idle = false;  // carries nothing
};
Expected<std::vector<CableLoss>> lose_any_cable(const System& system, const ProblemSpec& problem, const RunOptions& options);

}  // namespace podsim
