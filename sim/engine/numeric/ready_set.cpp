#include "sim/engine/numeric/ready_set.hpp"

#include <algorithm>

#include "sim/base/invariant.hpp"
#include "sim/base/rng.hpp"

namespace podsim {
namespace {

// Streams of one seed, so that no two choices share a number.
constexpr std::uint64_t random_weights = stream_of("weights"), own_luck = stream_of("activity"), device_luck = stream_of("device"),
                        task_luck = stream_of("task"), shares = stream_of("round");

}  // namespace

ReadySet::ReadySet(const ActivityGraph& graph, const Order& order) : graph_{graph}, order_{order}, heaps_(1) {
  if (!order_.random_seed) {
    for (const Activity& activity : graph.activities) heaps_.resize(std::max<std::size_t>(heaps_.size(), activity.program + 1));
    return;
  }
  constexpr std::array<std::uint64_t, 4> choices{0, 1, 4, 16};
  const auto choose = [&](std::uint64_t which) { return choices[counter_hash(*order_.random_seed, random_weights, which) % choices.size()]; };
  own_weight_ = 1 + choose(0);
  device_weight_ = choose(1);
  task_weight_ = choose(2);
}

bool ReadySet::later(const Entry& a, const Entry& b) { return a.priority != b.priority ? a.priority > b.priority : a.activity > b.activity; }

void ReadySet::add(std::uint32_t activity) {
  const Activity& a = graph_.activities[activity];
  std::uint64_t priority = a.task.index();
  if (order_.random_seed) {
    const auto luck = [&](std::uint64_t stream, std::uint64_t of) { return counter_hash(*order_.random_seed, stream, of) >> 16; };
    priority = own_weight_ * luck(own_luck, activity) + device_weight_ * luck(device_luck, a.device.index()) +
               task_weight_ * luck(task_luck, a.task.index());
  }
  Heap& heap = heaps_[order_.random_seed ? 0 : a.program];
  heap.push_back({priority, activity});
  std::push_heap(heap.begin(), heap.end(), later);
  ++size_;
}

std::uint32_t ReadySet::pop(Heap& heap) {
  std::pop_heap(heap.begin(), heap.end(), later);
  const std::uint32_t activity = heap.back().activity;
  heap.pop_back();
  --size_;
  return activity;
}

void ReadySet::take(std::vector<std::uint32_t>& round) {
  PODSIM_ASSERT(!empty());
  round.clear();
  if (order_.random_seed) {
    const double share = unit_interval(counter_hash(*order_.random_seed, shares, rounds_++));
    for (auto count = 1 + static_cast<std::size_t>(share * static_cast<double>(size_)); count > 0 && !empty(); --count)
      round.push_back(pop(heaps_[0]));
    return;
  }
  for (Heap& heap : heaps_)
    for (const std::uint64_t task = heap.empty() ? 0 : heap.front().priority; !heap.empty() && heap.front().priority == task;)
      round.push_back(pop(heap));
}

GraphProgress::GraphProgress(const ActivityGraph& graph) : missing_(graph.activities.size(), 0), rows_(graph.activities.size() + 1, 0) {
  const auto for_each_wait = [&](auto body) {
    for (std::uint32_t a = 0; a < missing_.size(); ++a)
      for (std::uint32_t i = graph.wait_rows[2 * std::size_t{a}]; i < graph.wait_rows[2 * std::size_t{a} + 2]; ++i) body(a, graph.waits[i].activity);
  };
  for_each_wait([&](std::uint32_t activity, std::uint32_t on) { ++missing_[activity], ++rows_[on + 1]; });
  for (std::size_t a = 0; a + 1 < rows_.size(); ++a) rows_[a + 1] += rows_[a];
  followers_.resize(rows_.back());
  std::vector<std::uint32_t> next(rows_.begin(), rows_.end() - 1);
  for_each_wait([&](std::uint32_t activity, std::uint32_t on) { followers_[next[on]++] = activity; });
}

}  // namespace podsim
