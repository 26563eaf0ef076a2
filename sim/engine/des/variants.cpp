#include "sim/engine/des/variants.hpp"

#include <algorithm>

#include "sim/base/thread_pool.hpp"
#include "sim/engine/des/des_engine.hpp"
#include "sim/engine/max_plus/lanes.hpp"
#include "sim/model/recost.hpp"

namespace podsim {

namespace {

/// Positions of models that differ in costs only.
std::vector<std::vector<std::size_t>> alike(std::span<const Model* const> models) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t m = 0; m < models.size(); ++m) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& members) { return differ_in_costs_only(*models[members.front()], *models[m]); });
    if (group == groups.end() || models[m]->folded())
      groups.push_back({m});
    else
      group->push_back(m);
  }
  return groups;
}

}  // namespace

std::vector<Expected<Timeline>> run_des_variants(std::span<const Model* const> models, const RunControl& control, int threads) {
  std::vector<std::optional<Timeline>> found(models.size());
  for (const std::vector<std::size_t>& group : alike(models)) {
    if (group.size() == 1) continue;
    std::vector<const Model*> lanes;
    for (const std::size_t m : group) lanes.push_back(models[m]);
    auto timelines = run_max_plus_lanes(lanes, control, threads);
    for (std::size_t g = 0; g < group.size(); ++g) found[group[g]] = std::move(timelines[g]);
  }
  std::vector<Expected<Timeline>> results(models.size(), Expected<Timeline>{Timeline{}});
  ThreadPool pool{threads};
  pool.for_each(models.size(), [&](std::size_t m, std::size_t) { results[m] = found[m] ? Expected<Timeline>{*std::move(found[m])} : run_des(*models[m], control); });
  return results;
}

}  // namespace podsim
