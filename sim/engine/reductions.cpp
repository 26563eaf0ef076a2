#include "sim/engine/reductions.hpp"

namespace podsim {

std::vector<Timeline::Reduction> reductions_of(const Model& model) {
  std::vector<Timeline::Reduction> reductions;
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      const Participants& who = model.deployment.who(p, t);
      if (who.doers == 0) continue;
      const bool the_same_on_all = who.to_task.empty() && (model.speed.empty() || cost.reduction == Seconds{});
      for (std::size_t l = 0; l < who.to.size(); ++l) {
        if (!who.does(l)) continue;
        const Picoseconds duration{cost.kind == TaskCost::Kind::transfer ? ceil_to_clock(model.reduction(p, t, l)).count() : 0};
        if (reductions.empty() || reductions.back().duration != duration)
          reductions.push_back({model.deployment.programs[p].first_activity[t] + who.rank[l], duration});
        if (the_same_on_all) break;
      }
    }
  return reductions;
}

}  // namespace podsim
