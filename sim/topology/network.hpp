// A topology written out: chips, switches, cables.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/topology/topology.hpp"

namespace podsim {

/// A cable joins two nodes, each way with the same parameters. Nodes below `chips` are chips, the others switches.
struct Cable {
  int from = 0, to = 0;
  LinkParameters link{};
  std::optional<int> dimension;  // which of a machine's links it is made of
  friend bool operator==(const Cable&, const Cable&) = default;
};

/// What is known of a network because of the way it is built: its routes without a search, and its classes of equivalent chips and links. The links
/// of cable i are 2i there and 2i + 1 back. Whoever writes one answers for it: routes must be those that Network finds by itself (a test compares
/// them).
class Wiring {
 public:
  virtual ~Wiring() = default;
  /// The links from one chip to another one, appended.
  virtual void route(ChipId from, ChipId to, std::vector<LinkId>& links) const = 0;
  /// As Topology has them.
  [[nodiscard]] virtual std::vector<ChipClass> chip_classes() const = 0;
  [[nodiscard]] virtual int link_class(LinkId link) const = 0;
};

/// Routes take the fewest hops. Where several links lead on, a packet to chip n takes the (n mod count)-th, in the order of ids: the static rule of
/// fat trees (d-mod-k), which spreads destinations over the switches and keeps a route where it is.
///   cost    with a wiring, route O(hops). Without, the first route to a chip takes a breadth-first search from it, O(links), whose result is kept:
///           4 bytes per node and chip asked for, up to 512 MiB, beyond which what is kept is searched again
class Network final : public Topology {
 public:
  /// `names` of the nodes, chips first. Errors: no chip, more than 2^24 nodes, a cable from a node to itself or to one that is not there, a chip that
  /// does not reach every other.
  static Expected<Network> make(int chips, std::vector<std::string> names, const std::vector<Cable>& cables,
                                std::shared_ptr<const Wiring> wiring = nullptr);

  [[nodiscard]] int chips() const override { return chips_; }
  [[nodiscard]] int nodes() const override { return static_cast<int>(names_.size()); }
  [[nodiscard]] int link_slots() const override { return static_cast<int>(links_.size()); }
  [[nodiscard]] std::vector<OutLink> out_links(ChipId node) const override;
  [[nodiscard]] LinkParameters link(LinkId link) const override { return links_[link.index()].parameters; }
  [[nodiscard]] std::optional<int> dimension_of(LinkId link) const override { return links_[link.index()].dimension; }
  [[nodiscard]] bool is_hop(LinkId) const override { return true; }
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
  std::vector<Link> links_;         // of cable i: 2i there, 2i + 1 back
  std::vector<std::size_t> rows_;   // per node, where its links begin in out_
  std::vector<int> out_;            // links, by increasing id at each node
  std::shared_ptr<const Wiring> wiring_;
  std::shared_ptr<Searches> searches_;  // what was searched, of all copies of the network
};

}  // namespace podsim
