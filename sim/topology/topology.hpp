// Chips, links, routes. A link is ONE direction of one cable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/expected.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/quantity.hpp"

namespace podsim {

/// Bandwidth and latency of one direction of a link. The two directions of a cable do not share bandwidth.
struct LinkParameters {
  BytesPerSecond bandwidth = unlimited<BytesPerSecond>;
  Seconds latency{};
  /// Of a link to a switch that adds up and copies: the share of the bandwidth that such transfers reach. 0: it does neither.
  double in_switch_efficiency = 0;
  friend bool operator==(const LinkParameters&, const LinkParameters&) = default;
};

struct OutLink {
  LinkId link;
  ChipId to;
  friend bool operator==(const OutLink&, const OutLink&) = default;
};

/// How to choose among equally short routes.
struct RouteOptions {
  std::vector<int> dimension_order;  // a permutation of the dimensions; empty: 0 first
  /// The way round a wrapped dimension when both are equally long: +1 increasing, -1 decreasing, 0: by the endpoints, so that both ways are used.
  int antipodal_sign = 0;
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

/// The cables that join slices: every chip to its host, every host to the network, both ways.
struct SliceJoin {
  LinkParameters chip_to_host{}, host_to_network{};
  std::vector<int> host_of;  // per chip of a slice; hosts are numbered from 0 without gaps
};

/// Equal slices and the cables that join them.
struct SliceParts {
  const Topology& slice;
  int slices = 1;
  const SliceJoin& join;
};

/// How the chips of a topology are alike. They are row-major over the dimensions, dimension 0 most significant. To turn a dimension is to add the same number to the coordinate of
/// every chip along it, round its end.
class Symmetry {
 public:
  struct Dimension {
    int extent = 1;
    /// Turning it keeps the parameters of all links and all routes, but for those where both ways round are equally long: these go by the parity of coordinates.
    bool turns = false;
    /// Any permutation of its coordinates does, and there is one way only: as over a switch.
    bool permutes = false;
  };

  virtual ~Symmetry() = default;
  [[nodiscard]] virtual std::vector<Dimension> symmetric_dimensions() const = 0;
  /// The chip that a link leaves, of one that enters a chip from a switch that chip; of one between switches a chip behind them. What turns a dimension, but not by nothing, moves all links.
  [[nodiscard]] virtual ChipId chip_at(LinkId link) const = 0;
  /// The link that is at `chip` what `link` is at its own.
  [[nodiscard]] virtual LinkId moved_to(LinkId link, ChipId chip) const = 0;
};

/// Interface of every topology. Nodes are the chips, followed by the switches if there are any. All link ids are below link_slots(), so they can
/// index arrays; some ids may be unused.
class Topology {
 public:
  virtual ~Topology() = default;

  [[nodiscard]] virtual int chips() const = 0;
  [[nodiscard]] virtual int nodes() const { return chips(); }
  [[nodiscard]] virtual int link_slots() const = 0;
  /// The links that leave a node towards other nodes, in increasing id.
  [[nodiscard]] virtual std::vector<OutLink> out_links(ChipId node) const = 0;
  [[nodiscard]] virtual LinkParameters link(LinkId link) const = 0;
  /// The machine's dimension whose links this link is one of: 0 for x, 1 for y, ...; nullopt: none.
  [[nodiscard]] virtual std::optional<int> dimension_of(LinkId /*link*/) const { return std::nullopt; }
  /// The grid that gives the chips their coordinates; null if they have none.
  [[nodiscard]] virtual const Grid* grid() const { return nullptr; }
  /// This topology if it is an unchanged grid, for which closed forms hold; null if it is twisted, damaged or part of a larger topology.
  [[nodiscard]] virtual const Grid* plain_grid() const { return nullptr; }
  /// How its chips are alike; null if that is not known.
  [[nodiscard]] virtual const Symmetry* symmetry() const { return nullptr; }
  /// Whether the step from the last coordinate of a dimension of the slice to the first is like any other step, so that a mesh axis along it wraps.
  /// By default every dimension closes, as over switches.
  [[nodiscard]] virtual bool closes(int /*dimension*/) const { return true; }
  /// Whether that holds for every part of the dimension, too. By default it does, as over switches.
  [[nodiscard]] virtual bool parts_close(int /*dimension*/) const { return true; }
  /// Links that are broken and carry nothing, in increasing id; out_links() leaves them out.
  [[nodiscard]] virtual std::vector<LinkId> broken_links() const { return {}; }
  /// The equal slices that this topology joins; nullopt: it is a single slice.
  [[nodiscard]] virtual std::optional<SliceParts> parts() const { return std::nullopt; }
  /// The link from one device of a chip to the other, on chips of two devices; nullopt: unlimited bandwidth between them.
  [[nodiscard]] virtual std::optional<LinkId> inner_link(ChipId /*chip*/, int /*core*/) const { return std::nullopt; }
  /// Whether a link joins two nodes (a hop), and not a device and its router or two devices of a chip.
  [[nodiscard]] virtual bool is_hop(LinkId link) const = 0;
  /// Appends the links from `from` to `to` to `links`, in order of travel; injection comes first and ejection last if they are limited.
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
