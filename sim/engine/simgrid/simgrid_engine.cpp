#include "sim/engine/simgrid/simgrid_engine.hpp"

#include "sim/engine/deadlock.hpp"
#include "sim/engine/simgrid/simulate.hpp"

namespace podsim {

Expected<Timeline> run_simgrid(const Model& model, const RunControl& control) {
  auto simulation = simgrid_engine::simulate(write_out(model), control.stop);
  if (!simulation) return simulation.error();
  if (!simulation->finished.empty()) return deadlock(model, simulation->finished);
  return make_timeline(simulation->times, simulation->cores_end, simulation->events);
}

}  // namespace podsim
