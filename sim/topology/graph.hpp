// Boost.Graph over any topology: a model of IncidenceGraph, VertexListGraph and EdgeListGraph through graph_traits (graph_model.hpp), without a
// copy of the topology. Only this folder uses Boost.Graph; other code calls the functions below.
// Injection and ejection links are not edges and do not count here.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "sim/base/cancellation.hpp"
#include "sim/topology/grid.hpp"

namespace podsim {

struct Shape {
  int links = 0;         // directed, between nodes
  int switches = 0;      // nodes that are not chips
  int least_degree = 0;  // out-links of a chip
  int largest_degree = 0;
  int diameter = 0;          // hops
  double mean_distance = 0;  // hops, over ordered pairs of different chips that are connected; 0 for one chip
  bool connected = true;     // every chip reaches every other
};

/// The shape of any topology. Breadth-first search from one chip of each class of equivalent chips, O(classes * links); a Grid is counted in closed
/// form. Errors: cancelled work.
Expected<Shape> shape_of(const Topology& topology, Cancellation stop = {});

/// The same for a grid, from its extents. Hops over the ordered pairs of one dimension: e * floor(e^2 / 4) on a ring, e (e^2 - 1) / 3 on a line.
Shape shape_of(const Grid& grid);

/// The least total bandwidth whose removal disconnects `to` from `from` (max-flow, push-relabel, in whole bytes per second). Zero if they are not
/// connected; unlimited for from == to, and if a path of unlimited links joins them.
BytesPerSecond min_cut(const Topology& topology, ChipId from, ChipId to);

/// The links of a path of least total latency, ties by fewest hops (Dijkstra on latencies in whole picoseconds). Empty if there is no path or
/// from == to.
std::vector<LinkId> least_latency_path(const Topology& topology, ChipId from, ChipId to);

/// Hops from a node to every node; -1 if there is no path.
std::vector<int> hops_from(const Topology& topology, ChipId from);

/// The max-flow, one direction, from the chips with `side` false to those with `side` true.
BytesPerSecond flow_between(const Topology& topology, const std::vector<bool>& side);

/// The links between nodes as a list, for repeated searches: all links, or those for which `passable` is true.
struct LinkList {
  explicit LinkList(const Topology& topology, const std::function<bool(LinkId)>& passable = {});
  [[nodiscard]] std::span<const OutLink> from(std::size_t node) const { return {links.data() + rows[node], links.data() + rows[node + 1]}; }
  std::vector<std::size_t> rows;  // per node, the position of its first link; one more entry at the end
  std::vector<OutLink> links;     // as out_links() returns them, node by node
};

/// The last step of a breadth-first search to a node: the node before it and the link. Negative `from`: the root of the search, or unreachable.
struct Arrival {
  int from = -1;
  LinkId link;
};
/// Per node. Among the paths of fewest hops it is the first one in the order of each node's links.
std::vector<Arrival> arrivals_from(const LinkList& list, ChipId from);
/// The links of that path; empty if there is none or from == to.
std::vector<LinkId> path_to(const std::vector<Arrival>& arrivals, ChipId to);

/// Total bandwidth, one direction, from nodes with `side` false to nodes with `side` true. Cost O(links).
BytesPerSecond cut_bandwidth(const Topology& topology, const std::vector<bool>& side);
BytesPerSecond cut_bandwidth(const Topology& topology, const LinkList& list, const std::vector<bool>& side);

}  // namespace podsim
