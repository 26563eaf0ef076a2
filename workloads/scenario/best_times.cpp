#include "workloads/scenario/best_times.hpp"

#include <algorithm>

namespace podsim {

namespace {

template <class Key>
Picoseconds time_of(const std::map<Key, Picoseconds>& times, const Key& key) {
  const auto found = times.find(key);
  return found == times.end() ? end_of_clock : found->second;
}

template <class Key>
void lower(std::map<Key, Picoseconds>& times, const Key& key, Picoseconds time) {
  const auto [known, is_first] = times.try_emplace(key, time);
  known->second = std::min(known->second, time);
}

}  // namespace

Picoseconds BestTimes::limit_of_meshes(const ComparedSystem& on, const Variant& variant) const {
  return on.is_mesh_searched ? time_of(of_variant_, on_topology(on, variant)) : end_of_clock;
}

Picoseconds BestTimes::limit_of_group(const ComparedSystem& on, const Variant& variant) const {
  const auto times = of_group_.find(variant.group);
  if (most_ == 0 || times == of_group_.end() || times->second.size() < most_) return end_of_clock;
  return std::max(times->second.back(), time_of(of_topology_, {on.topology, variant.group}));
}

Picoseconds BestTimes::limit(const ComparedSystem& on, const std::vector<const Variant*>& variants) {
  if (wants_all()) return end_of_clock;
  const std::scoped_lock lock{mutex_};
  Picoseconds limit;
  for (const Variant* variant : variants) limit = std::max(limit, std::min(limit_of_meshes(on, *variant), limit_of_group(on, *variant)));
  return limit;
}

void BestTimes::add(const ComparedSystem& on, const std::vector<const Variant*>& variants, Picoseconds time) {
  const std::scoped_lock lock{mutex_};
  for (const Variant* variant : variants) {
    std::vector<Picoseconds>& times = of_group_[variant->group];
    const Picoseconds on_other_mesh = limit_of_meshes(on, *variant);
    lower(of_variant_, on_topology(on, *variant), time);
    lower(of_topology_, {on.topology, variant->group}, time);
    if (on_other_mesh <= time && on.is_mesh_searched) continue;  // a variant is one row
    if (on.is_mesh_searched)
      if (const auto replaced = std::find(times.begin(), times.end(), on_other_mesh); replaced != times.end()) times.erase(replaced);
    times.insert(std::upper_bound(times.begin(), times.end(), time), time);
    if (times.size() > most_) times.resize(most_);
  }
}

}  // namespace podsim
