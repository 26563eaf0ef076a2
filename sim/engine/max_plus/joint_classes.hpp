// Classes of things that have a class in each of several lanes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/engine/max_plus/lane_times.hpp"

namespace podsim::max_plus {

/// What has a class in each lane (a path, a node) by the classes of all lanes together.
struct JointClasses {
  using Members = std::array<std::uint32_t, lane_count>;
  std::vector<std::uint32_t> of;  // empty: all are of class 0
  std::vector<Members> members;   // per joint class, the class in each lane

  [[nodiscard]] std::uint32_t at(std::uint32_t i) const { return of.empty() ? 0 : of[i]; }

  JointClasses() = default;
  /// `classes` of each lane; null: all are of class 0 there.
  JointClasses(std::size_t count, std::span<const std::uint32_t* const> classes) {
    if (std::all_of(classes.begin(), classes.end(), [](const std::uint32_t* lane) { return lane == nullptr; })) {
      members.emplace_back();
      return;
    }
    std::map<Members, std::uint32_t> known;
    of.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      Members here{};
      for (std::size_t k = 0; k < classes.size(); ++k) here[k] = classes[k] == nullptr ? 0 : classes[k][i];
      if (of.empty() || here != members[of.back()]) {
        const auto [entry, is_new] = known.try_emplace(here, static_cast<std::uint32_t>(members.size()));
        if (is_new) members.push_back(here);
        of.push_back(entry->second);
      } else {
        of.push_back(of.back());
      }
    }
  }
};

}  // namespace podsim::max_plus
