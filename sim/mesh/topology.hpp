// Chips, links, routes. A link is ONE direction of one cable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// What one direction of a link can do. Two directions of a cable do not disturb each other.
struct LinkParameters {
  BytesPerSecond bandwidth = unlimited<BytesPerSecond>;
  Seconds latency{};
  friend bool operator==(const LinkParameters&, const LinkParameters&) = default;
};

struct OutLink {
  LinkId link;
  ChipId to;
  friend bool operator==(const OutLink&, const OutLink&) = default;
};

/// How a route is to be chosen where there is a choice.
struct RouteOptions {
  std::vector<int> dimension_order;  // a permutation of the dimensions; empty: 0 first
  int antipodal_sign = +1;           // the way round a wrapped dimension when both are equally long: +1 increasing, -1 decreasing
  friend bool operator==(const RouteOptions&, const RouteOptions&) = default;
};

/// Interface of every topology. Link ids are dense enough to index arrays: all are below link_slots(), some slots may be unused.
class Topology {
 public:
  virtual ~Topology() = default;

  [[nodiscard]] virtual int chips() const = 0;
  [[nodiscard]] virtual int link_slots() const = 0;
  /// The links that leave a chip towards other chips, in increasing id.
  [[nodiscard]] virtual std::vector<OutLink> out_links(ChipId chip) const = 0;
  [[nodiscard]] virtual LinkParameters link(LinkId link) const = 0;
  /// Whether a link joins two chips (a hop), rather than a device and its router.
  [[nodiscard]] virtual bool is_hop(LinkId link) const = 0;
  /// The links from `from` to `to` in order of travel, injection first and ejection last where they are limited; appended to `links`.
  /// from == to appends nothing. Errors: the chips are not connected.
  virtual Done route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const = 0;
  /// For people: "(0,3)->(0,0) y+", "injection (0,3)".
  [[nodiscard]] virtual std::string link_name(LinkId link) const = 0;
  /// "(0,3)"
  [[nodiscard]] virtual std::string chip_name(ChipId chip) const = 0;
};

}  // namespace podsim
