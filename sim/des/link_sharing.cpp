#include "sim/des/link_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace podsim::des {

namespace {

constexpr int rate_bits = 61;  // of the fastest link's capacity: sums of rates on a link stay below 2^63

}  // namespace

LinkSharing::LinkSharing(const Model& model) : model_{model} {
  double fastest = 0;
  for (const ModelLink& link : model.links)
    if (!is_unlimited(link.bandwidth)) fastest = std::max(fastest, link.bandwidth.count());
  quantum_ = std::ldexp(1.0, fastest > 0 ? std::ilogb(fastest) + 1 - rate_bits : 0);
  links_.resize(model.links.size());
  shares_.resize(model.links.size());
  for (std::size_t l = 0; l < links_.size(); ++l) {
    const BytesPerSecond bandwidth = model.links[l].bandwidth;
    links_[l].capacity = is_unlimited(bandwidth) ? std::numeric_limits<std::int64_t>::max()
                                                 : std::max<std::int64_t>(1, static_cast<std::int64_t>(bandwidth.count() / quantum_));
  }
  std::size_t most = 0;
  for (std::uint32_t p = 0; p < model.paths.size(); ++p) {
    std::int64_t rate = std::numeric_limits<std::int64_t>::max();
    for (const PathLink& link : links_of(p))
      if (!is_unlimited(model.links[link.link].bandwidth)) rate = std::min(rate, links_[link.link].capacity / link.weight);
    rate_alone_.push_back(rate);
    alone_.push_back(rate == std::numeric_limits<std::int64_t>::max() ? std::numeric_limits<double>::infinity() : to_bytes_per_second(rate));
    most = std::max(most, links_of(p).size());
  }
  free_.resize(most + 1);
}

void LinkSharing::start(std::uint32_t path, double bytes, User user, std::int64_t now) {
  const auto links = links_of(path);
  auto& free = free_[links.size()];
  if (free.empty()) {
    free.push_back(static_cast<std::uint32_t>(flows_.size()));
    flows_.push_back({});
    flows_.back().first_member = static_cast<std::uint32_t>(members_.size());
    members_.resize(members_.size() + links.size());
  }
  const std::uint32_t id = free.back();
  free.pop_back();
  Flow& flow = flows_[id];
  flow.bytes = bytes;
  flow.rate = 0;
  flow.since = now;
  flow.end = never;
  flow.path = path;
  flow.user = user;

  bool is_alone = true;
  for (std::size_t i = 0; i < links.size(); ++i) {
    Link& link = links_[links[i].link];
    const auto member = static_cast<std::uint32_t>(flow.first_member + i);
    members_[member] = {id, link.first, nobody};
    if (link.first != nobody) members_[link.first].previous = member, is_alone = false;
    link.first = member;
    link.weight += links[i].weight;
  }
  if (is_alone) {
    set_rate(id, rate_alone_[path], now);
    return;
  }
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const PathLink& link : links) least = std::min(least, links_[link.link].capacity / links_[link.link].weight);
  for (const PathLink& link : links) touch(link.link, least);
}

LinkSharing::User LinkSharing::finish(std::uint32_t id) {
  Flow& flow = flows_[id];
  const auto links = links_of(flow.path);
  for (std::size_t i = 0; i < links.size(); ++i) {
    Link& link = links_[links[i].link];
    const Member& member = members_[flow.first_member + i];
    if (member.previous != nobody)
      members_[member.previous].next = member.next;
    else
      link.first = member.next;
    if (member.next != nobody) members_[member.next].previous = member.previous;
    link.weight -= links[i].weight;
    if (link.first != nobody) touch(links[i].link, flow.rate);
  }
  flow.end = never;
  free_[links.size()].push_back(id);
  return flow.user;
}

void LinkSharing::touch(std::uint32_t link, std::int64_t threshold) {
  threshold_ = touched_.empty() ? threshold : std::min(threshold_, threshold);
  if (shares_[link].touched) return;
  shares_[link].touched = true;
  touched_.push_back(link);
}

