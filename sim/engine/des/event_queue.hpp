// The event queue of the simulation.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/base/invariant.hpp"

namespace podsim::des {

/// A monotone priority queue on integer times (a radix heap): no entry may be earlier than the time last taken. Buckets are numbered by the highest
/// bit in which an entry's time differs from that time, so an entry moves at most 63 times, and a few times on average. Entries of equal time, of
/// which a symmetric pod has thousands, are moved and taken together. Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path
/// problem", 1990. Compared with binary and 4-ary heaps by `podsim_bench --benchmark_filter=queue`.
template <class Payload>
class EventQueue {
 public:
  /// time >= now()
  void push(std::int64_t time, Payload payload) {
    const int bucket = bucket_of(time);
    occupied_ |= std::uint64_t{bucket > 0} << (bucket > 0 ? bucket - 1 : 0);
    buckets_[static_cast<std::size_t>(bucket)].push_back({time, payload});
  }

  [[nodiscard]] std::int64_t now() const { return now_; }
  [[nodiscard]] bool empty() const { return taken_ == buckets_[0].size() && occupied_ == 0; }
  /// Whether entries are left at now().
  [[nodiscard]] bool due() const { return taken_ < buckets_[0].size(); }

  /// The next entry at now(), in insertion order within a bucket; due() must be true.
  Payload take() { return buckets_[0][taken_++].payload; }

  /// Advances now() to the next time. due() must be false and the queue not empty.
  void advance() {
    PODSIM_ASSERT(!due() && occupied_ != 0);
    buckets_[0].clear();
    taken_ = 0;
    const int lowest = std::countr_zero(occupied_) + 1;
    auto& bucket = buckets_[static_cast<std::size_t>(lowest)];
    now_ = bucket.front().time;
    for (const Entry& entry : bucket) now_ = entry.time < now_ ? entry.time : now_;
    occupied_ &= occupied_ - 1;
    for (const Entry& entry : bucket) push(entry.time, entry.payload);  // each into a lower bucket
    bucket.clear();
  }

 private:
  struct Entry {
    std::int64_t time;
    Payload payload;
  };
  [[nodiscard]] int bucket_of(std::int64_t time) const {
    PODSIM_ASSERT(time >= now_);
    return std::bit_width(static_cast<std::uint64_t>(time ^ now_));
  }

  std::int64_t now_ = 0;
  std::uint64_t occupied_ = 0;  // bit b: bucket b + 1 has entries
  std::size_t taken_ = 0;       // of bucket 0
  std::array<std::vector<Entry>, 65> buckets_;
};

}  // namespace podsim::des
