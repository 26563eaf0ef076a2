// Several slices joined by a data-centre network.
#pragma once

#include <memory>

#include "sim/topology/topology.hpp"

namespace podsim {

/// `slices` copies of one topology, chips of slice s behind those of slice s - 1. Within a slice everything is as in one; between slices a transfer
/// goes from the chip to its host, over the host's network interface to the other slice's host, and to the chip. Switches: the slices' own, the
/// hosts, the network.
class JoinedSlices final : public Topology {
 public:
  JoinedSlices(std::shared_ptr<const Topology> slice, int slices, SliceJoin join);

  [[nodiscard]] int chips() const override { return slices_ * slice_->chips(); }
  [[nodiscard]] int nodes() const override { return chips() + slices_ * (inner_switches() + hosts_) + 1; }
  [[nodiscard]] int link_slots() const override { return slices_ * (slice_->link_slots() + 2 * (slice_->chips() + hosts_)); }
  [[nodiscard]] std::vector<OutLink> out_links(ChipId node) const override;
  [[nodiscard]] LinkParameters link(LinkId link) const override;
  [[nodiscard]] std::optional<int> dimension_of(LinkId link) const override;
  [[nodiscard]] bool closes(int dimension) const override { return slice_->closes(dimension); }
  [[nodiscard]] std::vector<LinkId> broken_links() const override;
  [[nodiscard]] std::optional<SliceParts> parts() const override { return SliceParts{*slice_, slices_, join_}; }
  [[nodiscard]] std::optional<LinkId> inner_link(ChipId chip, int core) const override;
  [[nodiscard]] bool is_hop(LinkId link) const override;
  /// Slices may change places; chips equivalent within a slice may still be driven by different hosts.
  [[nodiscard]] std::vector<ChipClass> chip_classes() const override;
  [[nodiscard]] int link_class(LinkId link) const override;
  Status route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const override;
  [[nodiscard]] std::string link_name(LinkId link) const override;
  [[nodiscard]] std::string chip_name(ChipId node) const override;

 private:
  [[nodiscard]] int inner_switches() const { return slice_->nodes() - slice_->chips(); }
  [[nodiscard]] int slice_links() const { return slices_ * slice_->link_slots(); }  // ids below it are of slices
  // Behind them: 2 per chip (to its host, from it), then 2 per host (to the network, from it).
  [[nodiscard]] LinkId chip_link(int chip, bool up) const { return LinkId{slice_links() + 2 * chip + (up ? 0 : 1)}; }
  [[nodiscard]] LinkId host_link(int host, bool up) const { return LinkId{slice_links() + 2 * chips() + 2 * host + (up ? 0 : 1)}; }
  [[nodiscard]] int host_of(int chip) const {
    return chip / slice_->chips() * hosts_ + join_.host_of[static_cast<std::size_t>(chip % slice_->chips())];
  }
  [[nodiscard]] ChipId host_node(int host) const { return ChipId{chips() + slices_ * inner_switches() + host}; }
  [[nodiscard]] ChipId network_node() const { return ChipId{nodes() - 1}; }
  /// A node of a slice as a node of all, and which slice and node a node of all is.
  [[nodiscard]] ChipId global(int slice, ChipId node) const;
  [[nodiscard]] std::pair<int, ChipId> local(ChipId node) const;

  std::shared_ptr<const Topology> slice_;
  int slices_ = 1, hosts_ = 1;
  SliceJoin join_;
};

}  // namespace podsim
