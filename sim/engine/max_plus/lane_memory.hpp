// The memories of several variants at once: which works transfers slow, and for how long.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/max_plus/lane_times.hpp"
#include "sim/engine/max_plus/memory_use.hpp"

namespace podsim::max_plus {

/// MemoryUse of each lane, and the works of the present row of tasks that transfers may slow.
class LaneMemory {
 public:
  LaneMemory(std::span<const Model* const> models, std::span<const LinkRates> rates);

  /// Lanes of which nothing can be said.
  [[nodiscard]] std::uint32_t left_out() const { return left_out_; }
  /// Lanes in which works may be slowed.
  [[nodiscard]] std::uint32_t may_slow() const { return may_slow_; }
  [[nodiscard]] bool is_memory(std::uint32_t link) const { return link >= first_; }

  /// Whether a transfer that begins to draw then, on whatever memory, must be told to cross_early().
  [[nodiscard]] TwoFlags early(const Lanes& begin) const { return less(begin, last_slowed_until_); }
  /// A transfer draws on a memory in [begin, end). Lanes in which it slows a work whose end was told are added to `met`.
  void cross_early(std::uint32_t link, const Lanes& begin, const Lanes& end, std::uint32_t& met);

  /// Forgets the works of the row before.
  void begin_row();
  /// A work of a node in a lane. Kept if transfers may slow it.
  void add(std::uint32_t node, std::size_t lane, const MemoryUse::Work& work);
  /// Whether any was kept; when the first of them begins to draw and the last one ends at the latest.
  [[nodiscard]] bool any() const { return !nodes_.empty(); }
  [[nodiscard]] const Lanes& first() const { return first_begin_; }
  [[nodiscard]] const Lanes& last() const { return last_end_; }
  [[nodiscard]] bool any_at(std::uint32_t node) const { return any_less(begin_[node], latest_[node]); }
  /// Before the ends of a node's works are asked for: a flow of a transfer that begins or ends there, `weight` shares of the path's rate.
  void see(std::uint32_t node, std::uint32_t path, std::uint32_t weight, const Lanes& begin, const Lanes& end) {
    if (any_overlap(begin, end, begin_[node], latest_[node])) add_beside(node, path, weight, begin, end);
  }
  /// The end of the flow of a kept work, once all flows beside it were seen, which are then forgotten; 0: it was not kept.
  [[nodiscard]] std::int64_t end(std::uint32_t node, std::size_t lane);

 private:
  void add_beside(std::uint32_t node, std::uint32_t path, std::uint32_t weight, Lanes begin, Lanes end);

  std::span<const LinkRates> rates_;
  std::vector<MemoryUse> uses_;
  std::uint32_t left_out_ = 0, may_slow_ = 0;
  std::uint32_t first_ = no_device;  // the links from here on are memories
  std::vector<Lanes> slowed_until_;  // per memory, the end of the last work that may have been slowed
  Lanes last_slowed_until_;          // of any memory
  // Of the present row.
  std::vector<std::uint32_t> nodes_;                    // with kept works
  std::vector<MemoryUse::Work> works_;                  // [node][lane]; `alone` 0: none
  std::vector<Lanes> begin_, latest_;                   // per node
  std::array<std::vector<Beside>, lane_count> beside_;  // of one node
  Lanes first_begin_, last_end_;
  struct Longest {  // of works alike
    double bytes = 0;
    std::int64_t alone = 0, most_beside = 0, duration = 0;
  };
  std::array<Longest, lane_count> longest_{};  // of the last work added
};

}  // namespace podsim::max_plus
