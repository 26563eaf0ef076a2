#include "sim/engine/link_sharing.hpp"

#include <algorithm>
#include <functional>
#include <limits>

namespace podsim {

namespace {

constexpr int most_rounds = 30;  // of taking in who loses its bottleneck, before all that can be concerned are taken

}  // namespace

LinkSharing::LinkSharing(const Model& model) : rates_{model} {
  links_.resize(model.links.size());
  shares_.resize(model.links.size());
  for (std::size_t l = 0; l < links_.size(); ++l) {
    links_[l].capacity = rates_.capacity[l];
    links_[l].is_memory = model.links[l].is_memory;
  }
  if (!model.memory_paths.empty()) demand_.resize(links_.size());
  std::size_t most = 0;
  for (std::uint32_t p = 0; p < model.paths.size(); ++p) most = std::max(most, links_of(p).size());
  free_.resize(std::max<std::size_t>(most, 2) + 1);
  first_work_path_ = static_cast<std::uint32_t>(model.paths.size());
  if (model.memory_paths.empty()) return;
  first_memory_path_ = *std::min_element(model.memory_paths.begin(), model.memory_paths.end());
  free_work_paths_.resize(model.paths.size() - first_memory_path_);
}

std::uint32_t LinkSharing::start_work(std::uint32_t memory_path, double bytes, std::int64_t alone, User user, std::int64_t now) {
  auto& free = free_work_paths_[memory_path - first_memory_path_];
  if (free.empty()) {
    free.push_back(first_work_path_ + static_cast<std::uint32_t>(work_paths_.size()));
    work_paths_.push_back({memory_path, 0});
    rates_.path_links.push_back(PathLink{links_of(memory_path).front()});
    rates_.path_links.push_back({static_cast<std::uint32_t>(links_.size()), 1});
    rates_.path_rows.push_back(static_cast<std::uint32_t>(rates_.path_links.size()));
    rates_.path_rate.push_back(0);
    links_.push_back({});
    shares_.push_back({});
  }
  const std::uint32_t path = free.back();
  free.pop_back();
  const std::int64_t limit = rates_.of_work(bytes, alone, rates_.path_rate[memory_path]);
  links_[links_of(path).back().link].capacity = limit;
  rates_.path_rate[path] = limit;
  work_paths_[path - first_work_path_].alone = alone;
  return start(path, bytes, user, now);
}

std::uint32_t LinkSharing::start(std::uint32_t path, double bytes, User user, std::int64_t now) {
  const auto links = links_of(path);
  auto& free = free_[links.size()];
  if (free.empty()) {
    free.push_back(static_cast<std::uint32_t>(flows_.size()));
    flows_.push_back({});
    users_.push_back({});
    flows_.back().first_place = static_cast<std::uint32_t>(places_.size());
    places_.resize(places_.size() + links.size());
  }
  const std::uint32_t id = free.back();
  free.pop_back();
  Flow& flow = flows_[id];
  flow.bytes = bytes;
  flow.rate = 0;
  flow.since = now;
  flow.end = never;
  flow.path = path;
  users_[id] = user;
  flow.bottleneck = links.front().link;
  ++links_[flow.bottleneck].held;

  bool uncontended = true;
  for (std::size_t i = 0; i < links.size(); ++i) {
    Link& link = links_[links[i].link];
    uncontended &= link.flows == 0 || link.is_memory;
    join(link, {id, static_cast<std::uint32_t>(flow.first_place + i)});
    link.weight += links[i].weight;
    if (link.is_memory) {
      demand_[links[i].link] += static_cast<Demand>(rates_.path_rate[path]) * links[i].weight;
      uncontended &= fits(links[i].link);
    }
  }
  if (uncontended) {
    set_rate(id, rates_.path_rate[path], now);
    return id;
  }
  arrived_.push_back(id);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const PathLink& link : links)
    if (!fits(link.link)) least = std::min(least, links_[link.link].capacity / links_[link.link].weight);
  for (const PathLink& link : links)
    if (!fits(link.link)) touch(link.link, least);
  return id;
}

