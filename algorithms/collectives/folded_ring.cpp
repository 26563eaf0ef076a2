// A ring on an open line: even positions on the way out, odd ones on the way back.
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

/// The ring 0, 2, 4, ..., 5, 3, 1 of P devices.
int device_at(int position, int P) {
  const int p = ((position % P) + P) % P, evens = (P + 1) / 2;
  return p < evens ? 2 * p : 2 * (P - 1 - p) + 1;
}
int position_of(int device, int P) { return device % 2 == 0 ? device / 2 : P - 1 - device / 2; }

/// Devices of one parity in a row, first to last, that shift by `by` the block `slope` * own coordinate + `offset`.
struct FoldedMove {
  int by, slope, offset;
  int first, last;
};

/// A step of the ring: every device sends to the next one the block of the device that stands `behind` positions before it on the ring. As a shift
/// has one distance and its block is affine in the coordinate, a step is up to eight shifts.
std::vector<FoldedMove> moves(int P, int behind) {
  std::map<std::tuple<int, int, int, int>, FoldedMove> found;  // by parity, distance, slope, offset
  for (int c = 0; c < P; ++c) {
    const int position = position_of(c, P), by = device_at(position + 1, P) - c, block = device_at(position - behind, P);
    const int slope = block % 2 == c % 2 ? 1 : -1, offset = block - slope * c;
    auto [entry, is_new] = found.try_emplace({c % 2, by, slope, offset}, FoldedMove{by, slope, offset, c, c});
    PODSIM_ASSERT(is_new || entry->second.last == c - 2);
    entry->second.last = c;
  }
  std::vector<FoldedMove> result;
  for (const auto& [key, move] : found) result.push_back(move);
  return result;
}

Guard devices_of(const AxisView& axis, const FoldedMove& move) {
  Guard guard = coordinate_in(axis, move.first, move.last + 1);
  if (move.last > move.first) guard.push_back({Affine{{{axis, 1}}, 0, 2}, move.first % 2, move.first % 2 + 1});
  return guard;
}

/// P-1 steps round the ring. All-gather: blocks from behind are passed on. Reduce-scatter: the sum that is passed on is that of the block one further
/// behind, so that the last one received is the own block.
Edges around(ProgramBuilder& builder, const Blocks& blocks, const AxisView& axis, bool gathers, const Edges& start, int number) {
  Edges after = start;
  for (int step = 0; step + 1 < axis.size; ++step) {
    const std::vector<FoldedMove> now = moves(axis.size, gathers ? step : step + 1);
    // A step may be absent here, and its edges do not pass on.
    after = gathered(builder, join(start, after), now.size());
    Edges last;
    for (const FoldedMove& move : now) {
      const Affine sent{{{axis, move.slope}}, move.offset}, received{{{axis, move.slope}}, move.offset - move.slope * move.by};
      last = join(std::move(last), builder.step(fmt::format("{}{:+}", number + step, move.by),
                                                Shift{axis, move.by, blocks.block(sent), blocks.block(received),
                                                      gathers ? Combine::replace : Combine::add, {}},
                                                after, devices_of(axis, move)));
    }
    after = std::move(last);
  }
  return after;
}

}  // namespace

Expected<Expansion> folded_ring(const Mesh& mesh, const Program& program, const Collective& collective) {
  const bool gathers = collective.kind == CollectiveKind::all_gather, reduces = collective.kind == CollectiveKind::all_reduce;
  if (!gathers && !reduces && collective.kind != CollectiveKind::reduce_scatter)
    return unsupported("folded-ring", "all-gather, reduce-scatter and all-reduce", collective);
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  ProgramBuilder builder{mesh, program};
  const auto workspace = open_workspace(builder, collective, *axis);
  if (!workspace) return workspace.error();
  Edges last = workspace->start;
  if (!gathers) last = around(builder, workspace->blocks, *axis, false, last, 0);
  if (gathers || reduces) last = around(builder, workspace->blocks, *axis, true, last, reduces ? axis->size - 1 : 0);
  close_workspace(builder, *workspace, collective, *axis, last);
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
