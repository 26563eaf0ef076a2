// What the collective algorithms write expansions with, on top of ProgramBuilder: aliases, blocks, whole collectives in sequence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "algorithms/collectives/blocks.hpp"
#include "sim/schedule/lower.hpp"

namespace podsim {

/// Makes `to` an alias of `from`, free in time; returns the edges to it. Equal regions need no task: `after` is returned.
Edges alias(ProgramBuilder& builder, const Region& from, const Region& to, Edges after, Guard where = {});
/// Aliases of all blocks, or of `part` of each, in scratch [counts..., elements], blocks numbered row-major; `in` false: from scratch back to the
/// blocks. One task if both sides have the same order, otherwise one per block. Returns the edges to all of them.
Edges alias_blocks(ProgramBuilder& builder, const Blocks& blocks, const Part& part, const Region& held, bool in, Edges after);
/// What each of `followers` tasks is to wait for in place of `after`: the same, or one join of it where that makes less than half as many edges.
Edges gathered(ProgramBuilder& builder, Edges after, std::size_t followers);
/// reads[0] += reads[1], off the core.
Edges accumulate(ProgramBuilder& builder, std::string label, const Region& sum, const Region& summand, Edges after, Guard where = {});
/// The input itself where it may be overwritten with partial sums (scratch), else a copy of it in scratch. `after` then waits for that copy.
Region own_copy(ProgramBuilder& builder, const Region& input, Edges& after);

/// Everything that `algorithm` makes of `collective`, on the devices where `where` holds: what has no predecessor, and what is guarded, waits
/// for `after`. What comes back is its last tasks, and `after` where all of them are guarded.
Expected<Edges> append(ProgramBuilder& builder, const CollectiveAlgorithm& algorithm, const Collective& collective, Edges after,
                       std::string_view label, const Guard& where = {});

/// Where an all-gather, reduce-scatter or all-reduce along one axis works, with its data in place.
struct Workspace {
  Blocks blocks;  // all-gather, all-reduce: of the output; reduce-scatter: of what accumulates
  Edges start;    // edges for the tasks that touch the own data first
};

/// The collective's only axis. Errors: several axes.
Expected<AxisView> single_axis(const Collective& collective);
/// Errors: the axis is open.
Status needs_ring(const Mesh& mesh, const AxisView& axis);
/// "`ring` does all-gather and reduce-scatter, not broadcast"
Diagnostic unsupported(std::string_view algorithm, std::string_view kinds, const Collective& collective);

/// all-gather: the output's own block becomes an alias of the input unless it is that block.
/// reduce-scatter: partial sums accumulate in the input if it is scratch or the output is its own block, else in a scratch copy of it.
/// all-reduce: the output becomes an alias of the input unless it is the input.
/// Errors: regions that cannot be cut into blocks.
Expected<Workspace> open_workspace(ProgramBuilder& builder, const Collective& collective, const AxisView& axis, LocalKind placing = LocalKind::alias);
/// reduce-scatter: the output becomes an alias of the own block unless it is that block, after `last`.
void close_workspace(ProgramBuilder& builder, const Workspace& workspace, const Collective& collective, const AxisView& axis, Edges last);

/// The blocks of an all-to-all along one axis; the own block of the output is an alias of the input's already. If input and output share a buffer,
/// the input is copied aside first, and `start` waits for that.
struct AllToAllBlocks {
  Blocks input, output;
};
Expected<AllToAllBlocks> open_all_to_all(ProgramBuilder& builder, const Collective& collective, const AxisView& axis, Edges& start);

/// One piece of the rotation c -> c+by around an axis.
struct Hop {
  int by;
  Guard where;
};
/// Every device's data to coordinate + k: one Shift the short way round (ties +) on an axis that wraps; on an open one those that stay
/// inside go +k, the others -(P-k). 0 < k < P.
std::vector<Hop> rotation(const Mesh& mesh, const AxisView& axis, int k);

/// low <= own coordinate + add (around the axis) < high
Guard coordinate_in(const AxisView& axis, std::int64_t low, std::int64_t high, std::int64_t add = 0);
/// The device whose coordinate on `axis` is ours + by, around the axis; or is `coordinate`.
Peer neighbour(const Mesh& mesh, const AxisView& axis, int by);
Peer peer_at(const Mesh& mesh, const std::vector<AxisView>& axes, const std::vector<int>& coordinates);
/// Coordinates of a position along axes, first most significant.
std::vector<int> coordinates_of(const std::vector<AxisView>& axes, std::int64_t position);

/// Sends and Recvs of expansions use this channel: their order is the program's on both sides.
inline constexpr int collective_channel = 1 << 24;

}  // namespace podsim
