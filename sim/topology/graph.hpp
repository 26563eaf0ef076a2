// Boost.Graph over any topology: a model of IncidenceGraph, VertexListGraph and EdgeListGraph through graph_traits (graph_model.hpp), no
// copy of the topology. The only place of podsim where Boost.Graph is used; the functions below are what the rest needs of it.
// Injection and ejection are no links between chips and do not count here.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/topology/grid.hpp"

namespace podsim {

struct Shape {
  int links = 0;         // directed, between nodes
  int switches = 0;      // nodes that are no chips
  int least_degree = 0;  // out-links of a chip
  int largest_degree = 0;
  int diameter = 0;          // hops
  double mean_distance = 0;  // hops, over ordered pairs of different chips that are connected; 0 for one chip
  bool connected = true;     // every chip reaches every other
};

/// Breadth-first search from a chip of each class of equivalent ones, cost O(classes * links); a Grid is recognised and counted in closed form.
/// Errors: cancelled work.
Expected<Shape> shape_of(const Topology& topology, Cancellation stop = {});

/// The same from the extents alone. Hops over the ordered pairs of one dimension: e * floor(e^2 / 4) on a ring, e (e^2 - 1) / 3 on a line.
Shape shape_of(const Grid& grid);

/// The least total bandwidth that has to be cut so that `from` no longer reaches `to` (max-flow, push-relabel, in whole bytes
/// per second). Zero where it does not reach it to begin with; unlimited for from == to and where a path of unlimited links joins them.
BytesPerSecond min_cut(const Topology& topology, ChipId from, ChipId to);

/// The links of a path of least total latency, ties by fewest hops, found by Dijkstra on latencies in whole picoseconds; empty when
/// there is none or from == to.
std::vector<LinkId> least_latency_path(const Topology& topology, ChipId from, ChipId to);

/// Hops from a node to every node; -1 where it does not lead.
std::vector<int> hops_from(const Topology& topology, ChipId from);

/// The most that chips with `side` false can send to those with `side` true at once (max-flow), one direction.
BytesPerSecond flow_between(const Topology& topology, const std::vector<bool>& side);

/// The links between nodes written out, for whoever goes over them more than once: all, or those that `passable` lets through.
struct LinkList {
  explicit LinkList(const Topology& topology, const std::function<bool(LinkId)>& passable = {});
  [[nodiscard]] std::span<const OutLink> from(std::size_t node) const { return {links.data() + rows[node], links.data() + rows[node + 1]}; }
  std::vector<std::size_t> rows;  // per node, where its links begin; one more at the end
  std::vector<OutLink> links;     // as out_links() has them, node by node
};

/// How a breadth-first search came to a node: from which other one, over which link. `from` negative: it starts there, or does not come there.
struct Arrival {
  int from = -1;
  LinkId link;
};
/// Per node. Of the paths of fewest hops to it these make the first one, in the order of the links of each node.
std::vector<Arrival> arrivals_from(const LinkList& list, ChipId from);
/// The links of that path; empty: there is none, or from == to.
std::vector<LinkId> path_to(const std::vector<Arrival>& arrivals, ChipId to);

/// Total bandwidth, one direction, from nodes with `side` false to nodes with `side` true. Cost O(links).
BytesPerSecond cut_bandwidth(const Topology& topology, const std::vector<bool>& side);
BytesPerSecond cut_bandwidth(const Topology& topology, const LinkList& list, const std::vector<bool>& side);

}  // namespace podsim
