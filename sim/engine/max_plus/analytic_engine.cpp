#include "sim/engine/max_plus/analytic_engine.hpp"

#include "sim/engine/deadlock.hpp"
#include "sim/engine/max_plus/pass.hpp"

namespace podsim {

Expected<Timeline> run_analytic(const Model& model, const RunControl& control) {
  const max_plus::RowGraph graph{model};
  if (!graph.has_order()) return deadlock(model, graph.that_run());
  const MeetingLimits limits;
  Timeline timeline = max_plus::Pass{model, control, limits, graph}.run_alone();
  if (timeline.makespan == end_of_clock) return beyond_the_clock();
  timeline.events = timeline.finished;
  return timeline;
}

std::optional<Picoseconds> least_makespan(const Model& model, Cancellation stop) {
  RunControl control;
  control.stop = stop;
  control.record = false;
  const auto timeline = run_analytic(model, control);
  if (!timeline || timeline->interrupted) return std::nullopt;
  return timeline->makespan;
}

}  // namespace podsim
