#include "sim/schedule/vector_clocks.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

constexpr std::size_t at_once = 16;  // entries: a clock is a multiple

template <class F>
void for_each_wait(const ActivityGraph& graph, std::uint32_t activity, F&& f) {
  for (const Gate gate : {Gate::start, Gate::receive})
    for (const Dependency& wait : graph.waits_for(activity, gate)) f(wait);
}

/// into = max(into, from). The compiler vectorises at -O2 only loops of a known length without a possible overlap.
template <class Entry>
void take_maximum(Entry* __restrict into, const Entry* __restrict from, std::size_t width) {
  for (std::size_t begin = 0; begin < width; begin += at_once)
    for (std::size_t i = begin; i < begin + at_once; ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace

Chains::Chains(const ActivityGraph& graph, const std::vector<std::uint32_t>& order)
    : chain(graph.activities.size()), member(graph.activities.size(), 0) {
  std::vector<bool> ends(graph.activities.size(), false);  // a chain
  for (const std::uint32_t a : order) {
    std::optional<std::uint32_t> extended;
    for_each_wait(graph, a, [&](const Dependency& wait) {
      const Activity& before = graph.activities[wait.activity];
      const bool wholly_over = wait.received || before.kind == Activity::Kind::work;
      if (!wholly_over || !ends[wait.activity] || member[wait.activity] + 1 == most_members) return;
      if (!extended || before.device == graph.activities[a].device) extended = wait.activity;
    });
    chain[a] = extended ? chain[*extended] : count++;
    if (extended) {
      member[a] = static_cast<std::uint16_t>(member[*extended] + 1);
      ends[*extended] = false;
    }
    ends[a] = true;
  }
}

VectorClocks::VectorClocks(const ActivityGraph& graph, const std::vector<std::uint32_t>& order)
    : graph_{graph},
      order_{order},
      chains_{graph, order},
      width_{(chains_.count + at_once - 1) / at_once * at_once},
      followers_(graph.activities.size(), 0) {
  for (const Dependency& wait : graph_.waits) ++followers_[wait.activity];
  peak_clocks_ = find_peak();
}

std::size_t VectorClocks::find_peak() const {
  std::vector<std::uint32_t> followers = followers_;
  std::size_t kept = 0, peak = 0;
  for (const std::uint32_t a : order_) {
    peak = std::max(peak, ++kept);
    for_each_wait(graph_, a, [&](const Dependency& wait) { kept -= --followers[wait.activity] == 0 ? 1 : 0; });
    if (followers[a] == 0) --kept;
  }
  return peak;
}

void VectorClocks::next() {
  PODSIM_ASSERT(reached_ < order_.size());
  if (reached_ == 0) {
    entries_.resize(peak_clocks_ * width_);
    slot_.resize(order_.size());
    for (std::size_t s = peak_clocks_; s > 0; --s) free_slots_.push_back(static_cast<std::uint32_t>(s - 1));
  } else if (const std::uint32_t last = order_[reached_ - 1]; followers_[last] == 0) {
    free_slots_.push_back(slot_[last]);
  }
  const std::uint32_t a = order_[reached_++];
  slot_[a] = free_slots_.back();
  free_slots_.pop_back();
  std::fill_n(clock(a), width_, Entry{0});
  entries_looked_at_ += width_;
  for_each_wait(graph_, a, [&](const Dependency& wait) { add(clock(a), wait); });
  for_each_wait(graph_, a, [&](const Dependency& wait) {
    if (--followers_[wait.activity] == 0) free_slots_.push_back(slot_[wait.activity]);
  });
}

void VectorClocks::add(Entry* into, const Dependency& wait) {
  Entry& own = into[chains_.chain[wait.activity]];
  if (own < entry(wait.activity, false)) {  // else the waits of that activity are in already
    take_maximum(into, clock(wait.activity), width_);
    entries_looked_at_ += width_;
  }
  own = std::max(own, entry(wait.activity, wait.received));
}

bool VectorClocks::over(std::uint32_t first, bool received) const {
  PODSIM_ASSERT(reached_ > 0);
  const bool whole = received && graph_.activities[first].kind == Activity::Kind::transfer;
  return entries_[slot_[order_[reached_ - 1]] * width_ + chains_.chain[first]] >= entry(first, whole);
}

}  // namespace podsim
