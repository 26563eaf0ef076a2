#include "workloads/sharded/reshard.hpp"

#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>
#include <numeric>
#include <set>

#include "sim/base/invariant.hpp"
#include "sim/schedule/reference_program.hpp"

namespace podsim {

std::string_view name_of(StepKind kind) {
  static constexpr std::array<std::string_view, 7> names{"slice", "all-gather", "reduce-scatter", "all-reduce", "all-to-all", "permute", "unreduce"};
  return names[static_cast<std::size_t>(kind)];
}

bool is_collective(StepKind kind) { return kind != StepKind::slice && kind != StepKind::unreduce; }

bool less(const ReshardCost& a, const ReshardCost& b, Objective objective) {
  const std::pair by_bytes{a.received, a.collectives}, other_bytes{b.received, b.collectives};
  const std::pair by_count{a.collectives, a.received}, other_count{b.collectives, b.received};
  return objective == Objective::bytes ? by_bytes < other_bytes : by_count < other_count;
}

Bytes block_bytes(const ArrayLayout& array, const Sharding& sharding, const Mesh& mesh) {
  return Bytes{array.element.count() * element_count(block_extents(array.extents, sharding, mesh))};
}

bool divides(const Extents& extents, const Sharding& sharding, const Mesh& mesh) {
  for (std::size_t d = 0; d < extents.size(); ++d)
    if (extents[d] % devices_along(mesh, sharding.axes_of(d)) != 0) return false;
  return true;
}

namespace {

using Axes = std::vector<int>;

/// Objective first, other number second, slices last: a longer way of equal cost is not taken.
using Weight = std::array<std::int64_t, 3>;
struct AddWeights {
  Weight operator()(const Weight& a, const Weight& b) const { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
};

Weight weight_of(const ReshardStep& step, Objective objective) {
  const std::int64_t bytes = step.received.count(), collectives = is_collective(step.kind) ? 1 : 0;
  return objective == Objective::bytes ? Weight{bytes, collectives, 1} : Weight{collectives, bytes, 1};
}

/// Part of an amount of bytes; rounded up, where blocks are smaller than the number of devices.
Bytes received_part(Bytes whole, std::int64_t devices) { return Bytes{whole.count() - whole.count() / devices}; }

/// Every sharding with these axes: each axis divides a dimension, is pending, or is absent.
std::vector<Sharding> shardings_of(const ArrayLayout& array, const Axes& axes, const Mesh& mesh) {
  std::set<Sharding> found;
  Sharding current;
  current.dims.resize(array.extents.size());
  const auto place = [&](const auto& self, std::size_t used) -> void {
    Axes rest;
    for (std::size_t a = 0; a < axes.size(); ++a)
      if ((used >> a & 1) == 0) rest.push_back(axes[a]);
    for (std::size_t pending = 0; pending < std::size_t{1} << rest.size(); ++pending) {
      Sharding sharding = current;
      for (std::size_t r = 0; r < rest.size(); ++r)
        if ((pending >> r & 1) != 0) sharding.unreduced.push_back(rest[r]);
      std::sort(sharding.unreduced.begin(), sharding.unreduced.end());
      found.insert(sharding.canonical());
    }
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if ((used >> a & 1) != 0) continue;
      for (Axes& dim : current.dims) {
        dim.push_back(axes[a]);
        if (divides(array.extents, current, mesh)) self(self, used | std::size_t{1} << a);
        dim.pop_back();
      }
    }
  };
  place(place, 0);
  return {found.begin(), found.end()};
}

/// The steps that lead away from a sharding.
class Steps {
 public:
  Steps(const Mesh& mesh, const ArrayLayout& array, const Axes& axes, const std::vector<Sharding>& all) : mesh_{mesh}, array_{array}, axes_{axes}, all_{all} {}

  std::vector<ReshardStep> from(const Sharding& start) {
    steps_.clear();
    start_ = start;
    start_.dims.resize(array_.extents.size());
    block_ = block_bytes(array_, start_, mesh_);
    std::set<int> used(start_.unreduced.begin(), start_.unreduced.end());
    for (const Axes& dim : start_.dims) used.insert(dim.begin(), dim.end());
    for (std::size_t d = 0; d < start_.dims.size(); ++d) {
      for (const int axis : axes_)
        if (!used.contains(axis)) appended(StepKind::slice, d, {axis}, Bytes{});
      for (std::size_t count = 1; count <= start_.dims[d].size(); ++count) leave(d, count);
    }
    for (std::size_t chosen = 1; chosen < std::size_t{1} << start_.unreduced.size(); ++chosen) reduce(chosen);
    permute();
    return std::move(steps_);
  }

