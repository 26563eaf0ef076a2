#include "sim/engine/max_plus/lane_timings.hpp"

namespace podsim::max_plus {

LaneTimings::LaneTimings(std::span<const Model* const> models) : models_{models} {
  rates_.reserve(models.size());  // timings refer to them
  timings_.reserve(models.size());
  for (const Model* model : models) timings_.emplace_back(*model, rates_.emplace_back(*model));
  std::vector<const std::uint32_t*> paths, nodes;
  for (const Timings& timings : timings_) paths.push_back(timings.path_classes()), nodes.push_back(timings.speed_classes());
  paths_ = JointClasses{models.front()->paths.size(), paths};
  nodes_ = JointClasses{models.front()->nodes(), nodes};
}

std::vector<LaneTimings::OfTransfer> LaneTimings::transfer(std::uint32_t program, std::uint32_t task) {
  std::vector<OfTransfer> result(paths_.members.size());
  for (std::size_t k = 0; k < models_.size(); ++k) {
    const Timings::OfTransfer* const times = timings_[k].of_transfer(models_[k]->costs[program][task]);
    for (std::size_t c = 0; c < result.size(); ++c) {
      const Timings::OfTransfer& time = times[paths_.members[c][k]];
      result[c].delay.set(k, static_cast<double>(time.delay));
      result[c].flow.set(k, static_cast<double>(time.flow));
    }
  }
  return result;
}

std::vector<Lanes> LaneTimings::work(std::uint32_t program, std::uint32_t task) {
  std::vector<Lanes> result(nodes_.members.size());
  for (std::size_t k = 0; k < models_.size(); ++k) {
    const Timings::OfWork* const times = timings_[k].of_work(models_[k]->costs[program][task]);
    for (std::size_t c = 0; c < result.size(); ++c) result[c].set(k, static_cast<double>(times[nodes_.members[c][k]].whole()));
  }
  return result;
}

std::vector<Lanes> LaneTimings::reduction(std::uint32_t program, std::uint32_t task) {
  std::vector<Lanes> result(nodes_.members.size());
  for (std::size_t k = 0; k < models_.size(); ++k) {
    const std::int64_t* const times = timings_[k].of_reduction(models_[k]->costs[program][task]);
    for (std::size_t c = 0; c < result.size(); ++c) result[c].set(k, static_cast<double>(times[nodes_.members[c][k]]));
  }
  return result;
}

PlacedLinks::PlacedLinks(const Model& model, const LinkRates& rates, const Rows& rows) : on_path{rates.path_links}, between_memories(model.paths.size()) {
  const auto first_memory = static_cast<std::uint32_t>(model.first_memory);
  std::vector<bool> seen(model.routings.size(), false), placed(model.paths.size(), false);
  std::vector<std::uint32_t> place_of(rates.capacity.size(), no_device);
  for (const Row& row : rows.rows) {
    const TaskCost& cost = model.costs[row.program][row.task];
    if (cost.kind != TaskCost::Kind::transfer || seen[cost.routing]) continue;
    seen[cost.routing] = true;
    for (const std::uint32_t path : model.routings[cost.routing]) {
      if (placed[path]) continue;
      placed[path] = true;
      auto& [first, last] = between_memories[path];
      first = rates.path_rows[path];
      last = rates.path_rows[path + 1];
      while (first < last && on_path[first].link >= first_memory) ++first;
      while (first < last && on_path[last - 1].link >= first_memory) --last;
      for (std::uint32_t i = first; i < last; ++i) {
        std::uint32_t& place = place_of[on_path[i].link];
        if (place == no_device) place = static_cast<std::uint32_t>(links.size()), links.push_back(on_path[i].link);
        on_path[i].link = place;
      }
    }
  }
}

}  // namespace podsim::max_plus
