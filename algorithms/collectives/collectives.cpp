#include "algorithms/collectives/collectives.hpp"

#include <algorithm>
#include <array>

namespace podsim {

namespace {

using Expand = Expected<Expansion>(const Mesh&, const Program&, const Collective&);

bool is_rooted(const Collective& collective) { return collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::reduce; }

/// An algorithm of one axis on all axes, one after the other.
template <Expand* expand>
Expected<Expansion> phased(const Mesh& mesh, const Program& program, const Collective& collective, const ChunkRule&) {
  return in_phases(mesh, program, collective, expand);
}

/// The same, where broadcast and reduce are chains.
template <Expand* expand, bool around>
Expected<Expansion> phased_with_chains(const Mesh& mesh, const Program& program, const Collective& collective, const ChunkRule& chunks) {
  return in_phases(mesh, program, collective, [&](const Mesh& m, const Program& p, const Collective& c) {
    return is_rooted(c) ? chain(m, p, c, around, chunks) : expand(m, p, c);
  });
}

Expected<Expansion> on_ring_or_line(const Mesh& mesh, const Program& program, const Collective& collective, const ChunkRule& chunks) {
  if (collective.kind == CollectiveKind::permute) return permute(mesh, program, collective);
  const bool wraps = std::all_of(collective.axes.begin(), collective.axes.end(), [&](const AxisView& view) { return mesh.wraps(view); });
  if (is_rooted(collective)) return chain(mesh, program, collective, wraps, chunks);
  return wraps ? ring(mesh, program, collective) : line(mesh, program, collective);
}

Expected<Expansion> in_halves(const Mesh& mesh, const Program& program, const Collective& collective, const ChunkRule& chunks) {
  return halves(mesh, program, collective, [&](const Mesh& m, const Program& p, const Collective& c) { return on_ring_or_line(m, p, c, chunks); });
}

}  // namespace

std::span<const CollectiveAlgorithmEntry> collective_algorithms() {
  static constexpr std::array<CollectiveAlgorithmEntry, 11> table{{
      {"ring", "both directions of a wrapped axis at once, half a shard each; broadcast and reduce as ring-one-way",
       &phased_with_chains<&ring, true>},
      {"ring-one-way", "one direction of a wrapped axis, whole shards; broadcast and reduce in chunks", &phased_with_chains<&ring_one_way, true>},
      {"ring-shortest", "both directions of a wrapped axis, every shard the short way: half the steps of ring", &phased<&ring_shortest>},
      {"line", "an open axis: both directions, to both ends", &phased_with_chains<&line, false>},
      {"halving-doubling", "a power of two of devices: exchanges at distances 1, 2, 4, ...", &phased<&halving_doubling>},
      {"direct", "every pair at once, for switches; permute", &phased<&direct>},
      {"pairwise", "all-to-all: everybody to coordinate + k, one k after the other", &phased<&pairwise>},
      {"halves", "several axes: both orders of the axes at once, half the data each", &in_halves},
      {"pallas-ring", "all-gather of the Pallas tutorial: a copy, then one direction", &phased<&pallas_ring>},
      {"pallas-bidirectional", "all-gather of the Pallas library: a copy, then half a shard in each direction", &phased<&pallas_bidirectional>},
      {"pallas-alternating", "reduce-scatter of the Pallas tutorial: one direction copies while the other half is added",
       &phased<&pallas_alternating>},
  }};
  return table;
}

Expected<CollectiveChooser> always(std::string_view name, ChunkRule chunks) {
  std::vector<std::string> names;
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) {
    if (entry.name == name)
      return CollectiveChooser{
          [expand = entry.expand, chunks = std::move(chunks)](const Schedule&, const Collective&) -> Expected<CollectiveAlgorithm> {
            return CollectiveAlgorithm{[expand, chunks](const Mesh& m, const Program& p, const Collective& c) { return expand(m, p, c, chunks); }};
          }};
    names.emplace_back(entry.name);
  }
  return Diagnostic{{}, "there is no collective algorithm " + quoted(name) + did_you_mean(name, names)};
}

CollectiveChooser ring_or_line(ChunkRule chunks) {
  return [chunks = std::move(chunks)](const Schedule&, const Collective&) -> Expected<CollectiveAlgorithm> {
    return CollectiveAlgorithm{[chunks](const Mesh& mesh, const Program& program, const Collective& collective) {
      return in_phases(mesh, program, collective,
                       [&](const Mesh& m, const Program& p, const Collective& c) { return on_ring_or_line(m, p, c, chunks); });
    }};
  };
}

}  // namespace podsim