LinkSharing::User LinkSharing::finish(std::uint32_t id) {
  Flow& flow = flows_[id];
  const auto links = links_of(flow.path);
  for (std::size_t i = 0; i < links.size(); ++i) {
    Link& link = links_[links[i].link];
    leave(link, static_cast<std::uint32_t>(flow.first_place + i));
    link.weight -= links[i].weight;
    link.load -= flow.rate * links[i].weight;
    if (link.flows > 0 && !fits(links[i].link)) touch(links[i].link, flow.rate);
    if (link.is_memory) demand_[links[i].link] -= static_cast<Demand>(rates_.path_rate[flow.path]) * links[i].weight;
  }
  flow.end = never;
  --links_[flow.bottleneck].held;
  if (flow.path >= first_work_path_)
    free_work_paths_[work_paths_[flow.path - first_work_path_].memory_path - first_memory_path_].push_back(flow.path);
  free_[links.size()].push_back(id);
  return users_[id];
}

void LinkSharing::join(Link& link, Member member) {
  const std::uint32_t places = (1U << link.room) / 2;
  if (link.flows == places) {  // a block twice as large
    const std::size_t room = link.room + 1U;
    unused_blocks_.resize(std::max(unused_blocks_.size(), room + 1));
    auto& unused = unused_blocks_[room];
    if (unused.empty()) {
      unused.push_back(static_cast<std::uint32_t>(members_.size()));
      members_.resize(members_.size() + (std::size_t{1} << room) / 2);
    }
    const std::uint32_t first = unused.back();
    unused.pop_back();
    std::copy_n(members_.begin() + link.first, link.flows, members_.begin() + first);
    if (places > 0) unused_blocks_[link.room].push_back(link.first);
    link.first = first;
    link.room = static_cast<std::uint8_t>(room);
  }
  members_[link.first + link.flows] = member;
  places_[member.place] = link.flows++;
}

void LinkSharing::leave(Link& link, std::uint32_t place) {
  const Member last = members_[link.first + --link.flows];
  members_[link.first + places_[place]] = last;
  places_[last.place] = places_[place];
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
  const bool is_first = flow.end == never;
  for (const PathLink& link : links_of(flow.path)) {
    Link& on = links_[link.link];
    on.load += (rate - flow.rate) * link.weight;
    on.top = std::max(on.top, rate);
  }
  flow.bytes = std::max(0.0, flow.bytes - rates_.bytes_per_second(flow.rate) * 1e-12 * static_cast<double>(now - flow.since));
  flow.rate = rate;
  flow.since = now;
  changed_.push_back(id);
  if (is_first && flow.path >= first_work_path_ && rate == rates_.path_rate[flow.path]) {
    flow.end = later(Picoseconds{now}, Picoseconds{work_paths_[flow.path - first_work_path_].alone}).count();
    return;
  }
  flow.end = later(Picoseconds{now}, Picoseconds{rates_.duration(flow.bytes, rate)}).count();
}

/// Nothing can be added: dividing a link among flows leaves less than a quantum for each.
bool LinkSharing::full(std::uint32_t link) const {
  const Link& l = links_[link];
  const std::int64_t left = shares_[link].filling == filling_ ? shares_[link].left : l.capacity - l.load;
  return left < l.weight;
}

/// Of a flow of that rate on it. What is known of the fastest flow of a link mostly tells; if not, it is looked for once per filling, not for each
/// flow that asks: between two fillings nobody's rate changes.
bool LinkSharing::is_bottleneck(std::uint32_t link, std::int64_t rate) {
  if (!full(link)) return false;
  Share& share = shares_[link];
  const bool is_filled = share.filling == filling_;
  if (is_filled && share.filled > rate) return false;
  if (links_[link].top <= rate && (!is_filled || share.filled <= rate)) return true;
  if (share.measured != filling_) {
    share.measured = filling_;
    share.fastest = 0;
    looked_at_ += links_[link].flows;
    for (const Member& member : flows_on(link)) share.fastest = std::max(share.fastest, next_rate(flows_[member.flow]));
    if (!is_filled) links_[link].top = share.fastest;  // of the rates that they have
  }
  return share.fastest <= rate;
}

