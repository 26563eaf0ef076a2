// Vector clocks on an ActivityGraph: a single walk through the graph that knows which activities are over before the present one starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/schedule/unroll.hpp"

namespace podsim {

/// The activities of a graph partitioned into chains: each member starts after the end of the member before it (of a transfer: after `received`).
///
/// Greedy, in topological order: an activity extends a chain whose last member it waits for, preferably one on its own device; otherwise it begins a
/// new chain. Long chains are cut. Cost O(activities + waits). A ring has as many chains per direction as devices; a direct all-to-all has nearly as
/// many chains as activities.
struct Chains {
  static constexpr std::uint16_t most_members = 16383;  // clock entries go up to twice as many

  Chains(const ActivityGraph& graph, const std::vector<std::uint32_t>& order);

  std::uint32_t count = 0;
  std::vector<std::uint32_t> chain;   // of each activity
  std::vector<std::uint16_t> member;  // of each activity: its position in its chain
};

/// Walks through a graph in topological order. The clock of an activity has one entry per chain: how many of its members are over before the activity
/// starts. A clock is kept until the last activity that waits for its owner has been reached.
///
///   cost     activities + waits, times chains; each a 16-bit maximum, 8 at a time
///   memory   peak_clocks() * chains * 2 bytes, from the first next() on
///   source   Fidge 1988, Mattern 1989; chains for processes: Jagadish 1990
class VectorClocks {
 public:
  /// Reads the graph but allocates no clocks yet. `order` is a complete topological order of the graph; both must outlive this object.
  VectorClocks(const ActivityGraph& graph, const std::vector<std::uint32_t>& order);

  [[nodiscard]] const Chains& chains() const { return chains_; }
  /// The largest number of clocks kept at a time.
  [[nodiscard]] std::size_t peak_clocks() const { return peak_clocks_; }
  [[nodiscard]] std::size_t peak_bytes() const { return peak_clocks_ * width_ * sizeof(Entry); }
  /// An upper bound on the entries that the whole walk reads.
  [[nodiscard]] std::uint64_t entries() const { return (graph_.activities.size() + graph_.waits.size()) * std::uint64_t{width_}; }
  [[nodiscard]] std::uint64_t entries_looked_at() const { return entries_looked_at_; }

  /// The number of activities reached so far; the last of them is the present one.
  [[nodiscard]] std::size_t reached() const { return reached_; }
  /// Advances to the next activity of the order.
  void next();
  /// Is `first` over before the present activity starts? For a transfer, `received` asks about its target, otherwise about its source. Call next()
  /// first.
  [[nodiscard]] bool over(std::uint32_t first, bool received) const;

 private:
  // Member i of a chain: 2i + 1 after its source is over, 2i + 2 after all of it is. Signed, as SSE2 has a maximum of signed 16-bit integers only.
  using Entry = std::int16_t;
  static_assert(2 * Chains::most_members <= std::numeric_limits<Entry>::max());

  [[nodiscard]] std::size_t find_peak() const;
  void add(Entry* into, const Dependency& wait);
  [[nodiscard]] Entry entry(std::uint32_t activity, bool whole) const { return static_cast<Entry>(2 * chains_.member[activity] + (whole ? 2 : 1)); }
  Entry* clock(std::uint32_t activity) { return entries_.data() + slot_[activity] * width_; }

  const ActivityGraph& graph_;
  const std::vector<std::uint32_t>& order_;
  Chains chains_;
  std::size_t width_;                     // of a clock: the number of chains, rounded up
  std::vector<std::uint32_t> followers_;  // of each activity: the waits for it that are still ahead
  std::size_t peak_clocks_;
  std::size_t reached_ = 0;
  std::vector<Entry> entries_;       // of all slots
  std::vector<std::uint32_t> slot_;  // of each activity: the slot of its clock
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t entries_looked_at_ = 0;
};

}  // namespace podsim
