#include <fmt/format.h>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

Expected<Expansion> ring_shortest(const Mesh& mesh, const Program& program, const Collective& collective) {
  if (collective.kind == CollectiveKind::all_reduce) return reduce_scatter_all_gather(mesh, program, collective, &ring_shortest);
  const bool gathers = collective.kind == CollectiveKind::all_gather;
  if (!gathers && collective.kind != CollectiveKind::reduce_scatter)
    return unsupported("ring-shortest", "all-gather, reduce-scatter and all-reduce", collective);
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  if (auto ok = needs_ring(mesh, *axis); !ok) return ok.error();
  ProgramBuilder builder{mesh, program};
  const auto workspace = open_workspace(builder, collective, *axis);
  if (!workspace) return workspace.error();
  const Blocks& blocks = workspace->blocks;
  const Region mine = blocks.block(own(*axis));
  const int P = axis->size;
  const int hops[2] = {P / 2, P - 1 - P / 2};  // of the +1 and the -1 stream

  const bool joins = !gathers && hops[1] > 0;
  const Region beside = joins ? builder.scratch("from +1", lengths_of(mine), builder.buffer(mine.buffer).dtype) : mine;
  Edges after[2] = {workspace->start, workspace->start};
  for (int step = 0; step < hops[0]; ++step)
    for (const int way : {0, 1}) {
      if (step >= hops[way]) continue;
      const int sign = way == 0 ? +1 : -1;
      const int sent = gathers ? -sign * step : sign * (hops[way] - step);
      const bool ends_beside = joins && way == 1 && step + 1 == hops[1];
      Shift shift{*axis,
                  sign,
                  blocks.block(own(*axis, sent)),
                  ends_beside ? beside : blocks.block(own(*axis, sent - sign)),
                  gathers || ends_beside ? Combine::replace : Combine::add,
                  {}};
      after[way] = builder.step(fmt::format("{}{}", sign > 0 ? '+' : '-', step), std::move(shift), after[way]);
    }
  Edges last = join(after[0], after[1]);
  if (joins) last = accumulate(builder, "join", mine, beside, last);
  close_workspace(builder, *workspace, collective, *axis, last);
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
