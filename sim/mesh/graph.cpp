#include "sim/mesh/graph.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <compare>
#include <limits>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/property_map/function_property_map.hpp>

#include "sim/mesh/graph_model.hpp"
#include "sim/mesh/grid.hpp"

namespace podsim {
namespace {

/// Records the distance of every chip that the search reaches.
class DistanceVisitor : public boost::default_bfs_visitor {
 public:
  explicit DistanceVisitor(std::vector<int>& distances) : distances_{&distances} {}
  void tree_edge(const TopologyEdge& edge, const TopologyGraph&) const {
    (*distances_)[edge.out.to.index()] = (*distances_)[ChipId{edge.from}.index()] + 1;
  }

 private:
  std::vector<int>* distances_;  // Boost copies visitors
};

/// Records, for every chip reached, the link over which the best path found so far arrives.
class ArrivalVisitor : public boost::default_dijkstra_visitor {
 public:
  explicit ArrivalVisitor(std::vector<TopologyEdge>& arrivals) : arrivals_{&arrivals} {}
  void edge_relaxed(const TopologyEdge& edge, const TopologyGraph&) const { (*arrivals_)[edge.out.to.index()] = edge; }

 private:
  std::vector<TopologyEdge>* arrivals_;
};

/// Length of a path. On the integer clock, so that paths of equal latency compare equal whatever the order of their sums.
struct PathLength {
  std::int64_t picoseconds = 0;
  std::int64_t hops = 0;
  friend auto operator<=>(const PathLength&, const PathLength&) = default;
};
constexpr PathLength no_path{std::numeric_limits<std::int64_t>::max(), 0};

}  // namespace

Shape shape_of(const Topology& topology) {
  if (const auto* grid = dynamic_cast<const Grid*>(&topology)) return shape_of(*grid);
  const TopologyGraph graph{&topology};
  const std::size_t chips = num_vertices(graph);
  Shape shape;
  std::vector<int> distances(chips);
  std::vector<boost::default_color_type> colours(chips);
  double total = 0, pairs = 0;
  for (int from = 0; from < topology.chips(); ++from) {
    const int degree = static_cast<int>(out_degree(from, graph));
    shape.links += degree;
    shape.least_degree = from == 0 ? degree : std::min(shape.least_degree, degree);
    shape.largest_degree = std::max(shape.largest_degree, degree);

    std::fill(distances.begin(), distances.end(), 0);  // 0 also stands for "not reached" below
    std::fill(colours.begin(), colours.end(), boost::white_color);
    boost::queue<int> queue;
    boost::breadth_first_visit(graph, from, queue, DistanceVisitor{distances},
                               boost::make_iterator_property_map(colours.begin(), get(boost::vertex_index, graph)));
    for (int to = 0; to < topology.chips(); ++to) {
      if (to == from) continue;
      const int distance = distances[ChipId{to}.index()];
      shape.connected = shape.connected && distance > 0;
      shape.diameter = std::max(shape.diameter, distance);
      total += distance;
      pairs += distance > 0 ? 1 : 0;
    }
  }
  if (pairs > 0) shape.mean_distance = total / pairs;
  return shape;
}

Shape shape_of(const Grid& grid) {
  Shape shape;
  const double chips = grid.chips();
  double total = 0;  // hops over ordered pairs of chips
  for (const GridDimension& dimension : grid.dimensions()) {
    const int extent = dimension.extent;
    const bool ring = dimension.wraps && extent > 2;
    const double size = extent;
    // Hops along this dimension over the ordered pairs of its coordinates.
    const double hops = ring ? size * std::floor(size * size / 4) : size * (size * size - 1) / 3;
    total += hops * (chips / size) * (chips / size);
    shape.links += 2 * (grid.chips() / extent) * (ring ? extent : extent - 1);
    shape.least_degree += ring ? 2 : extent > 1 ? 1 : 0;
    shape.largest_degree += extent > 2 ? 2 : extent - 1;
    shape.diameter += ring ? extent / 2 : extent - 1;
  }
  if (grid.chips() > 1) shape.mean_distance = total / (chips * (chips - 1));
  return shape;
}

BytesPerSecond min_cut(const Topology& topology, ChipId from, ChipId to) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using EdgeProperties = boost::property<
      boost::edge_capacity_t, std::int64_t,
      boost::property<boost::edge_residual_capacity_t, std::int64_t, boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>;
  using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, EdgeProperties>;
  if (from == to) return unlimited<BytesPerSecond>;

