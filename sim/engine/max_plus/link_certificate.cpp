#include "sim/engine/max_plus/link_certificate.hpp"

#include <algorithm>
#include <utility>

namespace podsim::max_plus {

bool LinkCertificate::cross_suspect(std::uint32_t link, std::int64_t draw, std::int64_t begin, std::int64_t end) {
  State& state = links_[link];
  if (collecting_) {
    overflowed_ |= room_ == 0;
    if (overflowed_) return true;
    --room_;
    suspects_[state.suspect].flows.push_back({begin, end, draw});
    return true;
  }
  const bool meets = begin < state.end && state.begin < end;
  if (meets && draw > rates_.capacity[link] - state.draw) return false;
  if (state.suspect == no_device) {
    state.suspect = static_cast<std::uint32_t>(suspects_.size());
    suspects_.push_back({link, {}});
  }
  state.begin = begin, state.end = end, state.draw = draw;
  return true;
}

void LinkCertificate::begin_collecting(std::size_t most) {
  collecting_ = true;
  room_ = most;
  for (State& state : links_) state.begin = state.end = state.draw = 0;
}

std::optional<std::vector<std::uint32_t>> LinkCertificate::misfits() {
  if (overflowed_) return std::nullopt;
  std::vector<std::uint32_t> result;
  for (Suspect& suspect : suspects_) {
    if (!fit_together(suspect.flows, rates_.capacity[suspect.link])) result.push_back(suspect.link);
    suspect.flows = {};
  }
  return result;
}

void LinkCertificate::forget() {
  std::fill(links_.begin(), links_.end(), State{});
  suspects_.clear();
  collecting_ = overflowed_ = false;
}

bool fit_together(std::span<const Crossing> flows, std::int64_t capacity) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // time, of the sum of draws
  changes.reserve(2 * flows.size());
  for (const Crossing& flow : flows) changes.emplace_back(flow.begin, flow.draw), changes.emplace_back(flow.end, -flow.draw);
  std::sort(changes.begin(), changes.end());
  std::int64_t sum = 0;
  for (const auto& [time, change] : changes) {
    if (change > 0 && change > capacity - sum) return false;
    sum += change;
  }
  return true;
}

}  // namespace podsim::max_plus
