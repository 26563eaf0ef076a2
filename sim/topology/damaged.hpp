// Any topology with some links broken or slowed.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "sim/topology/topology.hpp"

namespace podsim {

/// The faults of a topology's links. The two directions of a cable are two links.
struct Damage {
  std::set<LinkId> broken;
  std::map<LinkId, double> slowed;  // fraction of their bandwidth, above 0
  [[nodiscard]] bool none() const { return broken.empty() && slowed.empty(); }
  friend bool operator==(const Damage&, const Damage&) = default;
};

/// A route that meets a broken link becomes a detour: the path of fewest hops; ties by the lowest links in order of travel (dimension 0 first, +
/// before -). It uses only links of the machine's dimensions if they reach the destination. All other routes stay, also those over slowed links.
///   cost    the first detour from a chip takes a breadth-first search; its result is kept: 8 bytes per node, up to 512 MiB in all
class DamagedTopology final : public Topology {
 public:
  DamagedTopology(std::shared_ptr<const Topology> whole, Damage damage);

  [[nodiscard]] int chips() const override { return whole_->chips(); }
  [[nodiscard]] int nodes() const override { return whole_->nodes(); }
  [[nodiscard]] int link_slots() const override { return whole_->link_slots(); }
  [[nodiscard]] std::vector<OutLink> out_links(ChipId node) const override;
  [[nodiscard]] LinkParameters link(LinkId link) const override;
  [[nodiscard]] std::optional<int> dimension_of(LinkId link) const override { return whole_->dimension_of(link); }
  [[nodiscard]] const Grid* grid() const override { return whole_->grid(); }
  [[nodiscard]] bool closes(int dimension) const override { return whole_->closes(dimension); }
  [[nodiscard]] bool parts_close(int dimension) const override { return whole_->parts_close(dimension); }
  [[nodiscard]] std::vector<LinkId> broken_links() const override { return {damage_.broken.begin(), damage_.broken.end()}; }
  [[nodiscard]] std::optional<LinkId> inner_link(ChipId chip, int core) const override { return whole_->inner_link(chip, core); }
  [[nodiscard]] bool is_hop(LinkId link) const override { return whole_->is_hop(link); }
  Status route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const override;
  [[nodiscard]] std::string link_name(LinkId link) const override { return whole_->link_name(link); }
  [[nodiscard]] std::string chip_name(ChipId node) const override { return whole_->chip_name(node); }

 private:
  [[nodiscard]] bool is_broken(LinkId link) const { return broken_[link.index()]; }

  class Detours;

  std::shared_ptr<const Topology> whole_;
  Damage damage_;
  std::vector<bool> broken_;          // per link: read for every hop of every route
  std::shared_ptr<Detours> detours_;  // search results, shared by all copies
};

}  // namespace podsim
