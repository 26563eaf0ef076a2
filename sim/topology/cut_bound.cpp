#include "sim/topology/cut_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include "sim/base/invariant.hpp"
#include "sim/topology/graph.hpp"

namespace podsim {

namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using EdgeProperties =
    boost::property<boost::edge_capacity_t, std::int64_t,
                    boost::property<boost::edge_residual_capacity_t, std::int64_t, boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>;
using RateGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, EdgeProperties>;

/// A topology between a source with a limited edge to each weighted node and a sink behind all sinks. Capacities are whole units.
class RateFlow {
 public:
  RateFlow(const Topology& topology, const LinkList& list, const std::vector<double>& weight, const std::vector<bool>& sink, bool backwards)
      : weight_{weight}, sink_{sink}, nodes_{weight.size()}, graph_(weight.size() + 2) {
    double total = 0;
    for (const OutLink& out : list.links)
      if (const BytesPerSecond bandwidth = topology.link(out.link).bandwidth; !is_unlimited(bandwidth)) total += bandwidth.count();
    unit_ = std::max(1e-3, total / 0x1p50);  // sums of whole units do not overflow
    more_than_all_ = std::llround(total / unit_) + static_cast<std::int64_t>(list.links.size()) + 1;
    for (std::size_t node = 0; node < nodes_; ++node) {
      for (const OutLink& out : list.from(node)) {
        const BytesPerSecond bandwidth = topology.link(out.link).bandwidth;
        const std::int64_t limit = is_unlimited(bandwidth) ? more_than_all_ : std::llround(bandwidth.count() / unit_);
        backwards ? join(out.to.index(), node, limit) : join(node, out.to.index(), limit);
      }
      if (sink[node]) join(node, nodes_ + 1, more_than_all_);
      if (!sink[node] && weight[node] > 0) limits_.push_back({node, join(nodes_, node, 0)});
    }
  }

  /// Whether every source can send `rate` times its weight; if not, a set of nodes that cannot.
  bool carries(double rate, std::vector<bool>& stuck) {
    std::int64_t wanted = 0;
    for (const auto& [node, edge] : limits_) {
      const auto limit = std::min(more_than_all_, static_cast<std::int64_t>(std::floor(rate * weight_[node] / unit_)));
      put(boost::edge_capacity, graph_, edge, limit);
      wanted += limit;
    }
    if (boost::push_relabel_max_flow(graph_, nodes_, nodes_ + 1) == wanted) return true;
    std::vector<std::size_t> reached{nodes_};
    stuck.assign(nodes_ + 2, false);
    stuck[nodes_] = true;
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (auto [edge, end] = out_edges(reached[i], graph_); edge != end; ++edge)
        if (const std::size_t to = target(*edge, graph_); !stuck[to] && get(boost::edge_residual_capacity, graph_, *edge) > 0)
          stuck[to] = true, reached.push_back(to);
    stuck.resize(nodes_);
    return false;
  }
  /// What leaves the set, per weight in it.
  [[nodiscard]] double rate_of(const std::vector<bool>& set) const {
    double inside = 0, leaving = 0;
    for (std::size_t node = 0; node < nodes_; ++node) {
      if (!set[node]) continue;
      if (!sink_[node]) inside += weight_[node];
      for (auto [edge, end] = out_edges(node, graph_); edge != end; ++edge)
        if (const std::size_t to = target(*edge, graph_); to < nodes_ && !set[to]) leaving += static_cast<double>(get(boost::edge_capacity, graph_, *edge));
    }
    const bool limited = inside > 0 && leaving < static_cast<double>(more_than_all_);  // no unlimited link leaves it
    return limited ? leaving * unit_ / inside : std::numeric_limits<double>::infinity();
  }

 private:
  Traits::edge_descriptor join(std::size_t tail, std::size_t head, std::int64_t limit) {
    const auto forward = add_edge(tail, head, graph_).first, backward = add_edge(head, tail, graph_).first;
    put(boost::edge_capacity, graph_, forward, limit);
    put(boost::edge_capacity, graph_, backward, 0);
    put(boost::edge_reverse, graph_, forward, backward);
    put(boost::edge_reverse, graph_, backward, forward);
    return forward;
  }

  const std::vector<double>& weight_;
  const std::vector<bool>& sink_;
  std::size_t nodes_;
  RateGraph graph_;
  double unit_ = 1;
  std::int64_t more_than_all_ = 0;
  std::vector<std::pair<std::size_t, Traits::edge_descriptor>> limits_;
};

}  // namespace

Expected<CommonRate> common_rate(const Topology& topology, const std::vector<double>& weight, const std::vector<bool>& sink, bool backwards,
                                 Cancellation stop) {
  PODSIM_ASSERT(weight.size() == static_cast<std::size_t>(topology.nodes()) && sink.size() == weight.size() && "one per node");
  const LinkList list{topology};
  RateFlow flow{topology, list, weight, sink, backwards};
  CommonRate found;
  std::vector<bool> set(weight.size());
  for (std::size_t node = 0; node < set.size(); ++node) set[node] = !sink[node];  // first: everything but the sinks
  double rate = flow.rate_of(set);
  if (!std::isfinite(rate)) return found;
  found.sources_side = set;
  constexpr int most_flows = 64;
  for (int i = 0; i < most_flows; ++i) {
    if (stop.requested()) return cancelled_work();
    if (flow.carries(rate * (1 - 1e-9), set)) break;
    const double less = flow.rate_of(set);
    if (!(less < rate)) break;
    rate = less;
    found.sources_side = set;
  }
  found.rate = BytesPerSecond{rate};
  return found;
}

PartsCut links_out_of(const Topology& topology, const std::vector<int>& part) {
  PODSIM_ASSERT(part.size() == static_cast<std::size_t>(topology.chips()) && "one part per chip");
  const LinkList list{topology};
  constexpr int unknown = -2, none = -1;
  std::vector<int> parts(part);
  parts.resize(static_cast<std::size_t>(topology.nodes()), unknown);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t node = part.size(); node < parts.size(); ++node) {
      if (parts[node] != unknown) continue;
      int common = unknown;
      for (const OutLink& out : list.from(node)) {
        const int other = parts[out.to.index()];
        common = other == unknown ? unknown : common == unknown || common == other ? other : none;
        if (common == unknown || common == none) break;
      }
      if (common == unknown) continue;
      parts[node] = common;
      changed = true;
    }
  }
  PartsCut cut;
  for (std::size_t node = 0; node < parts.size(); ++node)
    for (const OutLink& out : list.from(node)) {
      if (parts[node] < 0 || parts[out.to.index()] == parts[node]) continue;
      const LinkParameters link = topology.link(out.link);
      cut.bandwidth += link.bandwidth;
      cut.adds = cut.adds || (out.to.value >= topology.chips() && link.in_switch_efficiency > 0);
    }
  return cut;
}

}  // namespace podsim