/// What the old rate has moved is taken off only when the rate changes, so that an unchanged flow keeps its end to the bit.
void LinkSharing::set_rate(std::uint32_t id, std::int64_t rate, std::int64_t now) {
  Flow& flow = flows_[id];
  if (flow.rate == rate && flow.end != never) return;
  flow.bytes = std::max(0.0, flow.bytes - to_bytes_per_second(flow.rate) * 1e-12 * static_cast<double>(now - flow.since));
  flow.rate = rate;
  flow.since = now;
  const Seconds duration{flow.bytes / to_bytes_per_second(rate)};
  flow.end = fits_clock(duration) ? later(Picoseconds{now}, ceil_to_clock(duration)).count() : end_of_clock.count();
  changed_.push_back(id);
}

void LinkSharing::solve(std::int64_t now) {
  ++solution_;
  collect();
  fill(now);
}

/// The flows that may change, and the links that they are on.
void LinkSharing::collect() {
  open_links_.clear();
  open_flows_.clear();
  for (const std::uint32_t link : touched_) {
    shares_[link].touched = false;
    visit(link);
  }
  touched_.clear();
  for (std::size_t i = 0; i < open_links_.size(); ++i) {
    Share& share = shares_[open_links_[i]];
    for (std::uint32_t m = links_[open_links_[i]].first; m != nobody; m = members_[m].next) {
      const std::uint32_t id = members_[m].flow;
      Flow& flow = flows_[id];
      const auto links = links_of(flow.path);
      const std::uint32_t weight = links[m - flow.first_member].weight;
      if (flow.end != never && flow.rate < threshold_) {
        share.left -= flow.rate * weight;
        continue;
      }
      share.weight += weight;
      if (flow.visited == solution_) continue;
      flow.visited = solution_;
      open_flows_.push_back(id);
      for (const PathLink& link : links) visit(link.link);
    }
  }
  solved_ += static_cast<std::int64_t>(open_flows_.size());
}

void LinkSharing::visit(std::uint32_t link) {
  if (shares_[link].visited == solution_) return;
  shares_[link] = {links_[link].capacity, 0, solution_, shares_[link].touched};
  open_links_.push_back(link);
}

/// Progressive filling: the links with the least share set the rate of their flows, then the next ones, until every flow has its rate.
void LinkSharing::fill(std::int64_t now) {
  const auto share_of = [&](std::uint32_t link) { return shares_[link].left / shares_[link].weight; };
  levels_.clear();
  for (const std::uint32_t link : open_links_)
    if (shares_[link].weight > 0) levels_.push_back({share_of(link), link});
  std::make_heap(levels_.begin(), levels_.end(), std::greater<>{});
  std::size_t without_rate = open_flows_.size();
  const std::uint64_t has_rate = solution_ + 1;  // solutions count by two
  while (without_rate > 0) {
    // Shares only grow while slower flows get their rates, so a share in the heap is a lower bound of the link's own.
    tied_.clear();
    std::int64_t rate = 0, tied_below = std::numeric_limits<std::int64_t>::max();
    while (!levels_.empty() && levels_.front().share <= tied_below) {
      std::pop_heap(levels_.begin(), levels_.end(), std::greater<>{});
      const std::uint32_t link = levels_.back().link;
      levels_.pop_back();
      if (shares_[link].weight == 0) continue;
      const std::int64_t share = share_of(link);
      if (!levels_.empty() && (share > levels_.front().share && tied_.empty())) {
        levels_.push_back({share, link});
        std::push_heap(levels_.begin(), levels_.end(), std::greater<>{});
        continue;
      }
      if (tied_.empty()) {
        rate = tied_below = std::max<std::int64_t>(share, 1);
      } else if (share > tied_below) {
        levels_.push_back({share, link});
        std::push_heap(levels_.begin(), levels_.end(), std::greater<>{});
        continue;
      }
      tied_.push_back(link);
    }
    for (const std::uint32_t link : tied_)
      for (std::uint32_t m = links_[link].first; m != nobody; m = members_[m].next) {
        const std::uint32_t id = members_[m].flow;
        if (flows_[id].visited != solution_) continue;  // below the threshold, or has its rate
        flows_[id].visited = has_rate;
        --without_rate;
        for (const PathLink& on : links_of(flows_[id].path)) {
          shares_[on.link].left -= rate * on.weight;
          shares_[on.link].weight -= on.weight;
        }
        set_rate(id, rate, now);
      }
  }
  ++solution_;
}

}  // namespace podsim::des