 private:
  void add(StepKind kind, Axes axes, std::size_t dim, std::size_t from_dim, const Sharding& after, Bytes received) {
    if (!divides(array_.extents, after, mesh_)) return;
    steps_.push_back({kind, std::move(axes), static_cast<int>(dim), static_cast<int>(from_dim), start_.canonical(), after.canonical(), block_, received});
  }
  void appended(StepKind kind, std::size_t dim, const Axes& axes, Bytes received) {
    Sharding after = start_;
    after.dims[dim].insert(after.dims[dim].end(), axes.begin(), axes.end());
    std::erase_if(after.unreduced, [&](int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
    add(kind, axes, dim, dim, after, received);
  }

  /// The last `count` axes of a dimension: gathered, or moved to another dimension.
  void leave(std::size_t dim, std::size_t count) {
    const Axes& own = start_.dims[dim];
    const Axes axes(own.end() - static_cast<std::ptrdiff_t>(count), own.end());
    const std::int64_t P = devices_along(mesh_, axes);
    Sharding after = start_;
    after.dims[dim].resize(own.size() - count);
    add(StepKind::all_gather, axes, dim, dim, after, Bytes{block_.count() * (P - 1)});
    for (std::size_t to = 0; to < start_.dims.size(); ++to) {
      if (to == dim) continue;
      Sharding moved = after;
      moved.dims[to].insert(moved.dims[to].end(), axes.begin(), axes.end());
      add(StepKind::all_to_all, axes, to, dim, moved, received_part(block_, P));
    }
  }

  void reduce(std::size_t chosen) {
    Axes axes;
    for (std::size_t u = 0; u < start_.unreduced.size(); ++u)
      if ((chosen >> u & 1) != 0) axes.push_back(start_.unreduced[u]);
    const Bytes scattered = received_part(block_, devices_along(mesh_, axes));
    Sharding after = start_;
    std::erase_if(after.unreduced, [&](int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); });
    add(StepKind::all_reduce, axes, 0, 0, after, Bytes{2 * scattered.count()});
    do {
      for (std::size_t d = 0; d < start_.dims.size(); ++d) appended(StepKind::reduce_scatter, d, axes, scattered);
    } while (std::next_permutation(axes.begin(), axes.end()));
  }

  /// Blocks of the same shape on other devices.
  void permute() {
    for (const Sharding& other : all_) {
      if (other.unreduced != start_.unreduced || other == start_.canonical()) continue;
      std::set<int> axes;
      bool same = true;
      for (std::size_t d = 0; d < start_.dims.size(); ++d) {
        same = same && devices_along(mesh_, other.axes_of(d)) == devices_along(mesh_, start_.dims[d]);
        axes.insert(start_.dims[d].begin(), start_.dims[d].end());
        axes.insert(other.axes_of(d).begin(), other.axes_of(d).end());
      }
      if (same) add(StepKind::permute, {axes.begin(), axes.end()}, 0, 0, other, block_);
    }
  }

  const Mesh& mesh_;
  const ArrayLayout& array_;
  const Axes& axes_;
  const std::vector<Sharding>& all_;
  Sharding start_;
  Bytes block_;
  std::vector<ReshardStep> steps_;
};

}  // namespace

struct Resharder::Key {
  ArrayLayout array;
  Axes axes;
  friend auto operator<=>(const Key&, const Key&) = default;
};

struct Resharder::Graph {
  struct Edge {
    std::array<std::int64_t, 3> weight{};
    ReshardStep step;
  };
  using Steps = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Edge>;

  explicit Graph(std::vector<Sharding> all) : shardings{std::move(all)}, steps{shardings.size()} {}

