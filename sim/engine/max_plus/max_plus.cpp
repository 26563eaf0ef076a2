#include "sim/engine/max_plus/max_plus.hpp"

#include "sim/engine/max_plus/pass.hpp"

namespace podsim {

std::optional<Timeline> run_max_plus(const Model& model, const RunControl& control, const MeetingLimits& limits) {
  const max_plus::RowGraph graph{model};
  if (!graph.has_order()) return std::nullopt;
  return max_plus::Pass{model, control, limits, graph}.run();
}

}  // namespace podsim
