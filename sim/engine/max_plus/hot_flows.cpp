#include "sim/engine/max_plus/hot_flows.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace podsim::max_plus {

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t begins_between_states = 4;
constexpr std::size_t most_states = 256;

/// The links of hot paths, memories apart, and the fastest link of all, which decides what a quantum is.
Model net_of(const Model& model, const LinkRates& rates, const std::vector<bool>& hot, std::vector<std::uint32_t>& path_of) {
  Model net;
  std::map<std::uint32_t, std::uint32_t> link_of;
  const auto add = [&](std::uint32_t link) {
    const auto [entry, is_new] = link_of.try_emplace(link, static_cast<std::uint32_t>(net.links.size()));
    if (is_new) net.links.push_back(model.links[link]);
    return entry->second;
  };
  path_of.assign(model.paths.size(), no_device);
  for (std::uint32_t p = 0; p < model.paths.size(); ++p) {
    const auto links = rates.links_of(p);
    if (std::none_of(links.begin(), links.end(), [&](const PathLink& on) { return hot[on.link]; })) continue;
    path_of[p] = static_cast<std::uint32_t>(net.paths.size());
    Path path = model.paths[p];
    path.first = static_cast<std::uint32_t>(net.path_links.size());
    for (const PathLink& on : links)
      if (!model.links[on.link].is_memory) net.path_links.edit().push_back({add(on.link), on.weight});
    path.last = static_cast<std::uint32_t>(net.path_links.size());
    net.paths.push_back(path);
  }
  if (!rates.capacity.empty()) add(static_cast<std::uint32_t>(std::max_element(rates.capacity.begin(), rates.capacity.end()) - rates.capacity.begin()));
  for (ModelLink& link : net.links) link.is_memory = false;
  return net;
}

}  // namespace

HotFlows::HotFlows(const Model& model, const LinkRates& rates, const std::vector<bool>& hot)
    : net_{net_of(model, rates, hot, path_)}, now_{0, 0, {}, LinkSharing{net_}}, first_change_{never} {
  kept_.push_back(now_);
}

std::uint32_t HotFlows::add(const Flow& flow) {
  const auto number = static_cast<std::uint32_t>(flows_.size());
  flows_.push_back({flow, {}, -1, -1, {}});
  of_activity_.emplace(flow.activity, number);
  insert(number);
  return number;
}

void HotFlows::move(std::uint32_t number, std::int64_t begin) {
  Flow& flow = flows_[number].flow;
  if (flow.begin == begin) return;
  order_.erase(std::lower_bound(order_.begin(), order_.end(), number, [&](std::uint32_t a, std::uint32_t b) { return before(a, b); }));
  touch(flow.begin);
  flow.begin = begin;
  insert(number);
}

void HotFlows::insert(std::uint32_t number) {
  order_.insert(std::lower_bound(order_.begin(), order_.end(), number, [&](std::uint32_t a, std::uint32_t b) { return before(a, b); }), number);
  touch(flows_[number].flow.begin);
}

/// Back to the last state that knows nothing of what changed.
void HotFlows::restore() {
  while (kept_.back().time > first_change_) kept_.pop_back();
  now_ = kept_.back();
  for (const InFlight& flow : now_.in_flight) {
    if (number_of_.size() <= flow.sharing) number_of_.resize(flow.sharing + 1);
    number_of_[flow.sharing] = flow.number;
    flows_[flow.number].flow.end = flow.end;
    std::erase_if(flows_[flow.number].draws, [&](const Draw& draw) { return draw.since >= now_.time; });
  }
}

const std::vector<HotFlows::Change>& HotFlows::settle() {
  changed_.clear();
  if (first_change_ == never) return changed_;
  restore();
  first_change_ = never;
  ended_.clear();
  std::size_t kept_at = now_.next;
  for (;;) {
    std::int64_t next = now_.next < order_.size() ? flows_[order_[now_.next]].flow.begin : never;
    for (const InFlight& flow : now_.in_flight) next = std::min(next, flows_[flow.number].flow.end);
    if (next == never) break;
    if (now_.next >= kept_at + begins_between_states) {
      now_.time = next;
      keep();
      kept_at = now_.next;
    }
    step(next);
  }
  for (const std::uint32_t number : ended_) {
    Known& known = flows_[number];
    if (known.flow.begin == known.told_begin && known.flow.end == known.told_end && known.draws == known.told_draws) continue;
    const std::int64_t begin = known.told_begin < 0 ? known.flow.begin : std::min(known.flow.begin, known.told_begin);
    changed_.push_back({number, begin, std::max(known.flow.end, known.told_end)});
    known.told_begin = known.flow.begin;
    known.told_end = known.flow.end;
    known.told_draws = known.draws;
  }
  return changed_;
}

/// All that happens at one time, in des's order: ends, then begins, then rates.
void HotFlows::step(std::int64_t now) {
  std::erase_if(now_.in_flight, [&](const InFlight& flow) {
    if (flows_[flow.number].flow.end != now) return false;
    now_.sharing.finish(flow.sharing);
    ended_.push_back(flow.number);
    return true;
  });
  for (; now_.next < order_.size() && flows_[order_[now_.next]].flow.begin == now; ++now_.next) {
    const std::uint32_t number = order_[now_.next];
    Known& known = flows_[number];
    known.draws.clear();
    const std::uint32_t sharing = now_.sharing.start(path_[known.flow.path], known.flow.bytes, {}, now);
    if (number_of_.size() <= sharing) number_of_.resize(sharing + 1);
    number_of_[sharing] = number;
    now_.in_flight.push_back({number, sharing, never});
  }
  now_.sharing.settle(now, [&](std::uint32_t sharing, std::int64_t end) {
    Known& known = flows_[number_of_[sharing]];
    known.flow.end = end;
    const Draw draw{now, now_.sharing.quanta(sharing)};
    if (!known.draws.empty() && known.draws.back().since == now)
      known.draws.back() = draw;
    else
      known.draws.push_back(draw);
  });
}

/// States of long ago are kept less densely.
void HotFlows::keep() {
  if (kept_.size() == most_states)
    for (std::size_t i = 1; i < kept_.size() / 2; ++i) kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
  for (InFlight& flow : now_.in_flight) flow.end = flows_[flow.number].flow.end;
  kept_.push_back(now_);
}

}  // namespace podsim::max_plus
