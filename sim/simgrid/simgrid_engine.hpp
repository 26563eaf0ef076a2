// The same meaning on SimGrid's solver, in a forked child per run: the referee for contention.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

std::unique_ptr<TimingEngine> make_simgrid_engine(const Machine& machine, const Topology& topology, const Placement& placement);

}  // namespace podsim
