// A grid that has lost some of its cables, for tests: what is left is no longer the same from everywhere.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/mesh/graph.hpp"

namespace podsim::testing {

/// Routes are the shortest by latency, then by hops, whatever the options say; injection and ejection as of the grid.
class BrokenGrid final : public Topology {
 public:
  explicit BrokenGrid(Grid grid) : grid_{std::move(grid)} {}

  /// Both directions of the cable that leaves `chip` along `dimension`, +1 or -1; without one there nothing happens.
  void cut(ChipId chip, int dimension, int sign) {
    const auto link = grid_.link_from(chip, dimension, sign);
    if (!link) return;
    cut_.push_back(*link);
    for (const OutLink& out : grid_.out_links(chip))
      if (out.link == *link) cut_.push_back(*grid_.link_from(out.to, dimension, -sign));
  }

  [[nodiscard]] int chips() const override { return grid_.chips(); }
  [[nodiscard]] int link_slots() const override { return grid_.link_slots(); }
  [[nodiscard]] std::vector<OutLink> out_links(ChipId chip) const override {
    std::vector<OutLink> out = grid_.out_links(chip);
    std::erase_if(out, [&](const OutLink& o) { return std::find(cut_.begin(), cut_.end(), o.link) != cut_.end(); });
    return out;
  }
  [[nodiscard]] LinkParameters link(LinkId link) const override { return grid_.link(link); }
  [[nodiscard]] bool is_hop(LinkId link) const override { return grid_.is_hop(link); }
  Done route(ChipId from, ChipId to, const RouteOptions&, std::vector<LinkId>& links) const override {
    if (from == to) return done();
    const std::vector<LinkId> hops = least_latency_path(*this, from, to);
    if (hops.empty()) return Diagnostic{{}, "no way from chip " + chip_name(from) + " to chip " + chip_name(to)};
    std::vector<LinkId> whole;  // of the grid: first and last are its injection and ejection
    if (auto ok = grid_.route(from, to, {}, whole); !ok) return ok.error();
    if (!grid_.is_hop(whole.front())) links.push_back(whole.front());
    links.insert(links.end(), hops.begin(), hops.end());
    if (!grid_.is_hop(whole.back())) links.push_back(whole.back());
    return done();
  }
  [[nodiscard]] std::string link_name(LinkId link) const override { return grid_.link_name(link); }
  [[nodiscard]] std::string chip_name(ChipId chip) const override { return grid_.chip_name(chip); }

 private:
  Grid grid_;
  std::vector<LinkId> cut_;
};

}  // namespace podsim::testing
