#include <fmt/format.h>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

Expected<Expansion> rings(const Mesh& mesh, const Program& program, const Collective& collective, bool both_ways,
                          LocalKind placing = LocalKind::alias, int first_sign = +1) {
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  if (auto ok = needs_ring(mesh, *axis); !ok) return ok.error();
  ProgramBuilder builder{mesh, program};
  const auto workspace = open_workspace(builder, collective, *axis, placing);
  if (!workspace) return workspace.error();
  const Blocks& blocks = workspace->blocks;
  const std::vector<Part> parts = both_ways && axis->size > 2 ? blocks.halves() : std::vector<Part>{blocks.whole()};

  // The rounds of the algorithm; true: all-gather, false: reduce-scatter. An all-reduce has both. Each direction starts its second round when its own
  // first round is done, without waiting for the other direction.
  const std::vector<bool> rounds = collective.kind == CollectiveKind::all_gather       ? std::vector<bool>{true}
                                   : collective.kind == CollectiveKind::reduce_scatter ? std::vector<bool>{false}
                                                                                       : std::vector<bool>{false, true};
  std::vector<Edges> after(parts.size(), workspace->start);
  int number = 0;
  for (const bool gathers : rounds)
    for (int step = 0; step + 1 < axis->size; ++step, ++number)
      for (std::size_t p = 0; p < parts.size(); ++p) {
        const int sign = p == 0 ? first_sign : -first_sign;
        // The block to send, relative to the own coordinate. Round a ring of 4 in + direction, an all-gather sends 0, -1, -2 and receives -1, -2, -3.
        const int sent = gathers ? -sign * step : -sign * (step + 1);
        Shift shift{*axis,
                    sign,
                    blocks.block(own(*axis, sent), parts[p]),
                    blocks.block(own(*axis, sent - sign), parts[p]),
                    gathers ? Combine::replace : Combine::add,
                    {}};
        after[p] = builder.step(fmt::format("{}{}", sign > 0 ? '+' : '-', number), std::move(shift), after[p]);
      }
  Edges last;
  for (const Edges& edges : after) last = join(std::move(last), edges);
  close_workspace(builder, *workspace, collective, *axis, last);
  return std::move(builder).finish_expansion();
}

bool gathers_or_reduces(const Collective& collective) {
  return collective.kind == CollectiveKind::all_gather || collective.kind == CollectiveKind::reduce_scatter ||
         collective.kind == CollectiveKind::all_reduce;
}

}  // namespace

Expected<Expansion> ring_one_way(const Mesh& mesh, const Program& program, const Collective& collective) {
  if (!gathers_or_reduces(collective)) return unsupported("ring-one-way", "all-gather, reduce-scatter, all-reduce, broadcast and reduce", collective);
  return rings(mesh, program, collective, false);
}

Expected<Expansion> ring(const Mesh& mesh, const Program& program, const Collective& collective) {
  if (collective.kind == CollectiveKind::all_to_all) return ring_all_to_all(mesh, program, collective);
  if (!gathers_or_reduces(collective)) return unsupported("ring", "every kind but permute, which is `direct`", collective);
  return rings(mesh, program, collective, true);
}

Expected<Expansion> pallas_ring(const Mesh& mesh, const Program& program, const Collective& collective) {
  if (collective.kind != CollectiveKind::all_gather) return unsupported("pallas-ring", "all-gather", collective);
  return rings(mesh, program, collective, false, LocalKind::copy);
}

Expected<Expansion> pallas_bidirectional(const Mesh& mesh, const Program& program, const Collective& collective) {
  if (collective.kind != CollectiveKind::all_gather) return unsupported("pallas-bidirectional", "all-gather", collective);
  return rings(mesh, program, collective, true, LocalKind::copy, -1);
}

}  // namespace podsim
