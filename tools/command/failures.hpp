// Runs on pods with broken cables, beside the healthy one.
#pragma once

#include <functional>
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

/// The problem on a pod. Errors: it does not suit the pod.
using ProblemOf = std::function<Expected<Problem>(Pod&)>;

/// The fastest of the alternatives; `row.rings` says which. Errors: those of the pod as it is.
Expected<SimulatedRun> simulate_best(const Pod& pod, const ProblemOf& problem_of, const Manner& manner);

/// The makespan without what-ifs of broken and slow links and devices. Errors: those of a run.
Expected<double> healthy_makespan(const Pod& pod, const ProblemOf& problem_of, const Manner& manner);

/// A cable of each class of alike ones that the problem uses on the healthy pod, "0.0-0.1", and the makespan without it; worst first. Errors: those
/// of a run.
struct CableLoss {
  std::string cable;
  std::uint32_t alike = 1;
  double makespan_s = 0;
  std::string rings;
};
Expected<std::vector<CableLoss>> lose_any_cable(const Pod& pod, const ProblemOf& problem_of, const Manner& manner);

}  // namespace podsim
