// Proves for several variants at once that flows never hold each other back.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/max_plus/lane_times.hpp"
#include "sim/engine/max_plus/link_certificate.hpp"

namespace podsim::max_plus {

/// As LinkCertificate, in lanes, each by itself: a set of lanes is a word of bits. It keeps less of a link than LinkCertificate, the end of its last flow
/// alone: so some meetings are found by the second pass only.
class LaneCertificate {
 public:
  /// `rates` of each lane, over the same links and paths. Below, links are called by their place in `links`.
  LaneCertificate(std::vector<const LinkRates*> rates, std::span<const std::uint32_t> links) : rates_{std::move(rates)}, links_{links}, free_(links.size()) {}

  /// Whether flows that begin then on a link must be told to cross_early().
  [[nodiscard]] TwoFlags early(std::uint32_t link, const Lanes& begin) const { return less(begin, free_[link]); }
  /// The flows of a path cross one of its links in [begin, end), some of them early. Lanes in which a flow certainly meets another one that does not fit
  /// are added to `met`.
  void cross_early(std::uint32_t path, const PathLink& link, const Lanes& begin, const Lanes& end, std::uint32_t& met);
  /// The last flows found on a link end then.
  void take(std::uint32_t link, const Lanes& end) { free_[link] = end; }
  /// In the second pass all flows must be told to cross_early().
  [[nodiscard]] bool collecting() const { return collecting_; }

  /// Lanes for which a second pass is needed.
  [[nodiscard]] std::uint32_t with_suspects() const { return with_suspects_; }
  /// Before the second pass; in each lane `most` flows are kept.
  void begin_collecting(std::size_t most);
  /// After the second pass: whether all flows of a lane fit.
  [[nodiscard]] bool all_fit(std::size_t lane) const;

 private:
  struct Suspect {
    std::uint32_t link = 0, lanes = 0;
    std::array<std::vector<Crossing>, lane_count> flows;
  };
  [[nodiscard]] std::int64_t capacity(std::size_t lane, std::uint32_t link) const { return rates_[lane]->capacity[links_[link]]; }
  void collect(std::uint32_t path, const PathLink& link, const Lanes& begin, const Lanes& end, std::uint32_t& met);

  std::vector<const LinkRates*> rates_;
  std::span<const std::uint32_t> links_;
  std::vector<Lanes> free_;                // per link, the end of the last flow found
  std::vector<std::uint32_t> suspect_of_;  // per link, position in suspects_; empty: there are none
  std::vector<Suspect> suspects_;
  std::uint32_t with_suspects_ = 0;
  bool collecting_ = false;
  std::array<std::size_t, lane_count> room_{};
};

}  // namespace podsim::max_plus
