#include <fmt/format.h>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// Bit j of the coordinate on `axis`, as a view of size 2.
AxisView bit(const AxisView& axis, int j) { return {axis.axis, axis.stride << j, 2}; }

/// The first of the 2^j blocks around the own one whose numbers agree in bits j and above; `flip`: with bit j-th the other way round.
Affine run_of(const AxisView& axis, int bits, int j, bool flip) {
  Affine first;
  for (int i = j; i < bits; ++i) first.terms.push_back({bit(axis, i), std::int64_t{1} << i, flip && i == j ? 1 : 0});
  return first;
}

}  // namespace

Expected<Expansion> halving_doubling(const Mesh& mesh, const Program& program, const Collective& collective) {
  const bool gathers = collective.kind == CollectiveKind::all_gather, reduces = collective.kind == CollectiveKind::all_reduce;
  if (!gathers && !reduces && collective.kind != CollectiveKind::reduce_scatter)
    return unsupported("halving-doubling", "all-gather, reduce-scatter and all-reduce", collective);
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  int bits = 0;
  while ((1 << bits) < axis->size) ++bits;
  if (1 << bits != axis->size)
    return Diagnostic{{}, fmt::format("halving and doubling needs a power of two of devices, {} has {}", mesh.name(*axis), axis->size)};
  ProgramBuilder builder{mesh, program};
  const auto workspace = open_workspace(builder, collective, *axis);
  if (!workspace) return workspace.error();
  const Blocks& blocks = workspace->blocks;

  Edges last = workspace->start;
  const auto exchange = [&](std::string_view name, int j, bool give_away) {
    const std::int64_t count = std::int64_t{1} << j;
    const Region mine = blocks.run(run_of(*axis, bits, j, false), count), other = blocks.run(run_of(*axis, bits, j, true), count);
    Shift shift{bit(*axis, j), 1, give_away ? other : mine, give_away ? mine : other, give_away ? Combine::add : Combine::replace, {}};
    last = builder.step(fmt::format("{} {}", name, count), std::move(shift), last);
  };
  if (!gathers)
    for (int j = bits; j-- > 0;) exchange("halve", j, true);
  if (gathers || reduces)
    for (int j = 0; j < bits; ++j) exchange("double", j, false);
  close_workspace(builder, *workspace, collective, *axis, last);
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
