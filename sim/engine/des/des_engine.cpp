#include "sim/engine/des/des_engine.hpp"

#include "sim/engine/deadlock.hpp"
#include "sim/engine/des/simulator.hpp"
#include "sim/engine/max_plus/max_plus.hpp"
#include <cstdlib>

namespace podsim {

Expected<Timeline> run_des(const Model& model, const RunControl& control) {
  if (getenv("NOPASS") == nullptr)
    if (auto t = run_max_plus(model, control)) return *std::move(t);
  auto tables = des::tabulate(model);
  if (!tables) return tables.error();
  des::Simulator simulator{model, *std::move(tables), control.record};
  simulator.run(control);
  if (!simulator.complete() && !simulator.interrupted()) {
    if (control.record) return deadlock(model, simulator.finished());
    RunControl recorded = control;  // to see what is stuck
    recorded.record = true;
    return run_des(model, recorded);
  }
  Timeline timeline = simulator.take_timeline();
  if (timeline.makespan == end_of_clock) return Diagnostic{{}, "the run takes more than 106 days, which is as far as the clock goes"};
  return timeline;
}

}  // namespace podsim