  const TopologyGraph graph{&topology};
  double limited_total = 0;
  for (auto [edge, end] = edges(graph); edge != end; ++edge)
    if (const BytesPerSecond bandwidth = topology.link((*edge).out.link).bandwidth; !is_unlimited(bandwidth)) limited_total += bandwidth.count();
  // Whole units, because flows in doubles may leave residues that never vanish: a byte per second, more only where sums would overflow.
  const double unit = std::max(1.0, limited_total / 0x1p50);
  const std::int64_t more_than_all = std::llround(limited_total / unit) + static_cast<std::int64_t>(num_edges(graph)) + 1;

  FlowGraph flow(num_vertices(graph));
  const auto capacity = get(boost::edge_capacity, flow);
  const auto reverse = get(boost::edge_reverse, flow);
  for (auto [edge, end] = edges(graph); edge != end; ++edge) {
    const BytesPerSecond bandwidth = topology.link((*edge).out.link).bandwidth;
    const auto tail = ChipId{(*edge).from}.index(), head = (*edge).out.to.index();
    const auto forward = add_edge(tail, head, flow).first, backward = add_edge(head, tail, flow).first;
    put(capacity, forward, is_unlimited(bandwidth) ? more_than_all : std::llround(bandwidth.count() / unit));
    put(capacity, backward, 0);
    put(reverse, forward, backward);
    put(reverse, backward, forward);
  }
  const std::int64_t cut = boost::push_relabel_max_flow(flow, from.index(), to.index());
  return cut >= more_than_all ? unlimited<BytesPerSecond> : BytesPerSecond{static_cast<double>(cut) * unit};
}

std::vector<LinkId> least_latency_path(const Topology& topology, ChipId from, ChipId to) {
  const TopologyGraph graph{&topology};
  const auto index = get(boost::vertex_index, graph);
  std::vector<PathLength> lengths(num_vertices(graph));
  std::vector<TopologyEdge> arrivals(num_vertices(graph));
  const auto weight = boost::make_function_property_map<TopologyEdge>([&](const TopologyEdge& edge) {
    return PathLength{ceil_to_clock(topology.link(edge.out.link).latency).count(), 1};
  });
  const auto sum = [](const PathLength& a, const PathLength& b) { return PathLength{a.picoseconds + b.picoseconds, a.hops + b.hops}; };
  boost::dijkstra_shortest_paths(graph, from.value,
                                 boost::weight_map(weight)
                                     .distance_map(boost::make_iterator_property_map(lengths.begin(), index))
                                     .distance_compare(std::less<PathLength>{})
                                     .distance_combine(sum)
                                     .distance_inf(no_path)
                                     .distance_zero(PathLength{})
                                     .visitor(ArrivalVisitor{arrivals}));
  std::vector<LinkId> path;
  if (lengths[to.index()] == no_path) return path;
  for (int chip = to.value; chip != from.value; chip = arrivals[ChipId{chip}.index()].from) path.push_back(arrivals[ChipId{chip}.index()].out.link);
  std::reverse(path.begin(), path.end());
  return path;
}

BytesPerSecond cut_bandwidth(const Topology& topology, const std::vector<bool>& side) {
  assert(side.size() == static_cast<std::size_t>(topology.chips()) && "one side per chip");
  const TopologyGraph graph{&topology};
  BytesPerSecond total;
  for (auto [edge, end] = edges(graph); edge != end; ++edge)
    if (!side[ChipId{(*edge).from}.index()] && side[(*edge).out.to.index()]) total += topology.link((*edge).out.link).bandwidth;
  return total;
}

}  // namespace podsim