bool LinkSharing::has_bottleneck(Flow& flow) {
  const std::int64_t rate = next_rate(flow);
  if (is_bottleneck(flow.bottleneck, rate)) return true;
  for (const PathLink& link : links_of(flow.path))
    if (is_bottleneck(link.link, rate)) {
      hold(flow, link.link);
      return true;
    }
  return false;
}

void LinkSharing::solve(std::int64_t now) {
  solution_ = ++filling_;  // none has been made in this solution
  open_flows_.clear(), open_links_.clear(), collected_ = 0;
  take_seeds();
  for (int round = 0; !open_flows_.empty(); ++round) {
    if (round == most_rounds) take_concerned();
    fill();
    if (round == most_rounds || !take_losers()) break;
  }
  solved_ += static_cast<std::int64_t>(open_flows_.size());
  for (const std::uint32_t id : open_flows_) set_rate(id, flows_[id].next_rate, now);
  for (const std::uint32_t link : touched_) shares_[link].touched = false;
  touched_.clear();
  arrived_.clear();
}

void LinkSharing::take(std::uint32_t id) {
  if (taken(flows_[id])) return;
  flows_[id].filled = solution_;
  flows_[id].next_rate = flows_[id].rate;
  open_flows_.push_back(id);
}

/// The flows that came, those that are above an equal share beside them, and those whose bottleneck is none any more. A link on which many flows
/// arrive at once is looked at once: its equal share is the same for all of them.
void LinkSharing::take_seeds() {
  for (const std::uint32_t id : arrived_) {
    take(id);
    for (const PathLink& link : links_of(flows_[id].path)) {
      Share& share = shares_[link.link];
      if (share.seeded == solution_ || fits(link.link)) continue;
      share.seeded = solution_;
      const std::int64_t equal_share = links_[link.link].capacity / links_[link.link].weight;
      looked_at_ += links_[link.link].flows;
      for (const Member& member : flows_on(link.link))
        if (flows_[member.flow].rate > equal_share) take(member.flow);
    }
  }
  for (const std::uint32_t link : touched_)
    for (const Member& member : flows_on(link))
      if (Flow& flow = flows_[member.flow]; !taken(flow) && !has_bottleneck(flow)) take(member.flow);
}

/// Those that have no bottleneck beside the rates of the last filling, and those that keep a flow of it from having one. Whether there are any.
bool LinkSharing::take_losers() {
  const std::size_t before = open_flows_.size();
  std::vector<std::uint32_t> more;
  for (std::size_t i = 0; i < before; ++i) ++shares_[flows_[open_flows_[i]].bottleneck].held;
  for (const std::uint32_t link : open_links_) {
    if (shares_[link].held == links_[link].held) continue;  // only flows that are taken
    for (const Member& member : flows_on(link))
      if (Flow& flow = flows_[member.flow]; !taken(flow) && flow.bottleneck == link && !has_bottleneck(flow)) more.push_back(member.flow);
  }
  denying_.clear();
  for (std::size_t i = 0; i < before; ++i) {
    Flow& flow = flows_[open_flows_[i]];
    if (has_bottleneck(flow)) continue;
    for (const PathLink& link : links_of(flow.path)) {
      if (fits(link.link) || !full(link.link)) continue;
      Share& share = shares_[link.link];
      if (share.denying != filling_) share.denying = filling_, share.denied = flow.next_rate, denying_.push_back(link.link);
      share.denied = std::min(share.denied, flow.next_rate);
    }
  }
  for (const std::uint32_t link : denying_) {
    if (links_[link].top <= shares_[link].denied) continue;
    looked_at_ += links_[link].flows;
    for (const Member& member : flows_on(link))
      if (const Flow& other = flows_[member.flow]; !taken(other) && other.rate > shares_[link].denied) more.push_back(member.flow);
  }
  for (const std::uint32_t id : more) take(id);
  return open_flows_.size() > before;
}

