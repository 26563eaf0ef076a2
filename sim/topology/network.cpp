#include "sim/topology/network.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

namespace podsim {

namespace {

constexpr std::size_t most_nodes = std::size_t{1} << 24;
constexpr std::size_t most_kept = std::size_t{1} << 27;  // hops, over all chips that routes lead to

}  // namespace

/// Hops from every node to the chips that routes have led to so far. Several threads may ask.
class Network::Searches {
 public:
  using Hops = std::shared_ptr<const std::vector<int>>;

  Hops to(ChipId chip, const Network& network) {
    {
      const std::lock_guard lock{mutex_};
      if (const auto known = hops_.find(chip.value); known != hops_.end()) return known->second;
    }
    Hops found = std::make_shared<const std::vector<int>>(network.hops_to(chip));
    const std::lock_guard lock{mutex_};
    if ((hops_.size() + 1) * found->size() > most_kept) hops_.clear();
    hops_[chip.value] = found;
    return found;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<int, Hops> hops_;
};

Expected<Network> Network::make(int chips, std::vector<std::string> names, const std::vector<Cable>& cables, std::shared_ptr<const Wiring> wiring) {
  if (chips < 1) return Diagnostic{{}, "a network needs a chip"};
  if (names.size() < static_cast<std::size_t>(chips) || names.size() > most_nodes)
    return Diagnostic{{}, fmt::format("a network has at most {} chips and switches, got {}", most_nodes, names.size())};
  Network network;
  network.chips_ = chips;
  network.names_ = std::move(names);
  network.wiring_ = std::move(wiring);
  const int nodes = network.nodes();
  network.links_.reserve(2 * cables.size());
  for (const Cable& cable : cables) {
    if (cable.from < 0 || cable.to < 0 || cable.from >= nodes || cable.to >= nodes || cable.from == cable.to)
      return Diagnostic{{}, fmt::format("a cable joins two different nodes of 0 to {}, got {} and {}", nodes - 1, cable.from, cable.to)};
    network.links_.push_back({cable.from, cable.to, cable.link, cable.dimension});
    network.links_.push_back({cable.to, cable.from, cable.link, cable.dimension});
  }
  network.lay_rows();
  network.searches_ = std::make_shared<Searches>();
  // Cables go both ways: if every chip reaches the first one, each reaches all others.
  const std::vector<int> hops = network.hops_to(ChipId{0});
  if (const auto lost = std::find(hops.begin(), hops.begin() + chips, -1); lost != hops.begin() + chips)
    return Diagnostic{{},
                      fmt::format("chip {} cannot be reached from {}", network.chip_name(ChipId{static_cast<int>(lost - hops.begin())}),
                                  network.chip_name(ChipId{0}))};
  return network;
}

void Network::lay_rows() {
  rows_.assign(names_.size() + 1, 0);
  for (const Link& link : links_) ++rows_[static_cast<std::size_t>(link.from) + 1];
  for (std::size_t node = 0; node < names_.size(); ++node) rows_[node + 1] += rows_[node];
  out_.resize(links_.size());
  std::vector<std::size_t> next(rows_.begin(), rows_.end() - 1);
  for (std::size_t link = 0; link < links_.size(); ++link) out_[next[static_cast<std::size_t>(links_[link].from)]++] = static_cast<int>(link);
}

/// Of every node; -1 where there is no way. Cables go both ways, so hops to a chip are hops from it.
std::vector<int> Network::hops_to(ChipId chip) const {
  std::vector<int> hops(names_.size(), -1);
  std::vector<int> reached{chip.value};
  hops[chip.index()] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const auto node = static_cast<std::size_t>(reached[i]);
    for (const int link : out(node)) {
      const int other = links_[static_cast<std::size_t>(link)].to;
      if (int& far = hops[static_cast<std::size_t>(other)]; far < 0) far = hops[node] + 1, reached.push_back(other);
    }
  }
  return hops;
}

std::vector<OutLink> Network::out_links(ChipId node) const {
  std::vector<OutLink> links;
  const auto ids = out(node.index());
  links.reserve(ids.size());
  for (const int link : ids) links.push_back({LinkId{link}, ChipId{links_[static_cast<std::size_t>(link)].to}});
  return links;
}

std::vector<ChipClass> Network::chip_classes() const { return wiring_ == nullptr ? Topology::chip_classes() : wiring_->chip_classes(); }

Status Network::route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const {
  if (!options.dimension_order.empty()) return Diagnostic{{}, "a network of switches has no dimensions to order"};
  if (from == to) return success();
  if (wiring_ != nullptr) {
    wiring_->route(from, to, links);
    return success();
  }
  const Searches::Hops found = searches_->to(to, *this);
  const std::vector<int>& hops = *found;
  std::vector<int> onward;
  for (std::size_t node = from.index(); node != to.index();) {
    onward.clear();
    for (const int link : out(node))
      if (hops[static_cast<std::size_t>(links_[static_cast<std::size_t>(link)].to)] == hops[node] - 1) onward.push_back(link);
    const auto dimension = [&](int link) { return links_[static_cast<std::size_t>(link)].dimension.value_or(std::numeric_limits<int>::max()); };
    int first = std::numeric_limits<int>::max();
    for (const int link : onward) first = std::min(first, dimension(link));
    std::erase_if(onward, [&](int link) { return dimension(link) != first; });
    const int link = onward[to.index() % onward.size()];
    links.push_back(LinkId{link});
    node = static_cast<std::size_t>(links_[static_cast<std::size_t>(link)].to);
  }
  return success();
}

std::string Network::link_name(LinkId link) const {
  const Link& l = links_[link.index()];
  return fmt::format("{}->{}", names_[static_cast<std::size_t>(l.from)], names_[static_cast<std::size_t>(l.to)]);
}

}  // namespace podsim
