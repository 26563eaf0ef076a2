#include "sim/topology/damaged.hpp"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "sim/topology/graph.hpp"

namespace podsim {

/// Searches from the chips that detours have started from so far. Several threads may ask.
class DamagedTopology::Detours {
 public:
  std::vector<LinkId> path(ChipId from, ChipId to, const DamagedTopology& topology) {
    std::vector<LinkId> path = path_to(*search(from, true, topology), to);
    return path.empty() ? path_to(*search(from, false, topology), to) : path;
  }

 private:
  using Arrivals = std::shared_ptr<const std::vector<Arrival>>;
  static constexpr std::size_t most_kept = std::size_t{1} << 26;  // arrivals, of all searches

  /// `along`: over links of the machine's dimensions only.
  Arrivals search(ChipId from, bool along, const DamagedTopology& topology) {
    const std::lock_guard lock{mutex_};
    const auto known = searches_.find({from.value, along});
    if (known != searches_.end()) return known->second;
    std::optional<LinkList>& links = along ? along_ : any_;
    if (!links) links.emplace(topology, along ? [&](LinkId link) { return topology.dimension_of(link).has_value(); } : std::function<bool(LinkId)>{});
    if ((searches_.size() + 1) * static_cast<std::size_t>(topology.nodes()) > most_kept) searches_.clear();
    return searches_[{from.value, along}] = std::make_shared<const std::vector<Arrival>>(arrivals_from(*links, from));
  }

  std::mutex mutex_;
  std::optional<LinkList> along_, any_;
  std::map<std::pair<int, bool>, Arrivals> searches_;
};

DamagedTopology::DamagedTopology(std::shared_ptr<const Topology> whole, Damage damage)
    : whole_{std::move(whole)}, damage_{std::move(damage)}, broken_(static_cast<std::size_t>(whole_->link_slots()), false), detours_{std::make_shared<Detours>()} {
  for (const LinkId link : damage_.broken) broken_[link.index()] = true;
}

std::vector<OutLink> DamagedTopology::out_links(ChipId node) const {
  std::vector<OutLink> links = whole_->out_links(node);
  std::erase_if(links, [&](const OutLink& out) { return is_broken(out.link); });
  return links;
}

LinkParameters DamagedTopology::link(LinkId link) const {
  LinkParameters parameters = whole_->link(link);
  if (const auto slowed = damage_.slowed.find(link); slowed != damage_.slowed.end()) parameters.bandwidth = slowed->second * parameters.bandwidth;
  return parameters;
}

Status DamagedTopology::route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const {
  const auto first = static_cast<std::ptrdiff_t>(links.size());
  if (auto ok = whole_->route(from, to, options, links); !ok) return ok;
  if (std::none_of(links.begin() + first, links.end(), [&](LinkId link) { return is_broken(link); })) return success();
  const std::vector<LinkId> usual(links.begin() + first, links.end());
  links.resize(static_cast<std::size_t>(first));
  const std::vector<LinkId> detour = detours_->path(from, to, *this);
  if (detour.empty())
    return Diagnostic{{}, fmt::format("chip {} cannot be reached from {}: every way there is broken", chip_name(to), chip_name(from))};
  if (!is_hop(usual.front())) links.push_back(usual.front());
  links.insert(links.end(), detour.begin(), detour.end());
  if (!is_hop(usual.back())) links.push_back(usual.back());
  return success();
}

}  // namespace podsim
