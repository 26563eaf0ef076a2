// Proves that flows never hold each other back: on each link, the rates of the flows that are there at one time fit its capacity.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/link_rates.hpp"

namespace podsim::max_plus {

/// A flow on a link: what it takes of it in [begin, end).
struct Crossing {
  std::int64_t begin, end, draw;
};
/// Whether flows on one link fit its capacity at all times. At one time flows end before others begin.
bool fit_together(std::span<const Crossing> flows, std::int64_t capacity);

/// Flows are found in any order. A link whose flows come one after the other, in the order in which they are found, costs one comparison per flow. The
/// other links are suspects: a second pass collects their flows, and misfits() adds them up over time.
class LinkCertificate {
 public:
  explicit LinkCertificate(const LinkRates& rates) : rates_{rates}, links_(rates.capacity.size()) {}

  /// A flow that takes `draw` of a link in [begin, end). False: it certainly meets another one, and both do not fit.
  bool cross(std::uint32_t link, std::int64_t draw, std::int64_t begin, std::int64_t end) {
    State& state = links_[link];
    if (begin >= state.end && state.suspect == no_device) {
      state.begin = begin, state.end = end, state.draw = draw;
      return true;
    }
    return cross_suspect(link, draw, begin, end);
  }

  /// Whether a second pass is needed.
  [[nodiscard]] bool has_suspects() const { return !suspects_.empty(); }
  /// Before the second pass; `most` flows are kept.
  void begin_collecting(std::size_t most);
  /// After the second pass: the links whose flows do not fit. nullopt: there were too many flows to tell.
  std::optional<std::vector<std::uint32_t>> misfits();
  /// As at the beginning.
  void forget();

 private:
  struct State {
    std::int64_t begin = 0, end = 0, draw = 0;  // of the last flow
    std::uint32_t suspect = no_device;          // position in suspects_
  };
  struct Suspect {
    std::uint32_t link;
    std::vector<Crossing> flows;
  };
  bool cross_suspect(std::uint32_t link, std::int64_t draw, std::int64_t begin, std::int64_t end);

  const LinkRates& rates_;
  std::vector<State> links_;
  std::vector<Suspect> suspects_;
  bool collecting_ = false;
  bool overflowed_ = false;
  std::size_t room_ = 0;
};

}  // namespace podsim::max_plus
