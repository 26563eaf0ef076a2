// Helpers of the collective algorithms on top of ProgramBuilder: aliases, blocks, whole collectives in sequence.
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
/// The edges that `followers` tasks should have to wait for `after`: `after` itself, or one join task of it if that saves more than half of the
/// edges.
Edges gathered(ProgramBuilder& builder, Edges after, std::size_t followers);
/// reads[0] += reads[1], off the core.
Edges accumulate(ProgramBuilder& builder, std::string label, const Region& sum, const Region& summand, Edges after, Guard where = {});
/// The input itself if it may be overwritten with partial sums (scratch), otherwise an alias of it in scratch; `after` then waits for the alias.
Region own_copy(ProgramBuilder& builder, const Region& input, Edges& after);

/// Appends the expansion of `collective` by `algorithm`, on the devices for which `where` holds. Its tasks without a predecessor and its guarded
/// tasks wait for `after`. Returns its last tasks, and `after` if all of them are guarded.
Expected<Edges> append(ProgramBuilder& builder, const CollectiveAlgorithm& algorithm, const Collective& collective, Edges after,
                       std::string_view label, const Guard& where = {});

/// The working region of an all-gather, reduce-scatter or all-reduce along one axis, or of devices in positions along several, with the device's data in
/// place.
struct Workspace {
  Blocks blocks;  // all-gather, all-reduce: of the output; reduce-scatter: of the accumulator
  Edges start;    // edges for the tasks that use the own data first
};

/// The axes with more than one device.
std::vector<AxisView> moving_along(const std::vector<AxisView>& axes);
/// The same with a folded axis as its physical dimensions.
std::vector<AxisView> dimensions_along(const Mesh& mesh, const std::vector<AxisView>& axes);
/// The collective's only axis. Errors: several axes.
Expected<AxisView> single_axis(const Collective& collective);
/// Errors: the axis is open.
Status needs_ring(const Mesh& mesh, const AxisView& axis);
/// "`ring` does all-gather and reduce-scatter, not broadcast"
Diagnostic unsupported(std::string_view algorithm, std::string_view kinds, const Collective& collective);

/// all-gather: the output's own block becomes an alias of the input unless it is that block.
/// reduce-scatter: partial sums accumulate in the input if it is scratch or the output is its own block, otherwise in a scratch copy of it.
/// all-reduce: the output becomes an alias of the input unless it is the input.
/// Errors: regions that cannot be cut into blocks.
Expected<Workspace> open_workspace(ProgramBuilder& builder, const Collective& collective, const AxisView& axis, LocalKind placing = LocalKind::alias);
Expected<Workspace> open_workspace(ProgramBuilder& builder, const Collective& collective, const Affine& position, int devices,
                                   LocalKind placing = LocalKind::alias);
/// reduce-scatter: the output becomes an alias of the own block unless it is that block, after `last`.
void close_workspace(ProgramBuilder& builder, const Workspace& workspace, const Collective& collective, const AxisView& axis, Edges last);
void close_workspace(ProgramBuilder& builder, const Workspace& workspace, const Collective& collective, const Affine& position, Edges last);

/// The blocks of an all-to-all along one axis. The own block of the output is already an alias of the input's. If input and output share a buffer,
/// the blocks to send are copied aside first, and `start` waits for that.
struct AllToAllBlocks {
  Blocks input, output;
};
Expected<AllToAllBlocks> open_all_to_all(ProgramBuilder& builder, const Collective& collective, const AxisView& axis, Edges& start);

/// A part of a rotation c -> c+by around an axis: a shift and the devices that do it.
struct Hop {
  int by;
  Guard where;
};
/// Shifts that bring every device's data to coordinate + k, 0 < k < P. On a wrapped axis it is one Shift the short way round (ties: +). On an open
/// axis devices whose destination is inside shift by +k, the others by -(P-k).
std::vector<Hop> rotation(const Mesh& mesh, const AxisView& axis, int k);

/// low <= own coordinate + add (around the axis) < high
Guard coordinate_in(const AxisView& axis, std::int64_t low, std::int64_t high, std::int64_t add = 0);
/// The device whose coordinate on `axis` is the own one + by, modulo the size; or the device at `coordinates` on `axes`.
Peer neighbour(const Mesh& mesh, const AxisView& axis, int by);
Peer peer_at(const Mesh& mesh, const std::vector<AxisView>& axes, const std::vector<int>& coordinates);
/// The coordinates of a position along axes, first most significant.
std::vector<int> coordinates_of(const std::vector<AxisView>& axes, std::int64_t position);

/// The channel of all Sends and Recvs in expansions. They match by order, which is the same in both programs.
inline constexpr int collective_channel = 1 << 24;

}  // namespace podsim
