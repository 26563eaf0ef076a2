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
  /// `rates` of each lane, over the same links and paths.
  explicit LaneCertificate(std::vector<const LinkRates*> rates) : rates_{std::move(rates)}, free_(rates_.front()->capacity.size()) {}

  /// The flows of a path cross one of its links in [begin, end). Lanes in which a flow certainly meets another one that does not fit are added to
  /// `met`.
  void cross(std::uint32_t path, const PathLink& link, const Lanes& begin, const Lanes& end, std::uint32_t& met) {
    Lanes& free = free_[link.link];
    if (collecting_)
      collect(path, link, begin, end, met);
    else if (any_less(begin, free))
      cross_early(path, link, begin, end, met);
    free = end;
  }

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
  void cross_early(std::uint32_t path, const PathLink& link, const Lanes& begin, const Lanes& end, std::uint32_t& met);
  void collect(std::uint32_t path, const PathLink& link, const Lanes& begin, const Lanes& end, std::uint32_t& met);

  std::vector<const LinkRates*> rates_;
  std::vector<Lanes> free_;                // per link, the end of the last flow found
  std::vector<std::uint32_t> suspect_of_;  // per link, position in suspects_; empty: there are none
  std::vector<Suspect> suspects_;
  std::uint32_t with_suspects_ = 0;
  bool collecting_ = false;
  std::array<std::size_t, lane_count> room_{};
};

}  // namespace podsim::max_plus
