// Runs on systems with broken cables, beside the healthy one.
#pragma once

#include <string>
#include <vector>

#include "workloads/scenario/simulate.hpp"

namespace podsim {

/// A way to lower what a broken ring carried, and what it is called.
struct Alternative {
  System system;
  std::string rings;
};

/// The system as it is: routes go around what is broken ("detour"). And where a mesh axis lies along a dimension with a broken cable: that axis open,
/// laid so that it begins behind the cable ("line along col, cut after 1"). A system without broken cables: itself, with nothing to say.
std::vector<Alternative> alternatives(const System& system);

/// A problem on a system, whatever is open chosen on it. With broken cables the fastest of the alternatives, the system as it is where several are;
/// `row.rings` says which. One that is certain to be slower is not played to its end. Errors: those of the system as it is.
Expected<Run> simulate(const System& system, const ProblemSpec& problem, const RunOptions& options = {});

/// The makespan without faults. Errors: those of a run.
Expected<double> healthy_makespan(const System& system, const ProblemSpec& problem, const RunOptions& options);

/// A cable of each class of alike ones on the system without broken cables, and the makespan without it; worst first. The cables that carry nothing are
/// one class: without any of them every route stays, so the makespan is that with all. Errors: those of a run.
struct CableLoss {
  CableEnds cable;
  std::string name;         // "0.0-0.1"
  std::uint32_t alike = 1;  // links, or of idle ones cables
  double makespan_s = 0;
  std::string rings;
  bool idle = false;  // carries nothing
};
Expected<std::vector<CableLoss>> lose_any_cable(const System& system, const ProblemSpec& problem, const RunOptions& options);

}  // namespace podsim
