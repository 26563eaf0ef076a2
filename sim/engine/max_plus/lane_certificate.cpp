#include "sim/engine/max_plus/lane_certificate.hpp"

namespace podsim::max_plus {

/// A flow that begins before the end of the last one found and does not end before it is there in that one's last picosecond.
void LaneCertificate::cross_early(std::uint32_t path, const PathLink& link, const Lanes& begin, const Lanes& end, std::uint32_t& met) {
  if (collecting_) return collect(path, link, begin, end, met);
  const Lanes& free = free_[link.link];
  for (std::size_t k = 0; k < rates_.size(); ++k) {
    if ((met >> k & 1U) != 0 || begin[k] >= free[k]) continue;
    if (end[k] >= free[k] && rates_[k]->path_rate[path] * link.weight >= capacity(k, link.link)) {
      met |= 1U << k;
      continue;
    }
    if (suspect_of_.empty()) suspect_of_.assign(free_.size(), no_device);
    std::uint32_t& suspect = suspect_of_[link.link];
    if (suspect == no_device) {
      suspect = static_cast<std::uint32_t>(suspects_.size());
      suspects_.push_back({link.link, 0, {}});
    }
    suspects_[suspect].lanes |= 1U << k;
    with_suspects_ |= 1U << k;
  }
}

void LaneCertificate::begin_collecting(std::size_t most) {
  collecting_ = true;
  room_.fill(most);
}

void LaneCertificate::collect(std::uint32_t path, const PathLink& link, const Lanes& begin, const Lanes& end, std::uint32_t& met) {
  if (suspect_of_[link.link] == no_device) return;
  Suspect& suspect = suspects_[suspect_of_[link.link]];
  for (std::size_t k = 0; k < rates_.size(); ++k) {
    if (((suspect.lanes & ~met) >> k & 1U) == 0) continue;
    if (room_[k] == 0) {
      met |= 1U << k;  // or so it may be
      continue;
    }
    --room_[k];
    suspect.flows[k].push_back({begin.whole(k), end.whole(k), rates_[k]->path_rate[path] * link.weight});
  }
}

bool LaneCertificate::all_fit(std::size_t lane) const {
  for (const Suspect& suspect : suspects_)
    if ((suspect.lanes >> lane & 1U) != 0 && !fit_together(suspect.flows[lane], capacity(lane, suspect.link))) return false;
  return true;
}

}  // namespace podsim::max_plus
