#include "sim/engine/busiest_link.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace podsim {

Picoseconds time_of_busiest_link(const Model& model) {
  std::vector<double> bytes(model.links.size(), 0.0);
  for (std::uint32_t p = 0; p < model.costs.size(); ++p)
    for (std::size_t t = 0; t < model.costs[p].size(); ++t) {
      const TaskCost& cost = model.costs[p][t];
      if (cost.kind != TaskCost::Kind::transfer || cost.flow_bytes == 0) continue;
      const Participants& who = model.deployment.who(p, t);
      for (std::size_t local = 0; local < model.deployment.programs[p].devices.size(); ++local)
        if (who.does(local))
          for (const PathLink& link : model.links_of(model.path(cost, local))) bytes[link.link] += link.weight * cost.flow_bytes;
    }
  double longest = 0;
  for (std::size_t link = 0; link < bytes.size(); ++link) longest = std::max(longest, bytes[link] / model.links[link].bandwidth.count());
  constexpr double rounding = 1 - 1e-6;
  const double picoseconds = longest * 1e12 * rounding;
  return picoseconds < static_cast<double>(end_of_clock.count()) ? Picoseconds{static_cast<std::int64_t>(picoseconds)} : end_of_clock;
}

}  // namespace podsim