/// All that are at or above the threshold and joined to what is taken through shared links.
void LinkSharing::take_concerned() {
  for (std::size_t i = 0; i < open_flows_.size(); ++i)
    for (const PathLink& link : links_of(flows_[open_flows_[i]].path)) {
      if (fits(link.link)) continue;
      for (const Member& member : flows_on(link.link))
        if (const Flow& flow = flows_[member.flow]; flow.end == never || flow.rate >= threshold_) take(member.flow);
    }
}

/// The links of the flows that are taken, and what the others leave of them.
void LinkSharing::collect_links() {
  ++filling_;
  for (; collected_ < open_flows_.size(); ++collected_) {
    const Flow& flow = flows_[open_flows_[collected_]];
    for (const PathLink& link : links_of(flow.path)) {
      Share& share = shares_[link.link];
      if (share.collected != solution_) {
        share.collected = solution_;
        share.untaken = links_[link.link].capacity - links_[link.link].load;
        share.taken_weight = 0;
        open_links_.push_back(link.link);
      }
      share.untaken += flow.rate * link.weight;
      share.taken_weight += link.weight;
    }
  }
  for (const std::uint32_t link : open_links_) {
    Share& share = shares_[link];
    share.left = share.untaken;
    share.weight = share.taken_weight;
    share.filling = filling_;
    share.filled = 0;
    share.held = 0;
  }
}

/// The next level of the filling, by share and link.
const LinkSharing::Level* LinkSharing::least_level() const {
  const Level* const first = next_level_ < levels_.size() ? &levels_[next_level_] : nullptr;
  if (risen_.empty()) return first;
  return first == nullptr || *first > risen_.front() ? &risen_.front() : first;
}

/// Takes the links with the least share off the levels, into tied_; returns the share. Shares only grow while slower flows get their rates, so a
/// level is a lower bound of its link's share.
std::int64_t LinkSharing::take_tied() {
  std::int64_t rate = std::numeric_limits<std::int64_t>::max();
  tied_.clear();
  for (const Level* least = least_level(); least != nullptr && least->share <= rate; least = least_level()) {
    const std::uint32_t link = least->link;
    if (!risen_.empty() && least == &risen_.front()) {
      std::pop_heap(risen_.begin(), risen_.end(), std::greater<>{});
      risen_.pop_back();
    } else {
      ++next_level_;
    }
    if (shares_[link].weight == 0) continue;
    const std::int64_t share = std::max<std::int64_t>(1, shares_[link].left / shares_[link].weight);
    const Level* const next = least_level();
    if (share > rate || (next != nullptr && share > next->share)) {
      risen_.push_back({share, link});
      std::push_heap(risen_.begin(), risen_.end(), std::greater<>{});
      continue;
    }
    rate = share;
    tied_.push_back(link);
  }
  return rate;
}

/// Progressive filling of what is taken: the links with the least share set the rate of their flows, then the next ones, until every flow has its
/// rate.
void LinkSharing::fill() {
  collect_links();
  levels_.clear(), risen_.clear(), next_level_ = 0;
  for (const std::uint32_t link : open_links_) levels_.push_back({std::max<std::int64_t>(1, shares_[link].left / shares_[link].weight), link});
  std::sort(levels_.begin(), levels_.end(), [](const Level& a, const Level& b) { return b > a; });
  for (std::size_t without_rate = open_flows_.size(); without_rate > 0;) {
    const std::int64_t rate = take_tied();
    for (const std::uint32_t link : tied_)
      for (const Member& member : flows_on(link)) {
        Flow& flow = flows_[member.flow];
        if (!taken(flow) || flow.filled == filling_) continue;
        flow.filled = filling_;
        flow.next_rate = rate;
        hold(flow, link);
        --without_rate;
        for (const PathLink& on : links_of(flow.path)) {
          shares_[on.link].left -= rate * on.weight;
          shares_[on.link].weight -= on.weight;
          shares_[on.link].filled = std::max(shares_[on.link].filled, rate);
        }
      }
  }
}

}  // namespace podsim
