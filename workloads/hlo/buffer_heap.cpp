#include "workloads/hlo/buffer_heap.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace podsim::hlo_buffers {

namespace {

constexpr std::size_t most_tried = 256;
constexpr std::int64_t most_compared = 30'000'000;  // pairs of buffers: a second
constexpr std::int64_t most_live = std::int64_t{1} << 62;
__extension__ using Wide = __int128;  // sums of 2^24 sizes of 2^60 bytes

std::int64_t saturated(Wide bytes) { return static_cast<std::int64_t>(std::min<Wide>(bytes, most_live)); }

/// Places buffers in a heap, one after the other, each in the smallest gap that is free for as long as it lives, or on top. Source: openxla/xla,
/// xla/service/heap_simulator, GlobalDecreasingSizeBestFitHeap.
class Heap {
 public:
  explicit Heap(const std::vector<Interval>& intervals) : intervals_{intervals} {
    for (const Interval& interval : intervals) last_ = std::max(last_, interval.end);
    living_.resize(most_buckets);
    beginning_.resize(most_buckets);
    places_.resize(intervals.size());
  }

  /// Bytes of the heap, buffers in the order of `before`; nullopt: more than most_compared pairs.
  template <class Before>
  std::optional<std::int64_t> pack(Before before) {
    std::vector<std::size_t> order;
    for (std::size_t n = 0; n < intervals_.size(); ++n)
      if (size(n) > 0) order.push_back(n);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return before(intervals_[a], intervals_[b]) || (!before(intervals_[b], intervals_[a]) && a < b); });
    Wide top = 0;
    for (const std::size_t n : order) {
      places_[n] = place(n);
      if (compared_ > most_compared) return std::nullopt;
      top = std::max(top, places_[n] + size(n));
      const std::size_t first = bucket(intervals_[n].begin), last = bucket(intervals_[n].end);
      beginning_[first].push_back(n);
      for (std::size_t b = first; b <= last; ++b) living_[b].push_back(n);
    }
    return saturated(top);
  }

 private:
  static constexpr std::size_t most_buckets = 1024;  // of steps, so that a short buffer is compared only with those near it

  [[nodiscard]] std::int64_t size(std::size_t n) const { return intervals_[n].sizes[hbm]; }
  [[nodiscard]] std::size_t bucket(std::int64_t step) const { return static_cast<std::size_t>(Wide{step} * most_buckets / (Wide{last_} + 1)); }

  Wide place(std::size_t n) {
    const Interval& interval = intervals_[n];
    taken_.clear();
    const auto look_at = [&](std::size_t other) {
      ++compared_;
      if (intervals_[other].end < interval.begin || intervals_[other].begin > interval.end) return;
      taken_.push_back({places_[other], places_[other] + size(other)});
    };
    // What lives at its begin, and what begins after that: each buffer once.
    const std::size_t first = bucket(interval.begin), last = bucket(interval.end);
    std::ranges::for_each(living_[first], look_at);
    for (std::size_t b = first + 1; b <= last; ++b) std::ranges::for_each(beginning_[b], look_at);
    std::sort(taken_.begin(), taken_.end());
    Wide free = 0, best = -1, best_gap = 0;
    for (const auto& [begin, end] : taken_) {
      const Wide gap = begin - free;
      if (gap >= size(n) && (best < 0 || gap < best_gap)) {
        best = free;
        best_gap = gap;
      }
      free = std::max(free, end);
    }
    return best < 0 ? free : best;
  }

  const std::vector<Interval>& intervals_;
  std::int64_t last_ = 0, compared_ = 0;
  std::vector<std::vector<std::size_t>> living_, beginning_;  // by bucket
  std::vector<Wide> places_;
  std::vector<std::pair<Wide, Wide>> taken_;
};

}  // namespace

