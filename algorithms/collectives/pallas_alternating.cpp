#include <fmt/format.h>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// The accumulators of one half that travel one way: two slots, used in turn.
struct Travellers {
  int sign;
  Part part;
  Region slots[2];
};

}  // namespace

Expected<Expansion> pallas_alternating(const Mesh& mesh, const Program& program, const Collective& collective) {
  if (collective.kind != CollectiveKind::reduce_scatter) return unsupported("pallas-alternating", "reduce-scatter", collective);
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  if (auto ok = needs_ring(mesh, *axis); !ok) return ok.error();
  ProgramBuilder builder{mesh, program};
  const auto input = Blocks::make(collective.input, collective.dim, axis->size);
  if (!input) return input.error();
  const auto output = Blocks::make(collective.output, collective.dim, 1);
  if (!output) return output.error();
  const Region mine = input->block(own(*axis));
  if (lengths_of(mine) != lengths_of(collective.output))
    return Diagnostic{{}, "`pallas-alternating` cuts blocks in halves, so the output must have the shape of a block"};
  const int N = axis->size;
  const std::vector<Part> parts = input->halves();
  if (N == 1 || parts.size() < 2) {
    if (N == 1) {
      alias(builder, mine, collective.output, {});
      return std::move(builder).finish_expansion();
    }
    return Diagnostic{{}, "`pallas-alternating` cuts blocks in halves, so a block needs at least two elements"};
  }

  const DType dtype = builder.buffer(collective.input.buffer).dtype;
  const auto travellers = [&](int sign, const Part& part, std::string_view name) {
    const std::vector<std::int64_t> extents = lengths_of(input->block(0, part));
    return Travellers{
        sign, part, {builder.scratch(fmt::format("{} even", name), extents, dtype), builder.scratch(fmt::format("{} odd", name), extents, dtype)}};
  };
  const Travellers left = travellers(-1, parts[0], "left"), right = travellers(+1, parts[1], "right");
  const auto copy = [&](const Travellers& half, std::string label, const Region& source, const Region& target, const Edges& after) {
    return builder.step(std::move(label), Shift{*axis, half.sign, source, target, Combine::replace, {}}, after);
  };
  // Accumulators start at their block's own device and come back to it after N hops, with an addend of every device in between.
  const auto add = [&](const Travellers& half, int step, const Edges& after) {
    const Region addend = input->block(own(*axis, half.sign > 0 ? -step - 1 : step + 1), half.part);
    return accumulate(builder, fmt::format("add {} {}", half.sign > 0 ? "right" : "left", step), half.slots[step % 2], addend, after);
  };

  Edges last = copy(left, "prologue left", input->block(own(*axis), left.part), left.slots[0], {});
  for (int step = 0; step < N; ++step) {
    // Left phase: what the right half last summed up moves right, while the left half is added to.
    Edges phase = step == 0 ? copy(right, "right 0", input->block(own(*axis), right.part), right.slots[0], last)
                            : copy(right, fmt::format("right {}", step), right.slots[(step - 1) % 2], right.slots[step % 2], last);
    phase = join(phase, step + 1 < N ? add(left, step, last) : alias(builder, left.slots[step % 2], output->block(0, left.part), last));
    last = phase;
    // Right phase, the other way round. In the last step the copy left carries nothing that anybody needs, as in the kernel.
    phase = copy(left, fmt::format("left {}", step), left.slots[step % 2], left.slots[(step + 1) % 2], last);
    phase = join(phase, step + 1 < N ? add(right, step, last) : alias(builder, right.slots[step % 2], output->block(0, right.part), last));
    last = phase;
  }
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
