#include "sim/engine/des/des_engine.hpp"

#include <algorithm>

#include "sim/engine/busiest_link.hpp"
#include "sim/engine/deadlock.hpp"
#include "sim/engine/des/simulator.hpp"
#include "sim/engine/max_plus/max_plus.hpp"

namespace podsim {

Expected<Timeline> run_events(const Model& model, const RunControl& control) {
  auto tables = des::tabulate(model);
  if (!tables) return tables.error();
  des::Simulator simulator{model, *std::move(tables), control.record};
  simulator.run(control);
  if (!simulator.complete() && !simulator.interrupted()) {
    if (control.record) return deadlock(model, simulator.finished());
    RunControl recorded = control;  // to see what is stuck
    recorded.record = true;
    return run_events(model, recorded);
  }
  return simulator.take_timeline();
}

Expected<Timeline> run_des(const Model& model, const RunControl& control) {
  if (control.limit < end_of_clock && time_of_busiest_link(model) > control.limit) {  // thousands of flows that share links are the slowest to play
    Timeline not_played;
    not_played.interrupted = true;
    return not_played;
  }
  auto timeline = run_max_plus(model, control);
  if (!timeline) {
    RunControl recorded = control;
    recorded.record |= control.reader != nullptr;  // events do not come task by task
    auto of_events = run_events(model, recorded);
    if (!of_events) return of_events;
    timeline = *std::move(of_events);
    if (timeline->is_long) timeline->makespan = std::max(timeline->makespan, time_of_busiest_link(model));
  }
  if (timeline->makespan == end_of_clock) return beyond_the_clock();
  return *std::move(timeline);
}

}  // namespace podsim
