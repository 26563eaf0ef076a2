// Runs on pods with broken cables, beside the healthy one.
#pragma once

#include <string>
#include <vector>

#include "tools/command/simulate.hpp"

namespace podsim {

/// A way to lower what a broken ring carried, and what it is called.
struct Alternative {
  Pod pod;
  std::string rings;
};

/// The pod as it is: routes go around what is broken ("detour"). And where a mesh axis lies along a dimension with a broken cable: that axis open,
/// laid so that it begins behind the cable ("line along col, cut after 1"). A pod without broken cables: itself, with nothing to say.
std::vector<Alternative> alternatives(const Pod& pod);

/// The fastest of the alternatives, the pod as it is where several are; `row.rings` says which. One that is certain to be slower is not played to its
/// end. Errors: those of the pod as it is.
Expected<SimulatedRun> simulate_best(const Pod& pod, const ProblemOf& problem_of, const Manner& manner);

/// The makespan without what-ifs of broken and slow links and devices. Errors: those of a run.
Expected<double> healthy_makespan(const Pod& pod, const ProblemOf& problem_of, const Manner& manner);

/// A cable of each class of alike ones on the healthy pod, "0.0-0.1", and the makespan without it; worst first. The cables that carry nothing are one
/// class: without any of them every route stays, so the makespan is the healthy one. Errors: those of a run.
struct CableLoss {
  std::string cable;
  std::uint32_t alike = 1;  // links, or of idle ones cables
  double makespan_s = 0;
  std::string rings;
  bool idle = false;  // carries nothing
};
Expected<std::vector<CableLoss>> lose_any_cable(const Pod& pod, const ProblemOf& problem_of, const Manner& manner);

}  // namespace podsim
