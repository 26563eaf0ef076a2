// A topology written out: chips, switches, cables.
#pragma once

#include <string>
#include <vector>

#include "sim/mesh/topology.hpp"

namespace podsim {

/// A cable joins two nodes, each way with the same parameters. Nodes below `chips` are chips, the others switches.
struct Cable {
  int from = 0, to = 0;
  LinkParameters link{};
  std::optional<int> dimension;  // which of a machine's links it is made of
  friend bool operator==(const Cable&, const Cable&) = default;
};

/// Routes take the fewest hops. Where several links lead on, a packet to chip n takes the (n mod count)-th, in the order of ids: the static rule of
/// fat trees (d-mod-k), which spreads destinations over the switches and keeps a route where it is.
///   memory  two bytes per (chip, node)
class Network final : public Topology {
 public:
  /// `names` of the nodes, chips first. Errors: no chip, more than 8192 nodes, a cable from a node to itself or to one that is not there, a chip that
  /// does not reach every other.
  static Expected<Network> make(int chips, std::vector<std::string> names, const std::vector<Cable>& cables);

  [[nodiscard]] int chips() const override { return chips_; }
  [[nodiscard]] int nodes() const override { return static_cast<int>(names_.size()); }
  [[nodiscard]] int link_slots() const override { return static_cast<int>(links_.size()); }
  [[nodiscard]] std::vector<OutLink> out_links(ChipId node) const override;
  [[nodiscard]] LinkParameters link(LinkId link) const override { return links_[link.index()].parameters; }
  [[nodiscard]] std::optional<int> dimension_of(LinkId link) const override { return links_[link.index()].dimension; }
  [[nodiscard]] bool is_hop(LinkId) const override { return true; }
  Done route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const override;
  [[nodiscard]] std::string link_name(LinkId link) const override;
  [[nodiscard]] std::string chip_name(ChipId node) const override { return names_[node.index()]; }

 private:
  struct Link {
    int from = 0, to = 0;
    LinkParameters parameters{};
    std::optional<int> dimension;
  };
  int chips_ = 0;
  std::vector<std::string> names_;
  std::vector<Link> links_;                      // of cable i: 2i there, 2i + 1 back
  std::vector<std::vector<int>> out_;            // per node, links
  std::vector<std::vector<std::int16_t>> hops_;  // [to][node]
};

}  // namespace podsim
