// How long the tasks of several variants take if nothing holds them back, and which links they cross.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/max_plus/joint_classes.hpp"
#include "sim/engine/max_plus/lane_times.hpp"
#include "sim/engine/max_plus/rows.hpp"
#include "sim/engine/max_plus/timings.hpp"

namespace podsim::max_plus {

/// Rates and durations of each lane, in picoseconds; by classes of paths and nodes that are alike in every lane.
class LaneTimings {
 public:
  explicit LaneTimings(std::span<const Model* const> models);

  struct OfTransfer {
    Lanes delay, flow;  // flow: 0 in all lanes if none is needed
  };
  /// Of a transfer, by class of its path.
  [[nodiscard]] std::vector<OfTransfer> transfer(std::uint32_t program, std::uint32_t task);
  [[nodiscard]] std::uint32_t path_class(std::uint32_t path) const { return paths_.at(path); }
  /// Of a work as a whole, or of the sum at the receiver of a Shift or Recv, by class of the node.
  [[nodiscard]] std::vector<Lanes> work(std::uint32_t program, std::uint32_t task);
  [[nodiscard]] std::vector<Lanes> reduction(std::uint32_t program, std::uint32_t task);
  [[nodiscard]] std::uint32_t node_class(std::uint32_t node) const { return nodes_.at(node); }

  /// Of a work in one lane, by that lane's own class of the node.
  [[nodiscard]] const Timings::OfWork* phases(std::size_t lane, std::uint32_t program, std::uint32_t task) {
    return timings_[lane].of_work(models_[lane]->costs[program][task]);
  }
  [[nodiscard]] std::uint32_t class_in(std::size_t lane, std::uint32_t node) const { return nodes_.members[nodes_.at(node)][lane]; }
  [[nodiscard]] std::span<const LinkRates> rates() const { return rates_; }

 private:
  std::span<const Model* const> models_;
  std::vector<LinkRates> rates_;  // per lane
  std::vector<Timings> timings_;  // per lane
  JointClasses paths_, nodes_;
};

/// The links of paths, numbered in the order in which tasks use them, so that those of one row stand side by side.
struct PlacedLinks {
  std::vector<std::uint32_t> links;                                        // by place
  std::vector<PathLink> on_path;                                           // LinkRates::path_links, with places; memories keep their numbers
  std::vector<std::pair<std::uint32_t, std::uint32_t>> between_memories;  // per path, its entries there that are no memories: those begin and end it

  PlacedLinks(const Model& model, const LinkRates& rates, const Rows& rows);
};

}  // namespace podsim::max_plus