Sizes peaks_of(const std::vector<Interval>& intervals) {
  std::vector<std::pair<std::int64_t, std::size_t>> begins, ends;
  for (std::size_t n = 0; n < intervals.size(); ++n) {
    begins.push_back({intervals[n].begin, n});
    ends.push_back({intervals[n].end, n});
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  std::array<Wide, spaces> live{};
  Sizes most{};
  std::size_t ended = 0;
  for (const auto& [begin, n] : begins) {
    for (; ended < ends.size() && ends[ended].first < begin; ++ended)
      for (std::size_t s = 0; s < spaces; ++s) live[s] -= intervals[ends[ended].second].sizes[s];
    for (std::size_t s = 0; s < spaces; ++s) {
      live[s] += intervals[n].sizes[s];
      most[s] = std::max(most[s], saturated(live[s]));
    }
  }
  return most;
}

void reuse_results(Need& need, Compiler compiler) {
  struct Result {
    std::int64_t size = 0;
    std::map<std::int64_t, std::int64_t> taken{};  // first and last step
  };
  const auto is_result = [&](const Interval& interval) { return interval.end == need.steps - 1; };
  const auto size = [&](std::size_t n) { return need.intervals[n].sizes[hbm]; };
  // Of one size what lives to the end comes first, and of that the parameters before what is made. `n` below 0: the place of a donated parameter.
  const auto donated = [&](std::ptrdiff_t n) -> const Donated& { return need.donated[need.donated.size() - static_cast<std::size_t>(-n)]; };
  struct Placed {
    std::int64_t size = 0;
    bool passes = false;  // does not live to the end
    std::ptrdiff_t n = 0;
    auto operator<=>(const Placed&) const = default;
  };
  std::vector<Placed> order;
  for (auto n = -std::ssize(need.donated); n < 0; ++n)
    if (compiler == Compiler::gpu && donated(n).sizes[hbm] > 0) order.push_back({-donated(n).sizes[hbm], false, n});
  for (std::size_t n = 0; n < need.intervals.size(); ++n)
    if (size(n) > 0) order.push_back({-size(n), !is_result(need.intervals[n]), static_cast<std::ptrdiff_t>(n)});
  std::sort(order.begin(), order.end());
  std::vector<Result> results;
  for (const Placed& placed : order) {
    if (placed.n < 0) {
      results.push_back({donated(placed.n).sizes[hbm], {donated(placed.n).live.begin(), donated(placed.n).live.end()}});
      continue;
    }
    const auto n = static_cast<std::size_t>(placed.n);
    Interval& interval = need.intervals[n];
    if (!placed.passes) {
      results.push_back({size(n), {{interval.begin, interval.end}}});
      interval.begin = 0;
      continue;
    }
    if (compiler == Compiler::tpu && interval.remote) continue;
    const std::size_t tried = std::min(results.size(), most_tried);
    for (auto result = results.rbegin(); result != results.rbegin() + static_cast<std::ptrdiff_t>(tried); ++result) {
      const auto next = result->taken.upper_bound(interval.end);
      if (next != result->taken.begin() && std::prev(next)->second >= interval.begin) continue;
      result->taken.emplace(interval.begin, interval.end);
      interval.sizes[hbm] = 0;
      break;
    }
  }
}

std::int64_t heap_of(const std::vector<Interval>& intervals, Compiler compiler) {
  if (compiler == Compiler::tpu) {
    const auto by_begin = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
    const auto heap = Heap{intervals}.pack(by_begin);
    return heap ? saturated(2 * Wide{*heap} - peaks_of(intervals)[hbm]) : peaks_of(intervals)[hbm];
  }
  const auto length = [](const Interval& interval) { return interval.end - interval.begin; };
  const auto by_size = [&](const Interval& a, const Interval& b) { return std::pair{a.sizes[hbm], length(a)} > std::pair{b.sizes[hbm], length(b)}; };
  const auto by_time = [&](const Interval& a, const Interval& b) { return std::pair{length(a), a.sizes[hbm]} > std::pair{length(b), b.sizes[hbm]}; };
  const auto sized = Heap{intervals}.pack(by_size), timed = sized ? Heap{intervals}.pack(by_time) : std::nullopt;
  return timed ? std::min(*sized, *timed) : peaks_of(intervals)[hbm];
}

}  // namespace podsim::hlo_buffers
