// The flows of links on which flows meet, played exactly by themselves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engine/link_sharing.hpp"

namespace podsim::max_plus {

/// A link on which flows do not fit is hot, and so is each flow that crosses it. Hot flows share links as in des (LinkSharing). On its other links a hot
/// flow must be alone, which the pass proves. Memories never hold a transfer back (MemoryUse).
///
/// Flows may be found and moved in any order. settle() plays again from the first moment that a change concerns; the state is kept at many moments, so
/// what is found nearly in order of time costs little.
///   cost O(flows in flight after the first change) per settle(), as LinkSharing
class HotFlows {
 public:
  /// `hot`: per link of the model.
  HotFlows(const Model& model, const LinkRates& rates, const std::vector<bool>& hot);

  /// Whether flows on the path are hot.
  [[nodiscard]] bool on(std::uint32_t path) const { return path_[path] != no_device; }

  /// A transfer's flow. `row` and `local` are for the caller.
  struct Flow {
    std::uint32_t activity = 0, row = 0, local = 0, path = 0;
    double bytes = 0;
    std::int64_t begin = 0, end = 0;
  };
  std::uint32_t add(const Flow& flow);
  void move(std::uint32_t flow, std::int64_t begin);
  /// Position of an activity's flow; no_device: it was not added.
  [[nodiscard]] std::uint32_t of(std::uint32_t activity) const {
    const auto found = of_activity_.find(activity);
    return found == of_activity_.end() ? no_device : found->second;
  }
  [[nodiscard]] const Flow& flow(std::uint32_t number) const { return flows_[number].flow; }
  [[nodiscard]] std::size_t size() const { return flows_.size(); }

  /// A flow that begins, ends or draws other than it did, and when it was in flight or is.
  struct Change {
    std::uint32_t number = 0;
    std::int64_t begin = 0, end = 0;
  };
  /// Ends and rates for all flows that are known. Returns what changed, new flows included.
  const std::vector<Change>& settle();

  /// A rate, in units of LinkRates::quantum, and since when the flow has it.
  struct Draw {
    std::int64_t since = 0, rate = 0;
    friend bool operator==(const Draw&, const Draw&) = default;
  };
  [[nodiscard]] std::span<const Draw> draws(std::uint32_t number) const { return flows_[number].draws; }

 private:
  struct Known {
    Flow flow;
    std::vector<Draw> draws;
    std::int64_t told_begin = -1, told_end = -1;
    std::vector<Draw> told_draws;
  };
  struct InFlight {
    std::uint32_t number, sharing;  // in LinkSharing
    std::int64_t end;               // when the state was kept
  };
  /// After all that happens before `time`.
  struct State {
    std::int64_t time = 0;
    std::size_t next = 0;  // in order_
    std::vector<InFlight> in_flight;
    LinkSharing sharing;
  };
  [[nodiscard]] bool before(std::uint32_t a, std::uint32_t b) const {
    const Flow &x = flows_[a].flow, &y = flows_[b].flow;
    return std::pair{x.begin, x.activity} < std::pair{y.begin, y.activity};
  }
  void insert(std::uint32_t number);
  void touch(std::int64_t time) { first_change_ = std::min(first_change_, time); }
  void restore();
  void step(std::int64_t now);
  void keep();

  std::vector<std::uint32_t> path_;  // per path of the model, its number in net_
  Model net_;                        // hot paths and their links
  std::vector<Known> flows_;
  std::unordered_map<std::uint32_t, std::uint32_t> of_activity_;
  std::vector<std::uint32_t> order_;  // flows by begin
  std::vector<State> kept_;           // by time; the first is the beginning
  std::vector<std::uint32_t> number_of_;  // per flow of LinkSharing, while it is in flight
  State now_;
  std::int64_t first_change_;
  std::vector<std::uint32_t> ended_;
  std::vector<Change> changed_;
};

}  // namespace podsim::max_plus