  std::vector<Sharding> shardings;  // of each vertex, increasing
  Steps steps;
  std::map<Sharding, std::map<Sharding, Resharding>> found;  // from, to
};

Resharder::Resharder(const Mesh& mesh, Objective objective) : mesh_{mesh}, objective_{objective} {}
Resharder::~Resharder() = default;
Resharder::Resharder(Resharder&&) noexcept = default;

Resharder::Graph& Resharder::graph(const ArrayLayout& array, const Axes& axes) {
  std::unique_ptr<Graph>& graph = graphs_[{array, axes}];
  if (graph) return *graph;
  graph = std::make_unique<Graph>(shardings_of(array, axes, mesh_));
  Steps steps{mesh_, array, axes, graph->shardings};
  for (std::size_t v = 0; v < graph->shardings.size(); ++v)
    for (ReshardStep& step : steps.from(graph->shardings[v])) {
      const auto to = std::lower_bound(graph->shardings.begin(), graph->shardings.end(), step.after) - graph->shardings.begin();
      const Weight weight = weight_of(step, objective_);
      boost::add_edge(v, static_cast<std::size_t>(to), Graph::Edge{weight, std::move(step)}, graph->steps);
    }
  return *graph;
}

const std::map<Sharding, Resharding>& Resharder::all(const ArrayLayout& array, const Sharding& from, const Axes& axes) {
  Graph& in = graph(array, axes);
  const auto [place, fresh] = in.found.try_emplace(from.canonical());
  std::map<Sharding, Resharding>& found = place->second;
  const auto start = std::lower_bound(in.shardings.begin(), in.shardings.end(), from.canonical());
  if (!fresh || start == in.shardings.end() || *start != from.canonical()) return found;

  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
  const std::size_t source = static_cast<std::size_t>(start - in.shardings.begin());
  std::vector<Weight> distance(in.shardings.size());
  std::vector<std::size_t> previous(in.shardings.size());
  boost::dijkstra_shortest_paths(in.steps, source,
                                 boost::weight_map(boost::get(&Graph::Edge::weight, in.steps))
                                     .distance_map(boost::make_iterator_property_map(distance.begin(), boost::get(boost::vertex_index, in.steps)))
                                     .predecessor_map(boost::make_iterator_property_map(previous.begin(), boost::get(boost::vertex_index, in.steps)))
                                     .distance_compare(std::less<Weight>{})
                                     .distance_combine(AddWeights{})
                                     .distance_inf(Weight{far, far, far})
                                     .distance_zero(Weight{}));
  for (std::size_t v = 0; v < in.shardings.size(); ++v) {
    if (distance[v][0] == far) continue;
    Resharding resharding;
    for (std::size_t at = v; at != source; at = previous[at]) {
      const ReshardStep* best = nullptr;
      for (auto [edge, last] = boost::out_edges(previous[at], in.steps); edge != last; ++edge)
        if (boost::target(*edge, in.steps) == at)
          if (const Graph::Edge& step = in.steps[*edge]; AddWeights{}(distance[previous[at]], step.weight) == distance[at] && best == nullptr) best = &step.step;
      resharding.steps.push_back(*best);
    }
    std::reverse(resharding.steps.begin(), resharding.steps.end());
    for (const ReshardStep& step : resharding.steps) resharding.cost = resharding.cost + ReshardCost{step.received, is_collective(step.kind) ? 1 : 0};
    found.emplace(in.shardings[v], std::move(resharding));
  }
  return found;
}

const Resharding* Resharder::find(const ArrayLayout& array, const Sharding& from, const Sharding& to) {
  Sharding reached = to.canonical();
  Axes added;
  std::set_difference(to.unreduced.begin(), to.unreduced.end(), from.unreduced.begin(), from.unreduced.end(), std::back_inserter(added));
  std::erase_if(reached.unreduced, [&](int axis) { return std::find(added.begin(), added.end(), axis) != added.end(); });
  std::set<int> axes(from.unreduced.begin(), from.unreduced.end());
  for (const Sharding* sharding : {&from, &std::as_const(reached)})
    for (const Axes& dim : sharding->dims) axes.insert(dim.begin(), dim.end());
  const auto& found = all(array, from, {axes.begin(), axes.end()});
  const auto place = found.find(reached);
  if (place == found.end() || added.empty()) return place == found.end() ? nullptr : &place->second;
  const auto [whole, fresh] = unreduced_.try_emplace({array, from.canonical(), to.canonical()}, place->second);
  if (fresh) {
    const ReshardStep last{StepKind::unreduce, added, 0, 0, reached, to.canonical(), block_bytes(array, reached, mesh_), Bytes{}};
    whole->second.steps.push_back(last);
  }
  return &whole->second;
}

std::vector<std::pair<std::int64_t, std::int64_t>> exchanged_blocks(const ReshardStep& step, const Mesh& mesh) {
  std::int64_t P = devices_along(mesh, step.axes);
  std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> holders, needers;  // by block
  for (std::int64_t position = 0; position < P; ++position) {
    Coordinates at(mesh.axes().size(), 0);
    std::int64_t rest = position;
    for (std::size_t a = step.axes.size(); a-- > 0;) {
      const AxisView view = mesh.whole(step.axes[a]);
      at[static_cast<std::size_t>(view.axis)] = static_cast<int>(rest % view.size);
      rest /= view.size;
    }
    for (const auto& [sharding, devices] : {std::pair{&step.before, &holders}, {&step.after, &needers}}) {
      std::vector<std::int64_t> own;
      for (const std::vector<int>& axes : sharding->dims) own.push_back(block_of(mesh, axes, mesh.device(at)));
      own.resize(std::max(step.before.dims.size(), step.after.dims.size()), 0);
      (*devices)[own].push_back(position);
    }
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (auto& [own, from] : holders) {
    std::vector<std::int64_t>& to = needers.at(own);
    PODSIM_ASSERT(from.size() == to.size() && "as many devices hold a block before as after");
    std::vector<std::int64_t> senders, receivers;
    std::set_difference(from.begin(), from.end(), to.begin(), to.end(), std::back_inserter(senders));
    std::set_difference(to.begin(), to.end(), from.begin(), from.end(), std::back_inserter(receivers));
    for (const std::int64_t position : from)
      if (std::binary_search(to.begin(), to.end(), position)) pairs.emplace_back(position, position);
    for (std::size_t i = 0; i < senders.size(); ++i) pairs.emplace_back(senders[i], receivers[i]);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace podsim
