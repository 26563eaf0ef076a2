// Adapts Topology to Boost.Graph: nodes are vertices, links between them edges; nothing is copied.
// Internal to this folder: other folders use sim/topology/graph.hpp and need no Boost.
#pragma once

#include <memory>

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/iterator/iterator_facade.hpp>
#include <boost/range/irange.hpp>

#include "sim/topology/topology.hpp"

namespace podsim {

/// Models IncidenceGraph, VertexListGraph and EdgeListGraph. Vertices are node indices.
struct TopologyGraph {
  const Topology* topology = nullptr;
};

struct TopologyEdge {
  int from = 0;
  OutLink out;
  friend bool operator==(const TopologyEdge&, const TopologyEdge&) = default;
};

/// Iterates over the links of one node. All copies share the list that Topology::out_links() returned.
class OutEdgeIterator : public boost::iterator_facade<OutEdgeIterator, TopologyEdge, boost::random_access_traversal_tag, TopologyEdge> {
 public:
  OutEdgeIterator() = default;
  OutEdgeIterator(int from, std::shared_ptr<const std::vector<OutLink>> links, std::size_t position)
      : from_{from}, links_{std::move(links)}, position_{position} {}

 private:
  friend class boost::iterator_core_access;
  [[nodiscard]] TopologyEdge dereference() const { return {from_, (*links_)[position_]}; }
  [[nodiscard]] bool equal(const OutEdgeIterator& other) const { return position_ == other.position_; }
  [[nodiscard]] std::ptrdiff_t distance_to(const OutEdgeIterator& other) const {
    return static_cast<std::ptrdiff_t>(other.position_) - static_cast<std::ptrdiff_t>(position_);
  }
  void increment() { ++position_; }
  void decrement() { --position_; }
  void advance(std::ptrdiff_t by) { position_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(position_) + by); }

  int from_ = 0;
  std::shared_ptr<const std::vector<OutLink>> links_;
  std::size_t position_ = 0;
};

/// Iterates over the links of all nodes, node by node.
class EdgeIterator : public boost::iterator_facade<EdgeIterator, TopologyEdge, boost::forward_traversal_tag, TopologyEdge> {
 public:
  EdgeIterator() = default;
  EdgeIterator(const Topology* topology, int chip) : topology_{topology}, chip_{chip} { load(); }

 private:
  friend class boost::iterator_core_access;
  [[nodiscard]] TopologyEdge dereference() const { return {chip_, links_[position_]}; }
  [[nodiscard]] bool equal(const EdgeIterator& other) const { return chip_ == other.chip_ && position_ == other.position_; }
  void increment() {
    if (++position_ < links_.size()) return;
    ++chip_;
    load();
  }
  /// The first link of the first chip from `chip_` on that has one.
  void load() {
    position_ = 0;
    for (links_.clear(); chip_ < topology_->nodes(); ++chip_) {
      links_ = topology_->out_links(ChipId{chip_});
      if (!links_.empty()) return;
    }
  }

  const Topology* topology_ = nullptr;
  int chip_ = 0;
  std::vector<OutLink> links_;
  std::size_t position_ = 0;
};

}  // namespace podsim

// NOLINTBEGIN(readability-identifier-naming): the names are Boost's
namespace boost {

template <>
struct graph_traits<podsim::TopologyGraph> {
  using vertex_descriptor = int;
  using edge_descriptor = podsim::TopologyEdge;
  using directed_category = directed_tag;
  using edge_parallel_category = allow_parallel_edge_tag;
  struct traversal_category : incidence_graph_tag, vertex_list_graph_tag, edge_list_graph_tag {};
  using vertex_iterator = range_iterator<integer_range<int>>::type;
  using out_edge_iterator = podsim::OutEdgeIterator;
  using edge_iterator = podsim::EdgeIterator;
  using vertices_size_type = std::size_t;
  using edges_size_type = std::size_t;
  using degree_size_type = std::size_t;
  static int null_vertex() { return -1; }
};

template <>
struct property_map<podsim::TopologyGraph, vertex_index_t> {
  using type = typed_identity_property_map<int>;
  using const_type = type;
};

}  // namespace boost
// NOLINTEND(readability-identifier-naming)

namespace podsim {

// Found by argument-dependent lookup from Boost.Graph's algorithms.
using TopologyTraits = boost::graph_traits<TopologyGraph>;

inline std::pair<TopologyTraits::vertex_iterator, TopologyTraits::vertex_iterator> vertices(const TopologyGraph& graph) {
  const auto all = boost::irange(0, graph.topology->nodes());
  return {all.begin(), all.end()};
}
inline std::size_t num_vertices(const TopologyGraph& graph) { return static_cast<std::size_t>(graph.topology->nodes()); }

inline std::pair<OutEdgeIterator, OutEdgeIterator> out_edges(int chip, const TopologyGraph& graph) {
  const auto links = std::make_shared<const std::vector<OutLink>>(graph.topology->out_links(ChipId{chip}));
  return {OutEdgeIterator{chip, links, 0}, OutEdgeIterator{chip, links, links->size()}};
}
inline std::size_t out_degree(int chip, const TopologyGraph& graph) { return graph.topology->out_links(ChipId{chip}).size(); }
inline int source(const TopologyEdge& edge, const TopologyGraph&) { return edge.from; }
inline int target(const TopologyEdge& edge, const TopologyGraph&) { return edge.out.to.value; }

inline std::pair<EdgeIterator, EdgeIterator> edges(const TopologyGraph& graph) {
  return {EdgeIterator{graph.topology, 0}, EdgeIterator{graph.topology, graph.topology->nodes()}};
}
inline std::size_t num_edges(const TopologyGraph& graph) {
  std::size_t count = 0;
  for (int node = 0; node < graph.topology->nodes(); ++node) count += out_degree(node, graph);
  return count;
}

inline boost::typed_identity_property_map<int> get(boost::vertex_index_t, const TopologyGraph&) { return {}; }

}  // namespace podsim
