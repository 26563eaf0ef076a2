// Broadcast and reduce in chunks along a chain of neighbours.
#include <fmt/format.h>

#include <algorithm>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// A chain of neighbours: who sends on, who receives, and which way.
struct Chain {
  int sign;
  Guard sends, receives;
};

/// From the root to all devices: around a ring, or to both ends of an open axis.
std::vector<Chain> chains_from(const AxisView& axis, int root, bool around) {
  const int P = axis.size;
  if (P == 1) return {};
  if (around) return {{+1, coordinate_in(axis, 0, P - 1, -root), coordinate_in(axis, 1, P, -root)}};
  std::vector<Chain> chains;
  if (root < P - 1) chains.push_back({+1, coordinate_in(axis, root, P - 1), coordinate_in(axis, root + 1, P)});
  if (root > 0) chains.push_back({-1, coordinate_in(axis, 1, root + 1), coordinate_in(axis, 0, root)});
  return chains;
}

/// From all devices to the root: on a ring from its successor all the way round, on an open axis from both ends.
std::vector<Chain> chains_to(const AxisView& axis, int root, bool around) {
  const int P = axis.size;
  if (P == 1) return {};
  if (around) return {{+1, coordinate_in(axis, 0, P - 1, -root - 1), coordinate_in(axis, 1, P, -root - 1)}};
  std::vector<Chain> chains;
  if (root > 0) chains.push_back({+1, coordinate_in(axis, 0, root), coordinate_in(axis, 1, root + 1)});
  if (root < P - 1) chains.push_back({-1, coordinate_in(axis, root + 1, P), coordinate_in(axis, root, P - 1)});
  return chains;
}

Expected<Expansion> broadcast(ProgramBuilder& builder, const Collective& collective, const AxisView& axis, bool around, int chunks) {
  const int root = static_cast<int>(collective.root);
  const Edges placed = alias(builder, collective.input, collective.output, {}, coordinate_in(axis, root, root + 1));
  const auto pieces = chunks_of(collective.output, chunks);
  for (const Chain& chain : chains_from(axis, root, around)) {
    const Peer to = neighbour(builder.mesh(), axis, chain.sign), from = neighbour(builder.mesh(), axis, -chain.sign);
    Edges sent;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Edges received = builder.step(fmt::format("receive {:+} {}", chain.sign, i), Recv{collective_channel, from, pieces[i], Combine::replace},
                                          {}, chain.receives);
      sent = builder.step(fmt::format("send {:+} {}", chain.sign, i), Send{collective_channel, to, pieces[i], {}}, join(join(placed, received), sent),
                          chain.sends);
    }
  }
  return std::move(builder).finish_expansion();
}

Expected<Expansion> reduce(ProgramBuilder& builder, const Collective& collective, const AxisView& axis, bool around, int chunks) {
  const int root = static_cast<int>(collective.root);
  const Guard at_root = coordinate_in(axis, root, root + 1);
  Edges start;
  const Region sums = axis.size == 1 ? collective.input : own_copy(builder, collective.input, start);
  const auto pieces = chunks_of(sums, chunks);
  const auto chains = chains_to(axis, root, around);
  Edges arrived = start;
  std::vector<Edges> first_arrived(pieces.size());  // at the root, of the first chain
  for (std::size_t n = 0; n < chains.size(); ++n) {
    const Chain& chain = chains[n];
    const Peer to = neighbour(builder.mesh(), axis, chain.sign), from = neighbour(builder.mesh(), axis, -chain.sign);
    // The root adds what the second chain brings only after the first chain's, so that it lands beside it.
    const bool second = n == 1;
    const auto beside =
        second ? chunks_of(builder.scratch("from +1", lengths_of(sums), builder.buffer(sums.buffer).dtype), chunks) : std::vector<Region>{};
    Edges sent;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto receive = [&](const Region& target, Combine combine, Guard where) {
        return builder.step(fmt::format("receive {:+} {}", chain.sign, i), Recv{collective_channel, from, target, combine}, start, std::move(where));
      };
      Edges received;
      if (second) {
        Guard others = chain.receives;
        others.front().low = root + 1;  // chain.receives begins at the root
        if (others.front().low < others.front().high) received = receive(pieces[i], Combine::add, others);
        const Edges landed = receive(beside[i], Combine::replace, at_root);
        arrived.push_back(accumulate(builder, fmt::format("join {}", i), pieces[i], beside[i], join(first_arrived[i], landed), at_root).front());
      } else {
        received = receive(pieces[i], Combine::add, chain.receives);
        first_arrived[i] = received;
        arrived.push_back(received.front());
      }
      sent = builder.step(fmt::format("send {:+} {}", chain.sign, i), Send{collective_channel, to, pieces[i], {}}, join(join(start, received), sent),
                          chain.sends);
    }
  }
  alias(builder, sums, collective.output, arrived, at_root);
  return std::move(builder).finish_expansion();
}

}  // namespace

Expected<Expansion> chain(const Mesh& mesh, const Program& program, const Collective& collective, bool around, const ChunkRule& rule) {
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  if (around)
    if (auto ok = needs_ring(mesh, *axis); !ok) return ok.error();
  const int root = static_cast<int>(collective.root), hops = around ? axis->size - 1 : std::max(root, axis->size - 1 - root);
  const auto bytes = static_cast<double>(bytes_of(program, collective.output).count());
  const int chunks = rule ? rule(mesh, {{*axis, hops, 1, bytes}}) : default_chunks;
  if (chunks < 1) return Diagnostic{{}, fmt::format("a chain needs at least one chunk, found {}", chunks)};
  ProgramBuilder builder{mesh, program};
  return collective.kind == CollectiveKind::broadcast ? broadcast(builder, collective, *axis, around, chunks)
                                                      : reduce(builder, collective, *axis, around, chunks);
}

}  // namespace podsim
