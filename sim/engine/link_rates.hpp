// Rates as integers, so that sums of them are exact in any order: what every engine that shares links on its own means by the rate of a flow.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/model/model.hpp"

namespace podsim {

/// Capacities of a model's links, and what flows take that nothing else holds back, in quanta of 2^-61 of the fastest link.
struct LinkRates {
  static constexpr std::int64_t unlimited_rate = std::numeric_limits<std::int64_t>::max();

  explicit LinkRates(const Model& model);

  double quantum = 1;                    // bytes per second
  std::vector<std::int64_t> capacity;    // per link; 0: unlimited
  std::vector<PathLink> path_links;      // of all paths the limited links, one path after the other: only they can hold a flow back
  std::vector<std::uint32_t> path_rows;  // per path its first entry in path_links; one more at the end
  std::vector<std::int64_t> path_rate;   // per path, of a flow alone on it; unlimited_rate: no flow is needed

  [[nodiscard]] std::span<const PathLink> links_of(std::uint32_t path) const {
    return {path_links.data() + path_rows[path], path_rows[path + 1] - path_rows[path]};
  }
  [[nodiscard]] double bytes_per_second(std::int64_t rate) const { return static_cast<double>(rate) * quantum; }
  /// The rate of a work that moves `bytes` through a memory in `alone` picoseconds if nothing slows it; at most `most`.
  [[nodiscard]] std::int64_t of_work(double bytes, std::int64_t alone, std::int64_t most) const;
  /// How long `bytes` take, in picoseconds; beyond the clock: its end.
  [[nodiscard]] std::int64_t duration(double bytes, std::int64_t rate) const;
};

}  // namespace podsim
