#include "sim/topology/graph.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/property_map/function_property_map.hpp>

#include "sim/base/invariant.hpp"
#include "sim/topology/graph_model.hpp"
#include "sim/topology/grid.hpp"

namespace podsim {
namespace {

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

LinkList::LinkList(const Topology& topology, const std::function<bool(LinkId)>& passable) {
  rows.push_back(0);
  for (int node = 0; node < topology.nodes(); ++node) {
    for (const OutLink& out : topology.out_links(ChipId{node}))
      if (!passable || passable(out.link)) links.push_back(out);
    rows.push_back(links.size());
  }
}

namespace {

/// Hops over the links of a list: a breadth-first search on two arrays, for the callers that make thousands of them.
void search_hops(const LinkList& list, std::size_t from, std::vector<int>& hops, std::vector<std::size_t>& reached) {
  std::fill(hops.begin(), hops.end(), -1);
  reached.assign(1, from);
  hops[from] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const OutLink& out : list.from(reached[i]))
      if (int& far = hops[out.to.index()]; far < 0) far = hops[reached[i]] + 1, reached.push_back(out.to.index());
}

}  // namespace

std::vector<int> hops_from(const Topology& topology, ChipId from) {
  std::vector<int> hops(static_cast<std::size_t>(topology.nodes()));
  std::vector<std::size_t> reached;
  search_hops(LinkList{topology}, from.index(), hops, reached);
  return hops;
}

std::vector<Arrival> arrivals_from(const LinkList& list, ChipId from) {
  std::vector<Arrival> arrivals(list.rows.size() - 1);
  std::vector<int> reached{from.value};
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const OutLink& out : list.from(ChipId{reached[i]}.index()))
      if (Arrival& arrival = arrivals[out.to.index()]; arrival.from < 0 && out.to != from) arrival = {reached[i], out.link}, reached.push_back(out.to.value);
  return arrivals;
}

std::vector<LinkId> path_to(const std::vector<Arrival>& arrivals, ChipId to) {
  std::vector<LinkId> path;
  for (int node = to.value; arrivals[ChipId{node}.index()].from >= 0; node = arrivals[ChipId{node}.index()].from)
    path.push_back(arrivals[ChipId{node}.index()].link);
  std::reverse(path.begin(), path.end());
  return path;
}

Expected<Shape> shape_of(const Topology& topology, Cancellation stop) {
  if (const Grid* grid = topology.plain_grid()) return shape_of(*grid);
  const LinkList list{topology};
  Shape shape;
  shape.links = static_cast<int>(list.links.size());
  shape.switches = topology.nodes() - topology.chips();
  double total = 0, pairs = 0;
  std::vector<int> hops(static_cast<std::size_t>(topology.nodes()));
  std::vector<std::size_t> reached;
  for (const auto& [chip, count] : topology.chip_classes()) {
    if (stop.requested()) return cancelled_work();
    const int degree = static_cast<int>(list.from(chip.index()).size());
    shape.least_degree = chip.value == 0 ? degree : std::min(shape.least_degree, degree);
    shape.largest_degree = std::max(shape.largest_degree, degree);

    search_hops(list, chip.index(), hops, reached);
    for (int to = 0; to < topology.chips(); ++to) {
      const int distance = hops[ChipId{to}.index()];
      shape.connected = shape.connected && distance >= 0;
      shape.diameter = std::max(shape.diameter, distance);
      if (to == chip.value || distance < 0) continue;
      total += static_cast<double>(distance) * count;
      pairs += count;
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

namespace {

/// From any of `sources` to any of `sinks`.
BytesPerSecond max_flow(const Topology& topology, const std::vector<std::size_t>& sources, const std::vector<std::size_t>& sinks) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using EdgeProperties = boost::property<
      boost::edge_capacity_t, std::int64_t,
      boost::property<boost::edge_residual_capacity_t, std::int64_t, boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>;
  using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, EdgeProperties>;
  const TopologyGraph graph{&topology};
  double limited_total = 0;
  for (auto [edge, end] = edges(graph); edge != end; ++edge)
    if (const BytesPerSecond bandwidth = topology.link((*edge).out.link).bandwidth; !is_unlimited(bandwidth)) limited_total += bandwidth.count();
  // Whole units, because flows in doubles may leave residues that never vanish: a byte per second, more only where sums would overflow.
  const double unit = std::max(1.0, limited_total / 0x1p50);
  const std::int64_t more_than_all = std::llround(limited_total / unit) + static_cast<std::int64_t>(num_edges(graph)) + 1;

  const std::size_t source = num_vertices(graph), sink = source + 1;
  FlowGraph flow(source + 2);
  const auto capacity = get(boost::edge_capacity, flow);
  const auto reverse = get(boost::edge_reverse, flow);
  const auto join = [&](std::size_t tail, std::size_t head, std::int64_t limit) {
    const auto forward = add_edge(tail, head, flow).first, backward = add_edge(head, tail, flow).first;
    put(capacity, forward, limit);
    put(capacity, backward, 0);
    put(reverse, forward, backward);
    put(reverse, backward, forward);
  };
  for (auto [edge, end] = edges(graph); edge != end; ++edge) {
    const BytesPerSecond bandwidth = topology.link((*edge).out.link).bandwidth;
    join(ChipId{(*edge).from}.index(), (*edge).out.to.index(), is_unlimited(bandwidth) ? more_than_all : std::llround(bandwidth.count() / unit));
  }
  for (const std::size_t node : sources) join(source, node, more_than_all);
  for (const std::size_t node : sinks) join(node, sink, more_than_all);
  const std::int64_t cut = boost::push_relabel_max_flow(flow, source, sink);
  return cut >= more_than_all ? unlimited<BytesPerSecond> : BytesPerSecond{static_cast<double>(cut) * unit};
}

}  // namespace

BytesPerSecond min_cut(const Topology& topology, ChipId from, ChipId to) {
  if (from == to) return unlimited<BytesPerSecond>;
  return max_flow(topology, {from.index()}, {to.index()});
}

BytesPerSecond flow_between(const Topology& topology, const std::vector<bool>& side) {
  PODSIM_ASSERT(side.size() == static_cast<std::size_t>(topology.chips()) && "one side per chip");
  std::vector<std::size_t> sources, sinks;
  for (std::size_t chip = 0; chip < side.size(); ++chip) (side[chip] ? sinks : sources).push_back(chip);
  return sources.empty() || sinks.empty() ? unlimited<BytesPerSecond> : max_flow(topology, sources, sinks);
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

BytesPerSecond cut_bandwidth(const Topology& topology, const std::vector<bool>& side) { return cut_bandwidth(topology, LinkList{topology}, side); }

BytesPerSecond cut_bandwidth(const Topology& topology, const LinkList& list, const std::vector<bool>& side) {
  PODSIM_ASSERT(side.size() == static_cast<std::size_t>(topology.nodes()) && "one side per node");
  BytesPerSecond total;
  for (std::size_t node = 0; node < side.size(); ++node) {
    if (side[node]) continue;
    for (const OutLink& out : list.from(node))
      if (side[out.to.index()]) total += topology.link(out.link).bandwidth;
  }
  return total;
}

}  // namespace podsim
