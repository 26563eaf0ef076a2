#include "sim/mesh/damaged.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/mesh/graph.hpp"

namespace podsim {

std::vector<OutLink> DamagedTopology::out_links(ChipId node) const {
  std::vector<OutLink> links = whole_->out_links(node);
  std::erase_if(links, [&](const OutLink& out) { return damage_.broken.count(out.link) > 0; });
  return links;
}

LinkParameters DamagedTopology::link(LinkId link) const {
  LinkParameters parameters = whole_->link(link);
  if (const auto slowed = damage_.slowed.find(link); slowed != damage_.slowed.end()) parameters.bandwidth = slowed->second * parameters.bandwidth;
  return parameters;
}

Done DamagedTopology::route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const {
  std::vector<LinkId> usual;
  if (auto ok = whole_->route(from, to, options, usual); !ok) return ok;
  const auto broken = [&](LinkId link) { return damage_.broken.count(link) > 0; };
  if (std::none_of(usual.begin(), usual.end(), broken)) {
    links.insert(links.end(), usual.begin(), usual.end());
    return done();
  }
  std::vector<LinkId> detour = fewest_hops_path(*this, from, to, [&](LinkId link) { return dimension_of(link).has_value(); });
  if (detour.empty()) detour = fewest_hops_path(*this, from, to);
  if (detour.empty())
    return Diagnostic{{}, fmt::format("chip {} cannot be reached from {}: every way there is broken", chip_name(to), chip_name(from))};
  if (!is_hop(usual.front())) links.push_back(usual.front());
  links.insert(links.end(), detour.begin(), detour.end());
  if (!is_hop(usual.back())) links.push_back(usual.back());
  return done();
}

}  // namespace podsim
