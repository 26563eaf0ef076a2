// An explicit topology: a list of chips, switches and cables.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/topology/topology.hpp"

namespace podsim {

/// A cable joins two nodes; both directions have the same parameters. Nodes below `chips` are chips, the others switches.
struct Cable {
  int from = 0, to = 0;
  LinkParameters link{};
  std::optional<int> dimension;  // the machine's dimension whose links the cable is one of
  friend bool operator==(const Cable&, const Cable&) = default;
};

/// A closed form of a regular network: routes without a search, how its chips are alike, and its classes of equivalent chips and links. Cable i has links 2i (from -> to) and
/// 2i + 1 (back). The routes must equal those that Network finds by search; a test compares them.
class Wiring : public Symmetry {
 public:
  /// Appends the links from one chip to another.
  virtual void route(ChipId from, ChipId to, std::vector<LinkId>& links) const = 0;
  /// As in Topology.
  [[nodiscard]] virtual std::vector<ChipClass> chip_classes() const = 0;
  [[nodiscard]] virtual int link_class(LinkId link) const = 0;
};

/// Routes take the fewest hops. Of several next links, those of the machine's lowest dimension come first (dimension order; links of no dimension come
/// last), and of several of these a packet to chip n takes number (n mod count), in the order of ids. The latter is the static rule of fat trees
/// (d-mod-k); it spreads destinations over the switches and always gives the same route.
///   cost    with a wiring, route O(hops). Without one, the first route to a chip takes a breadth-first search, O(links). The result is kept: 4 bytes
///           per node and destination, up to 512 MiB; destinations beyond that are searched again
class Network final : public Topology {
 public:
  /// `names` of the nodes, chips first. Errors: no chip, more than 2^24 nodes, a cable from a node to itself or to an unknown node, a chip that
  /// cannot reach every other one.
  static Expected<Network> make(int chips, std::vector<std::string> names, const std::vector<Cable>& cables,
                                std::shared_ptr<const Wiring> wiring = nullptr);

  [[nodiscard]] int chips() const override { return chips_; }
  [[nodiscard]] int nodes() const override { return static_cast<int>(names_.size()); }
  [[nodiscard]] int link_slots() const override { return static_cast<int>(links_.size()); }
  [[nodiscard]] std::vector<OutLink> out_links(ChipId node) const override;
  [[nodiscard]] LinkParameters link(LinkId link) const override { return links_[link.index()].parameters; }
  [[nodiscard]] std::optional<int> dimension_of(LinkId link) const override { return links_[link.index()].dimension; }
  [[nodiscard]] bool is_hop(LinkId) const override { return true; }
  [[nodiscard]] const Symmetry* symmetry() const override { return wiring_.get(); }
  [[nodiscard]] std::vector<ChipClass> chip_classes() const override;
  [[nodiscard]] int link_class(LinkId link) const override { return wiring_ == nullptr ? link.value : wiring_->link_class(link); }
  Status route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const override;
  [[nodiscard]] std::string link_name(LinkId link) const override;
  [[nodiscard]] std::string chip_name(ChipId node) const override { return names_[node.index()]; }

 private:
  struct Link {
    int from = 0, to = 0;
    LinkParameters parameters{};
    std::optional<int> dimension;
  };
  class Searches;
  [[nodiscard]] std::span<const int> out(std::size_t node) const { return {out_.data() + rows_[node], out_.data() + rows_[node + 1]}; }
  [[nodiscard]] std::vector<int> hops_to(ChipId chip) const;
  void lay_rows();

  int chips_ = 0;
  std::vector<std::string> names_;
  std::vector<Link> links_;         // of cable i: 2i from -> to, 2i + 1 back
  std::vector<std::size_t> rows_;   // per node, the position of its first link in out_
  std::vector<int> out_;            // links of each node, by increasing id
  std::shared_ptr<const Wiring> wiring_;
  std::shared_ptr<Searches> searches_;  // search results, shared by all copies of the network
};

}  // namespace podsim
