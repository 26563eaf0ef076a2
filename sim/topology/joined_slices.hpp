// Several slices joined by a data-centre network.
#pragma once

#include <memory>

#include "sim/topology/topology.hpp"

namespace podsim {

/// `slices` copies of one topology; the chips of slice s follow those of slice s - 1. Transfers within a slice are routed as in a single slice. A
/// transfer between slices goes from the chip to its host, through the host's network interface to the host of the destination, and to the chip
/// there. Switch nodes: the slices' own, then the hosts, then the network.
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
  [[nodiscard]] bool parts_close(int dimension) const override { return slice_->parts_close(dimension); }
  [[nodiscard]] std::vector<LinkId> broken_links() const override;
  [[nodiscard]] std::optional<SliceParts> parts() const override { return SliceParts{*slice_, slices_, join_}; }
  [[nodiscard]] std::optional<LinkId> inner_link(ChipId chip, int core) const override;
  [[nodiscard]] bool is_hop(LinkId link) const override;
  /// Slices are interchangeable. Chips that are equivalent within a slice count as different if different hosts drive them.
  [[nodiscard]] std::vector<ChipClass> chip_classes() const override;
  [[nodiscard]] int link_class(LinkId link) const override;
  Status route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const override;
  [[nodiscard]] std::string link_name(LinkId link) const override;
  [[nodiscard]] std::string chip_name(ChipId node) const override;

 private:
  [[nodiscard]] int inner_switches() const { return slice_->nodes() - slice_->chips(); }
  [[nodiscard]] int slice_links() const { return slices_ * slice_->link_slots(); }  // lower ids belong to slices
  // Above them: 2 per chip (to its host, from it), then 2 per host (to the network, from it).
  [[nodiscard]] LinkId chip_link(int chip, bool up) const { return LinkId{slice_links() + 2 * chip + (up ? 0 : 1)}; }
  [[nodiscard]] LinkId host_link(int host, bool up) const { return LinkId{slice_links() + 2 * chips() + 2 * host + (up ? 0 : 1)}; }
  [[nodiscard]] int host_of(int chip) const {
    return chip / slice_->chips() * hosts_ + join_.host_of[static_cast<std::size_t>(chip % slice_->chips())];
  }
  [[nodiscard]] ChipId host_node(int host) const { return ChipId{chips() + slices_ * inner_switches() + host}; }
  [[nodiscard]] ChipId network_node() const { return ChipId{nodes() - 1}; }
  /// Converts between a node of a slice and a node of the whole.
  [[nodiscard]] ChipId global(int slice, ChipId node) const;
  [[nodiscard]] std::pair<int, ChipId> local(ChipId node) const;

  std::shared_ptr<const Topology> slice_;
  int slices_ = 1, hosts_ = 1;
  SliceJoin join_;
};

}  // namespace podsim
