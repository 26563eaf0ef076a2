// Longest path with uncontended durations: exact where nobody shares a link, never later than an engine that shares them.
#pragma once

#include "sim/engine/engine.hpp"

namespace podsim {

std::unique_ptr<TimingEngine> make_analytic_engine(const Machine& machine, const Topology& topology, const Placement& placement);

}  // namespace podsim
