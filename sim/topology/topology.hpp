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

/// A class of equivalent chips: the lowest of them, and how many they are.
struct ChipClass {
  ChipId lowest;
  int chips = 1;
  friend bool operator==(const ChipClass&, const ChipClass&) = default;
};

class Grid;
class Topology;

/// What joins slices: every chip to its host, every host to the network, each way.
struct SliceJoin {
  LinkParameters chip_to_host{}, host_to_network{};
  std::vector<int> host_of;  // per chip of a slice, from 0 without a gap
};

/// How a topology is made of several equal slices.
struct SliceParts {
  const Topology& slice;
  int slices = 1;
  const SliceJoin& join;
};

/// Interface of every topology. Nodes are the chips and behind them, where there are any, the switches. Link ids are dense enough to index arrays:
/// all are below link_slots(), some slots may be unused.
class Topology {
 public:
  virtual ~Topology() = default;

  [[nodiscard]] virtual int chips() const = 0;
  [[nodiscard]] virtual int nodes() const { return chips(); }
  [[nodiscard]] virtual int link_slots() const = 0;
  /// The links that leave a node towards other nodes, in increasing id.
  [[nodiscard]] virtual std::vector<OutLink> out_links(ChipId node) const = 0;
  [[nodiscard]] virtual LinkParameters link(LinkId link) const = 0;
  /// Which of a machine's links it is made of: 0 for x, 1 for y, ...; nullopt: none of them.
  [[nodiscard]] virtual std::optional<int> dimension_of(LinkId /*link*/) const { return std::nullopt; }
  /// The grid whose coordinates the chips have; null where there is none.
  [[nodiscard]] virtual const Grid* grid() const { return nullptr; }
  /// This topology, if it is a grid as it was made, neither twisted nor damaged nor part of something larger: closed forms hold. Else null.
  [[nodiscard]] virtual const Grid* plain_grid() const { return nullptr; }
  /// Whether going on from the last coordinate of a dimension of the slice to the first is a step like any other, so that a mesh axis along it wraps.
  /// By default all do, as over switches.
  [[nodiscard]] virtual bool closes(int /*dimension*/) const { return true; }
  /// Links that were there and carry nothing any more, in increasing id; out_links() does not have them.
  [[nodiscard]] virtual std::vector<LinkId> broken_links() const { return {}; }
  /// What it is made of; nullopt: one slice.
  [[nodiscard]] virtual std::optional<SliceParts> parts() const { return std::nullopt; }
  /// The link from one device of a chip to the other, on chips of two; nullopt: nothing limits what they tell each other.
  [[nodiscard]] virtual std::optional<LinkId> inner_link(ChipId /*chip*/, int /*core*/) const { return std::nullopt; }
  /// Whether a link joins two nodes (a hop), rather than a device and its router or two devices of a chip.
  [[nodiscard]] virtual bool is_hop(LinkId link) const = 0;
  /// The links from `from` to `to` in order of travel, injection first and ejection last where they are limited; appended to `links`.
  /// from == to appends nothing. Errors: the chips are not connected.
  virtual Status route(ChipId from, ChipId to, const RouteOptions& options, std::vector<LinkId>& links) const = 0;
  /// The classes of equivalent chips and links: for any two members of a class there is a renumbering of nodes and links that takes one to the other
  /// and keeps every route and the parameters of every link. A count over all chips needs one chip of each class. By default each chip and each link
  /// is a class of its own.
  [[nodiscard]] virtual std::vector<ChipClass> chip_classes() const {
    std::vector<ChipClass> classes;
    for (int chip = 0; chip < chips(); ++chip) classes.push_back({ChipId{chip}, 1});
    return classes;
  }
  /// The number of a link's class, below link_slots().
  [[nodiscard]] virtual int link_class(LinkId link) const { return link.value; }
  /// For people: "(0,3)->(0,0) y+", "injection (0,3)".
  [[nodiscard]] virtual std::string link_name(LinkId link) const = 0;
  /// "(0,3)"; of a switch: "leaf 2"
  [[nodiscard]] virtual std::string chip_name(ChipId node) const = 0;
};

}  // namespace podsim
