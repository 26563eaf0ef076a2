#include "sim/engine/des/together.hpp"

#include <algorithm>

#include "sim/engine/max_plus/lanes.hpp"
#include "sim/model/recost.hpp"

namespace podsim {

namespace {

/// Positions of models that differ in costs only.
std::vector<std::vector<std::size_t>> alike(std::span<const Model* const> models) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t m = 0; m < models.size(); ++m) {
    if (models[m]->folded()) continue;
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& members) { return differ_in_costs_only(*models[members.front()], *models[m]); });
    if (group == groups.end())
      groups.push_back({m});
    else
      group->push_back(m);
  }
  return groups;
}

}  // namespace

std::vector<std::optional<Timeline>> run_des_together(std::span<const Model* const> models, const RunControl& control, std::span<TimesReader* const> readers,
                                                      int threads) {
  std::vector<std::optional<Timeline>> found(models.size());
  for (const std::vector<std::size_t>& group : alike(models)) {
    if (group.size() == 1) continue;
    std::vector<const Model*> lanes;
    std::vector<TimesReader*> reading;
    for (const std::size_t m : group) {
      lanes.push_back(models[m]);
      if (!readers.empty()) reading.push_back(readers[m]);
    }
    auto timelines = run_max_plus_lanes(lanes, control, reading, threads);
    for (std::size_t g = 0; g < group.size(); ++g) found[group[g]] = std::move(timelines[g]);
  }
  return found;
}

}  // namespace podsim
