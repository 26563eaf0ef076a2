// The event queue against heaps, on the times that simulations ask for: hold N events, take the earliest, put a later one.
#include <benchmark/benchmark.h>

#include <boost/heap/d_ary_heap.hpp>
#include <queue>

#include "sim/base/rng.hpp"
#include "sim/engine/des/event_queue.hpp"

namespace podsim::bench {
namespace {

using Entry = std::pair<std::int64_t, std::uint64_t>;

/// How far ahead events lie: all at one time (a symmetric system: thousands at each time), or all different.
std::int64_t ahead(Rng& rng, bool together) { return together ? 1'000'000 : 1 + static_cast<std::int64_t>(rng.below(2'000'000)); }

template <class Push, class Pop>
void hold(benchmark::State& state, Push push, Pop pop) {
  const auto events = state.range(0);
  const bool together = state.range(1) != 0;
  Rng rng{1};
  for (std::int64_t i = 0; i < events; ++i) push(ahead(rng, together), static_cast<std::uint64_t>(i));
  for (auto _ : state) {
    const auto [time, payload] = pop();
    push(time + ahead(rng, together), payload);
  }
  state.SetItemsProcessed(state.iterations());
}

void queue_radix(benchmark::State& state) {
  des::EventQueue<std::uint64_t> queue;
  hold(
      state, [&](std::int64_t time, std::uint64_t payload) { queue.push(time, payload); },
      [&] {
        if (!queue.due()) queue.advance();
        return Entry{queue.now(), queue.take()};
      });
}
template <class Heap>
void heap(benchmark::State& state) {
  Heap queue;
  hold(
      state,
      [&](std::int64_t time, std::uint64_t payload) {
        queue.push(Entry{time, payload});
      },
      [&] {
        const Entry entry = queue.top();
        queue.pop();
        return entry;
      });
}
void queue_binary_heap(benchmark::State& state) { heap<std::priority_queue<Entry, std::vector<Entry>, std::greater<>>>(state); }
void queue_4_ary_heap(benchmark::State& state) {
  heap<boost::heap::d_ary_heap<Entry, boost::heap::arity<4>, boost::heap::compare<std::greater<>>>>(state);
}

#define PODSIM_QUEUE(name) BENCHMARK(name)->ArgNames({"events", "together"})->ArgsProduct({{1024, 16384, 262144}, {0, 1}})
PODSIM_QUEUE(queue_radix);
PODSIM_QUEUE(queue_binary_heap);
PODSIM_QUEUE(queue_4_ary_heap);

}  // namespace
}  // namespace podsim::bench
