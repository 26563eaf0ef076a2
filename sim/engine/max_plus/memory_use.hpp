// Works that draw more of a memory than the transfers beside them leave.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/link_rates.hpp"

namespace podsim::max_plus {

/// A flow of a transfer beside a work: what it takes of the memory in [begin, end).
struct Beside {
  std::int64_t begin, end, draw;
};

/// Transfers are bound by links, which are slow beside a memory, so they keep their rates as long as what they leave is enough for a work at the rate of
/// the fastest of them. The work on the core gets what they leave. That holds where all the links at a device together leave so much; models where it
/// may not hold are left to events.
///
/// A work must know the transfers beside it when its end is asked for. A transfer found later that would have slowed it is a meeting.
class MemoryUse {
 public:
  MemoryUse(const Model& model, const LinkRates& rates);

  /// False: transfers may be slowed, or works may meet works. Nothing can be said then.
  [[nodiscard]] bool applies() const { return applies_; }
  /// Whether any work may be slowed; if not, the others need not be asked.
  [[nodiscard]] bool may_slow() const { return may_slow_; }

  /// A transfer that draws on a memory in [begin, end). False: it slows a work whose end was told already.
  [[nodiscard]] bool cross(std::uint32_t link, std::int64_t begin, std::int64_t end) const {
    return begin >= slowed_until_[link - first_] || spares_works(link, begin, end);
  }

  /// A work of a node's core: its flow of `bytes` over the path of the memory, `alone` picoseconds long if nothing slows it.
  struct Work {
    std::uint32_t path = 0;
    double bytes = 0;
    std::int64_t alone = 0, begin = 0;
  };
  /// When it ends if transfers draw the most they can; if that is not `alone` after its begin, they matter.
  [[nodiscard]] std::int64_t latest_end(const Work& work) const;
  /// What else than the work itself that depends on: the most that transfers draw of its memory at one time.
  [[nodiscard]] std::int64_t most_beside(const Work& work) const { return memories_[rates_.links_of(work.path).front().link - first_].most; }
  /// When it ends beside these transfers, which must be all that are there before its latest end.
  [[nodiscard]] std::int64_t end(const Work& work, std::span<const Beside> beside);
  /// Its end was told: cross() knows. Works of a node come in its core's order.
  void tell(const Work& work, std::int64_t end);
  /// As at the beginning.
  void forget();

 private:
  struct Interval {
    std::int64_t begin, end;
  };
  struct Memory {
    std::int64_t most = 0;             // that transfers draw at one time, by the links beside it
    std::int64_t forgotten_until = 0;  // the end of the last work that is no longer in `works`
    std::vector<Interval> works;       // the last ones that might have been slowed
  };
  struct Rate {  // of a work
    std::int64_t most, capacity, weight;
    [[nodiscard]] std::int64_t beside(std::int64_t transfers) const { return std::min(most, std::max<std::int64_t>(1, (capacity - transfers) / weight)); }
  };
  [[nodiscard]] Rate rate_of(const Work& work) const;
  [[nodiscard]] bool spares_works(std::uint32_t link, std::int64_t begin, std::int64_t end) const;
  void bound_transfers();
  void look_at_works();
  [[nodiscard]] std::int64_t unit() const;

  const Model& model_;
  const LinkRates& rates_;
  std::uint32_t first_ = 0;                 // the links from here on are memories
  std::vector<Memory> memories_;            // by link
  std::vector<std::int64_t> slowed_until_;  // the same: the end of the last work in `works`
  bool applies_ = true, may_slow_ = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> changes_;
};

}  // namespace podsim::max_plus
