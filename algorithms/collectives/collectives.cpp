#include "algorithms/collectives/collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>

namespace podsim {

namespace {

/// Along one axis.
Expected<Expansion> by_row(const CollectiveAlgorithmEntry& row, const Mesh& mesh, const Program& program, const Collective& collective,
                           const ChunkRule& chunks) {
  const bool rooted = collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::reduce;
  if (row.pipeline != Pipeline::none && rooted) return chain(mesh, program, collective, row.pipeline == Pipeline::around_ring, chunks);
  return row.on_one_axis(mesh, program, collective);
}

Expected<Expansion> on_ring_or_line(const Mesh& mesh, const Program& program, const Collective& collective, const ChunkRule& chunks) {
  const bool wraps = std::all_of(collective.axes.begin(), collective.axes.end(), [&](const AxisView& view) { return mesh.wraps(view); });
  return by_row(usual_algorithm(collective.kind, wraps), mesh, program, collective, chunks);
}

/// Rows that work along all axes in one piece.
using OnAllAxes = Expected<Expansion>(const Mesh&, const Program&, const Collective&, const Levels&, const ChunkRule&);

CollectiveAlgorithm usual_with(const ChunkRule& chunks) {
  return [chunks](const Mesh& mesh, const Program& program, const Collective& collective) { return on_ring_or_line(mesh, program, collective, chunks); };
}

OnAllAxes on_switches, on_levels_in_switch, on_rotations, on_cycle, on_levels, on_levels_direct, on_levels_doubling, on_channels, on_trees;

Expected<Expansion> on_rotations(const Mesh& mesh, const Program& program, const Collective& collective, const Levels&, const ChunkRule& chunks) {
  return rotations(mesh, program, collective, usual_with(chunks), chunks);
}
Expected<Expansion> on_cycle(const Mesh& mesh, const Program& program, const Collective& collective, const Levels&, const ChunkRule&) {
  return hamiltonian_ring(mesh, program, collective);
}
Expected<Expansion> on_levels(const Mesh& mesh, const Program& program, const Collective& collective, const Levels& levels, const ChunkRule& chunks) {
  const CollectiveAlgorithm usual = usual_with(chunks);
  return hierarchical(mesh, program, collective, levels, usual, usual, chunks);
}
Expected<Expansion> on_levels_direct(const Mesh& mesh, const Program& program, const Collective& collective, const Levels& levels,
                                     const ChunkRule& chunks) {
  return hierarchical(mesh, program, collective, levels, &direct, &direct, chunks);
}
Expected<Expansion> on_levels_doubling(const Mesh& mesh, const Program& program, const Collective& collective, const Levels& levels,
                                       const ChunkRule& chunks) {
  return hierarchical(mesh, program, collective, levels, &halving_doubling, &halving_doubling, chunks);
}
Expected<Expansion> on_switches(const Mesh& mesh, const Program& program, const Collective& collective, const Levels&, const ChunkRule& chunks) {
  return in_phases(mesh, program, collective, [&](const Mesh& m, const Program& p, const Collective& c) { return in_switch(m, p, c, chunks); });
}
Expected<Expansion> on_levels_in_switch(const Mesh& mesh, const Program& program, const Collective& collective, const Levels& levels,
                                        const ChunkRule& chunks) {
  const CollectiveAlgorithm inside = [](const Mesh& m, const Program& p, const Collective& c) { return in_switch(m, p, c, in_chunks(1)); };
  return hierarchical(mesh, program, collective, levels, inside, usual_with(chunks), chunks);
}
Expected<Expansion> on_channels(const Mesh& mesh, const Program& program, const Collective& collective, const Levels& levels, const ChunkRule&) {
  return channels(mesh, program, collective, levels);
}
/// Trees between nodes, every pair at once inside; the chunks are the trees'.
Expected<Expansion> on_trees(const Mesh& mesh, const Program& program, const Collective& collective, const Levels& levels, const ChunkRule& chunks) {
  const auto one_tree = [&](const Mesh& m, const Program& p, const Collective& c) { return tree(m, p, c, chunks); };
  const auto moving = std::count_if(collective.axes.begin(), collective.axes.end(), [](const AxisView& axis) { return axis.size > 1; });
  if (moving < 2 || collective.kind != CollectiveKind::all_reduce) return in_phases(mesh, program, collective, one_tree);
  return hierarchical(mesh, program, collective, levels, &direct, one_tree, in_chunks(1));
}

}  // namespace

ChunkRule in_chunks(int count) {
  return [count](const Mesh&, const std::vector<PipelineStage>&) { return count; };
}

std::span<const CollectiveAlgorithmEntry> collective_algorithms() {
  using Kind = CollectiveKind;
  static constexpr CollectiveKinds sums{Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce};
  static constexpr CollectiveKinds sums_and_all_to_all{Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::all_to_all};
  static constexpr CollectiveKinds sums_and_rooted{Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::broadcast, Kind::reduce};
  static constexpr CollectiveKinds all_but_permute{Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce,
                                                   Kind::all_to_all, Kind::broadcast,      Kind::reduce};
  static constexpr CollectiveKinds all{Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::all_to_all,
                                       Kind::broadcast,  Kind::reduce,         Kind::permute};
  static constexpr std::array<CollectiveAlgorithmEntry, 20> table{{
      {"ring", "both directions of a wrapped axis at once, half a shard each; broadcast and reduce as ring-one-way", all_but_permute,
       {.wraps = true}, &ring, closed_forms::ring, Pipeline::around_ring},
      {"ring-one-way", "one direction of a wrapped axis, whole shards; broadcast and reduce in chunks", sums_and_rooted,
       {.wraps = true}, &ring_one_way, closed_forms::ring_one_way, Pipeline::around_ring},
      {"ring-shortest", "both directions of a wrapped axis, every shard the short way: half the steps of ring", sums,
       {.wraps = true}, &ring_shortest, closed_forms::ring_shortest},
      {"line", "an open axis: both directions, to both ends", all_but_permute, {}, &line, closed_forms::line, Pipeline::to_both_ends},
      {"folded-ring", "an open axis as a ring: even positions out, odd ones back, every step at most two hops", sums, {}, &folded_ring,
       closed_forms::folded_ring},
      {"halving-doubling", "a power of two of devices: exchanges at distances 1, 2, 4, ...", sums,
       {.power_of_two = true}, &halving_doubling, closed_forms::halving_doubling},
      {"direct", "every pair at once, for switches; permute", all, {}, &direct, closed_forms::direct},
      {"pairwise", "all-to-all: every device to coordinate + k, one k after the other", {Kind::all_to_all}, {}, &pairwise, closed_forms::pairwise},
      {"rotations", "several axes at once: parts of the data in rotated orders of the axes", sums_and_all_to_all,
       {.axes = 2}, nullptr, closed_forms::ring,
       Pipeline::none, &on_rotations},
      {"hamiltonian-ring", "a ring of neighbours through several dimensions, both directions", sums,
       {.axes = 2, .even = true, .most = most_on_hamiltonian_ring}, nullptr, closed_forms::none, Pipeline::none, &on_cycle},
      {"hierarchical", "levels of a network: reduce-scatter inside, all-reduce between nodes, all-gather inside, in chunks; ring or line along each",
       sums_and_all_to_all, {.axes = 2}, nullptr, closed_forms::none, Pipeline::none, &on_levels, true},
      {"hierarchical-direct", "levels of a network, every pair at once along each, in chunks", sums_and_all_to_all,
       {.axes = 2}, nullptr, closed_forms::none, Pipeline::none, &on_levels_direct, true},
      {"hierarchical-doubling", "levels of a network, halving-doubling along each, in chunks", sums,
       {.power_of_two = true, .axes = 2}, nullptr, closed_forms::none, Pipeline::none, &on_levels_doubling, true},
      {"channels", "a ring per device of a node through all nodes, on different rails", sums,
       {.axes = 2}, nullptr, closed_forms::none, Pipeline::none, &on_channels, true},
      {"tree", "double binary tree in chunks: log2(P) steps; between nodes, with every pair at once inside",
       {Kind::all_reduce, Kind::broadcast, Kind::reduce}, {}, nullptr, closed_forms::none, Pipeline::none, &on_trees, true},
      {"in-switch", "a switch that adds up and copies on the way; all-reduce in chunks", sums,
       {.in_switch = true}, nullptr, closed_forms::in_switch, Pipeline::none, &on_switches},
      {"hierarchical-in-switch", "levels of a network, in-switch inside, ring or line between nodes, in chunks", sums,
       {.axes = 2, .in_switch = true}, nullptr, closed_forms::none, Pipeline::none, &on_levels_in_switch, true},
      {"pallas-ring", "all-gather of the Pallas tutorial: a copy, then one direction", {Kind::all_gather},
       {.wraps = true}, &pallas_ring, closed_forms::pallas_ring},
      {"pallas-bidirectional", "all-gather of the Pallas library: a copy, then half a shard in each direction", {Kind::all_gather},
       {.wraps = true}, &pallas_bidirectional, closed_forms::pallas_bidirectional},
      {"pallas-alternating", "reduce-scatter of the Pallas tutorial: one direction copies while the other half is added", {Kind::reduce_scatter},
       {.wraps = true}, &pallas_alternating, closed_forms::pallas_alternating},
  }};
  return table;
}

const CollectiveAlgorithmEntry* collective_algorithm_named(std::string_view name) {
  if (name == "halves") name = "rotations";  // the name it had when it was for two axes
  const auto table = collective_algorithms();
  const auto found = std::find_if(table.begin(), table.end(), [&](const CollectiveAlgorithmEntry& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

const CollectiveAlgorithmEntry& usual_algorithm(CollectiveKind kind, bool wraps) {
  return *collective_algorithm_named(kind == CollectiveKind::permute ? "direct" : wraps ? "ring" : "line");
}

bool applies(const CollectiveAlgorithmEntry& algorithm, CollectiveKind kind, const std::vector<CollectiveAxis>& axes) {
  if (!algorithm.kinds.has(kind)) return false;
  int several = 0;
  std::int64_t devices = 1;
  for (const CollectiveAxis& axis : axes) {
    if (axis.size == 1) continue;
    ++several;
    devices *= axis.size;
    if (algorithm.needs.in_switch && !axis.adds) return false;
    if (algorithm.needs.wraps && axis.links == AxisLinks::line && axis.size > 2) return false;
    if (algorithm.needs.power_of_two && !std::has_single_bit(static_cast<unsigned>(axis.size))) return false;
  }
  if ((algorithm.needs.even && devices % 2 != 0) || (algorithm.needs.most > 0 && devices > algorithm.needs.most)) return false;
  return several >= algorithm.needs.axes || algorithm.needs.axes == 1;
}

CollectiveAlgorithm expansion_by(const CollectiveAlgorithmEntry& algorithm, ChunkRule chunks, Levels levels) {
  return [row = algorithm, chunks = std::move(chunks), levels = std::move(levels)](const Mesh& mesh, const Program& program,
                                                                                   const Collective& collective) {
    return of_any_size(mesh, program, collective, [&](const Mesh& on, const Program& around, const Collective& whole) {
      if (row.on_all_axes != nullptr) return row.on_all_axes(on, around, whole, levels.empty() ? whole.axes : levels, chunks);
      return in_phases(on, around, whole, [&](const Mesh& m, const Program& p, const Collective& c) { return by_row(row, m, p, c, chunks); });
    });
  };
}

Expected<CollectiveChooser> always(std::string_view name, ChunkRule chunks) {
  if (const CollectiveAlgorithmEntry* entry = collective_algorithm_named(name))
    return CollectiveChooser{[by = expansion_by(*entry, std::move(chunks))](const Schedule&, const Program&, const Collective&) -> Expected<CollectiveAlgorithm> {
      return by;
    }};
  std::vector<std::string> names;
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) names.emplace_back(entry.name);
  const std::string near = did_you_mean(name, names);
  return Diagnostic{{}, fmt::format("there is no collective algorithm {}{}", quoted(name), near.empty() ? fmt::format(", expected one of {}", fmt::join(names, ", ")) : near)};
}

CollectiveChooser ring_or_line(ChunkRule chunks) {
  return [chunks = std::move(chunks)](const Schedule&, const Program&, const Collective&) -> Expected<CollectiveAlgorithm> {
    return CollectiveAlgorithm{[chunks](const Mesh& mesh, const Program& program, const Collective& collective) {
      return of_any_size(mesh, program, collective, [&](const Mesh& on, const Program& around, const Collective& whole) {
        return in_phases(on, around, whole, [&](const Mesh& m, const Program& p, const Collective& c) { return on_ring_or_line(m, p, c, chunks); });
      });
    }};
  };
}

}  // namespace podsim
