#include <fmt/format.h>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// One direction of a step: which devices send, and which block, relative to the sender's coordinate.
struct LineStep {
  int sign, first, last;  // senders: first <= c < last
  int block;
};

/// Step i of P-1, both directions. The reduce-scatter is the all-gather run backwards: the hop c -> c+1 of block b becomes c+1 -> c.
std::vector<LineStep> line_step(bool gathers, int devices, int step) {
  const int P = devices;
  if (gathers) return {{+1, step, P - 1, -step}, {-1, 1, P - step, +step}};
  return {{+1, 0, step + 1, P - 1 - step}, {-1, P - 1 - step, P, step + 1 - P}};
}

/// All-gather: every device's own block goes to all devices. Reduce-scatter: all devices' parts of a block go to its device. `number` counts the
/// steps of both.
Edges gather_or_scatter(ProgramBuilder& builder, const Blocks& blocks, const AxisView& axis, bool gathers, const Edges& start, int number) {
  const int P = axis.size;
  // What arrives from the -1 side on the own block must not be added while the +1 side adds there: it ends beside it.
  const Region mine = blocks.block(own(axis));
  const Region beside = gathers ? mine : builder.scratch("from +1", lengths_of(mine), builder.buffer(mine.buffer).dtype);

  std::vector<Edges> after(2, start);
  for (int step = 0; step + 1 < P; ++step)
    for (const LineStep& hop : line_step(gathers, P, step)) {
      const bool ends_beside = !gathers && hop.sign < 0 && step == P - 2;
      Shift shift{axis,
                  hop.sign,
                  blocks.block(own(axis, hop.block, false)),
                  ends_beside ? beside : blocks.block(own(axis, hop.block - hop.sign, false)),
                  gathers || ends_beside ? Combine::replace : Combine::add,
                  {}};
      Edges& previous = after[hop.sign > 0 ? 0 : 1];
      // The previous step may be absent here, and its edges do not pass on.
      previous = builder.step(fmt::format("{}{}", hop.sign > 0 ? '+' : '-', number + step), std::move(shift), join(start, previous),
                              coordinate_in(axis, hop.first, hop.last));
    }
  Edges last = join(after[0], after[1]);
  if (!gathers) last = join(last, accumulate(builder, "join", mine, beside, last, coordinate_in(axis, 0, P - 1)));
  return last;
}

}  // namespace

Expected<Expansion> line(const Mesh& mesh, const Program& program, const Collective& collective) {
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  if (collective.kind == CollectiveKind::all_to_all) return line_all_to_all(mesh, program, collective);
  const bool gathers = collective.kind == CollectiveKind::all_gather, reduces = collective.kind == CollectiveKind::all_reduce;
  if (!gathers && !reduces && collective.kind != CollectiveKind::reduce_scatter)
    return unsupported("line", "every kind but permute, which is `direct`", collective);
  ProgramBuilder builder{mesh, program};
  const auto workspace = open_workspace(builder, collective, *axis);
  if (!workspace) return workspace.error();
  Edges last = workspace->start;
  if (axis->size > 1) {
    if (!gathers) last = gather_or_scatter(builder, workspace->blocks, *axis, false, last, 0);
    if (gathers || reduces) last = gather_or_scatter(builder, workspace->blocks, *axis, true, last, reduces ? axis->size - 1 : 0);
  }
  close_workspace(builder, *workspace, collective, *axis, last);
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
