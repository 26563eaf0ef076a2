// The best times of a comparison so far: what is slower is not simulated to its end.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "workloads/scenario/compare.hpp"

namespace podsim {

/// What one variant is on all meshes of a topology: its number, the group, the name.
using OnTopology = std::tuple<std::size_t, std::size_t, std::string>;
inline OnTopology on_topology(const ComparedSystem& on, const Variant& variant) { return {on.topology, variant.group, variant.name}; }

/// Shared by runs at work.
class BestTimes {
 public:
  /// `most` of each group, and the best of each topology; 0: all. `searches`: of some topologies the meshes are searched.
  BestTimes(std::size_t most, bool searches) : most_{most}, searches_{searches} {}

  [[nodiscard]] bool wants_all() const { return most_ == 0 && !searches_; }
  /// A run of these variants that ends later is not wanted.
  [[nodiscard]] Picoseconds limit(const ComparedSystem& on, const std::vector<const Variant*>& variants);
  void add(const ComparedSystem& on, const std::vector<const Variant*>& variants, Picoseconds time);

 private:
  [[nodiscard]] Picoseconds limit_of_meshes(const ComparedSystem& on, const Variant& variant) const;
  [[nodiscard]] Picoseconds limit_of_group(const ComparedSystem& on, const Variant& variant) const;

  std::size_t most_;
  bool searches_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<Picoseconds>> of_group_;                     // the best, in order
  std::map<std::pair<std::size_t, std::size_t>, Picoseconds> of_topology_;       // by topology and group
  std::map<OnTopology, Picoseconds> of_variant_;
};

}  // namespace podsim
