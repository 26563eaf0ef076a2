#include "sim/engine/max_plus/memory_use.hpp"

#include <algorithm>

namespace podsim::max_plus {

namespace {

constexpr std::size_t works_kept = 8;  // per memory: those that a transfer found later may still turn out to have slowed

}  // namespace

MemoryUse::MemoryUse(const Model& model, const LinkRates& rates) : model_{model}, rates_{rates} {
  if (model.memory_paths.empty()) return;
  first_ = static_cast<std::uint32_t>(model.links.size());
  for (std::uint32_t link = 0; link < model.links.size(); ++link)
    if (model.links[link].is_memory) first_ = std::min(first_, link);
  memories_.resize(model.links.size() - first_);
  slowed_until_.resize(memories_.size());
  bound_transfers();
  if (applies_) look_at_works();
}

/// Whether any work may be slowed. Works beside the core may meet the core's: those are left to events.
void MemoryUse::look_at_works() {
  std::int64_t left = LinkRates::unlimited_rate;
  for (std::size_t m = 0; m < memories_.size(); ++m) left = std::min(left, (rates_.capacity[first_ + m] - memories_[m].most) / unit());
  const double fastest = model_.speed.empty() ? 1 : *std::max_element(model_.speed.begin(), model_.speed.end());
  for (std::uint32_t p = 0; p < model_.costs.size(); ++p)
    for (std::size_t t = 0; t < model_.costs[p].size(); ++t) {
      const TaskCost& cost = model_.costs[p][t];
      if (cost.kind != TaskCost::Kind::work || cost.memory_bytes == 0 || model_.deployment.who(p, t).doers == 0) continue;
      if (!cost.on_core) applies_ = false;
      const double rate = fastest * cost.memory_bytes / (cost.work - cost.launch - cost.rest).count();
      may_slow_ |= !(rate * (1 + 1e-6) < rates_.bytes_per_second(left));
    }
}

std::int64_t MemoryUse::unit() const { return rates_.links_of(model_.memory_paths.front()).front().weight; }

/// Per memory, the most that transfers may draw at one time: what crosses the link beside the memory is within that link's capacity.
void MemoryUse::bound_transfers() {
  __extension__ typedef __int128 Wide;
  struct Through {
    std::uint32_t link;
    bool leaves;
    Wide most;
  };
  std::vector<std::vector<Through>> beside(memories_.size());  // per memory, through each of the few links beside it the most that is drawn
  std::int64_t fastest = 0;
  const std::uint32_t first_of_works = *std::min_element(model_.memory_paths.begin(), model_.memory_paths.end());
  for (std::uint32_t p = 0; p < first_of_works; ++p) {
    const auto links = rates_.links_of(p);
    if (links.size() == 1 && model_.links[links.front().link].is_memory) applies_ = false;
    if (links.size() < 2) continue;
    const auto see = [&](const PathLink& memory, const PathLink& link, bool leaves) {
      if (!model_.links[memory.link].is_memory) return;
      if (model_.links[link.link].is_memory) {
        applies_ = false;  // nothing but the memories bounds it
        return;
      }
      fastest = std::max(fastest, rates_.path_rate[p]);
      const Wide most = (static_cast<Wide>(rates_.capacity[link.link]) * memory.weight + link.weight - 1) / link.weight;
      std::vector<Through>& here = beside[memory.link - first_];
      const auto known = std::find_if(here.begin(), here.end(), [&](const Through& other) { return other.link == link.link && other.leaves == leaves; });
      if (known == here.end())
        here.push_back({link.link, leaves, most});
      else
        known->most = std::max(known->most, most);
    };
    see(links.front(), links[1], true);
    see(links.back(), links[links.size() - 2], false);
  }
  for (std::size_t m = 0; m < beside.size(); ++m) {
    if (beside[m].empty()) continue;
    Wide sum = 0;
    for (const Through& through : beside[m]) sum += through.most;
    if (sum + static_cast<Wide>(unit()) * fastest > rates_.capacity[first_ + m]) {
      applies_ = false;
      return;
    }
    memories_[m].most = static_cast<std::int64_t>(sum);
  }
}

bool MemoryUse::spares_works(std::uint32_t link, std::int64_t begin, std::int64_t end) const {
  const Memory& memory = memories_[link - first_];
  return begin >= memory.forgotten_until &&
         std::none_of(memory.works.begin(), memory.works.end(), [&](const Interval& work) { return begin < work.end && work.begin < end; });
}

MemoryUse::Rate MemoryUse::rate_of(const Work& work) const {
  const PathLink on = rates_.links_of(work.path).front();
  return {rates_.of_work(work.bytes, work.alone, rates_.path_rate[work.path]), rates_.capacity[on.link], on.weight};
}

std::int64_t MemoryUse::latest_end(const Work& work) const {
  const Rate rate = rate_of(work);
  const std::int64_t least = rate.beside(most_beside(work));
  // A work whose rate changes loses up to a picosecond's bytes to rounding each time; nothing is lost by looking further.
  return later(Picoseconds{work.begin}, Picoseconds{least == rate.most ? work.alone : rates_.duration(work.bytes, least) * 2}).count();
}

/// As LinkSharing does it: what was moved is taken off only when the rate changes.
std::int64_t MemoryUse::end(const Work& work, std::span<const Beside> beside) {
  const Rate rate_with = rate_of(work);
  std::int64_t transfers = 0, since = work.begin;
  double bytes = work.bytes;
  changes_.clear();
  for (const Beside& flow : beside) {
    if (flow.end <= work.begin) continue;
    if (flow.begin <= work.begin)
      transfers += flow.draw;
    else
      changes_.emplace_back(flow.begin, flow.draw);
    changes_.emplace_back(flow.end, -flow.draw);
  }
  std::sort(changes_.begin(), changes_.end());
  std::int64_t rate = rate_with.beside(transfers);
  const auto in = [&](std::int64_t now, std::int64_t duration) { return later(Picoseconds{now}, Picoseconds{duration}).count(); };
  std::int64_t end = in(work.begin, rate == rate_with.most ? work.alone : rates_.duration(bytes, rate));
  for (std::size_t i = 0; i < changes_.size() && changes_[i].first < end;) {
    const std::int64_t now = changes_[i].first;
    for (; i < changes_.size() && changes_[i].first == now; ++i) transfers += changes_[i].second;
    const std::int64_t next = rate_with.beside(transfers);
    if (next == rate) continue;
    bytes = std::max(0.0, bytes - rates_.bytes_per_second(rate) * 1e-12 * static_cast<double>(now - since));
    since = now;
    rate = next;
    end = in(now, rates_.duration(bytes, rate));
  }
  return end;
}

void MemoryUse::tell(const Work& work, std::int64_t end) {
  const std::uint32_t link = rates_.links_of(work.path).front().link;
  Memory& memory = memories_[link - first_];
  if (memory.works.size() == works_kept) {
    memory.forgotten_until = memory.works.front().end;
    memory.works.erase(memory.works.begin());
  }
  memory.works.push_back({work.begin, end});
  slowed_until_[link - first_] = end;
}

void MemoryUse::forget() {
  for (Memory& memory : memories_) memory.forgotten_until = 0, memory.works.clear();
  std::fill(slowed_until_.begin(), slowed_until_.end(), 0);
}

}  // namespace podsim::max_plus
