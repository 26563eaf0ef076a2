#include "sim/engine/link_rates.hpp"

#include <algorithm>
#include <cmath>

namespace podsim {

namespace {

constexpr int rate_bits = 61;  // of the fastest link's capacity: sums of rates on a link stay below 2^63

}  // namespace

LinkRates::LinkRates(const Model& model) {
  double fastest = 0;
  for (const ModelLink& link : model.links)
    if (!is_unlimited(link.bandwidth)) fastest = std::max(fastest, link.bandwidth.count());
  quantum = std::ldexp(1.0, fastest > 0 ? std::ilogb(fastest) + 1 - rate_bits : 0);
  capacity.reserve(model.links.size());
  for (const ModelLink& link : model.links)
    capacity.push_back(is_unlimited(link.bandwidth) ? 0 : std::max<std::int64_t>(1, static_cast<std::int64_t>(link.bandwidth.count() / quantum)));
  path_rows.reserve(model.paths.size() + 1);
  path_rate.reserve(model.paths.size());
  path_rows.push_back(0);
  for (const Path& path : model.paths) {
    std::int64_t rate = unlimited_rate;
    for (const PathLink& link : model.links_of(path)) {
      if (capacity[link.link] == 0) continue;
      path_links.push_back(link);
      rate = std::min(rate, capacity[link.link] / link.weight);
    }
    path_rows.push_back(static_cast<std::uint32_t>(path_links.size()));
    path_rate.push_back(rate);
  }
}

std::int64_t LinkRates::of_work(double bytes, std::int64_t alone, std::int64_t most) const {
  const double rate = bytes / (static_cast<double>(alone) * 1e-12) / quantum;
  return rate < static_cast<double>(most) ? std::max<std::int64_t>(1, static_cast<std::int64_t>(rate)) : most;
}

std::int64_t LinkRates::duration(double bytes, std::int64_t rate) const {
  const Seconds time{bytes / bytes_per_second(rate)};
  return fits_clock(time) ? ceil_to_clock(time).count() : end_of_clock.count();
}

}  // namespace podsim
