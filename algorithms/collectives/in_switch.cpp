// Switches with arithmetic: what all devices send to one of them is added up on the way, and what one sends to all is copied on the way.
#include <fmt/format.h>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

class OnSwitch {
 public:
  OnSwitch(ProgramBuilder& builder, const AxisView& axis) : builder_{builder}, axis_{axis} {}

  /// Block c + k of every device goes to device c + k, the sum of all into `sum`, which holds the own summand after `ready`.
  Edges reduce(const Blocks& blocks, const Region& sum, Edges ready, const std::string& label) {
    const DType dtype = builder_.buffer(sum.buffer).dtype;
    std::vector<Region> arrivals;
    std::vector<Edges> arrived(distances());
    for (int k = 1; k < axis_.size; ++k) {
      arrivals.push_back(builder_.scratch(fmt::format("arrival {}{}", label, k), lengths_of(sum), dtype));
      arrived[index(k)] = shift(k, InSwitch::addend, blocks.block(own(axis_, k)), arrivals.back(), join(ready, sent_[index(k)]), label);
    }
    sent_ = arrived;
    Edges done = std::move(ready);
    for (int k = 1; k < axis_.size; ++k)
      done = builder_.step(fmt::format("{}add {}", label, k), Local{LocalKind::add_in_switch, {sum, arrivals[index(k)]}, {sum}, 1, Unit::dma},
                           join(std::move(done), arrived[index(k)]));
    return done;
  }

  /// The own block of every device goes to all others.
  Edges copy(const Blocks& blocks, const Edges& ready, const std::string& label) {
    Edges all;
    std::vector<Edges> arrived(distances());
    for (int k = 1; k < axis_.size; ++k) {
      arrived[index(k)] = shift(k, InSwitch::copy, blocks.block(own(axis_)), blocks.block(own(axis_, -k)), join(ready, copied_[index(k)]), label);
      all = join(all, arrived[index(k)]);
    }
    copied_ = std::move(arrived);
    return all;
  }

 private:
  [[nodiscard]] std::size_t distances() const { return static_cast<std::size_t>(axis_.size) - 1; }
  static std::size_t index(int k) { return static_cast<std::size_t>(k) - 1; }

  Edges shift(int k, InSwitch role, const Region& from, const Region& to, Edges after, const std::string& label) {
    const int by = 2 * k <= axis_.size ? k : k - axis_.size;
    return builder_.step(fmt::format("{}{:+}", label, by), Shift{axis_, by, from, to, Combine::replace, {}, k == 1 ? InSwitch::carrier : role},
                         std::move(after));
  }

  ProgramBuilder& builder_;
  const AxisView& axis_;
  std::vector<Edges> sent_{distances()}, copied_{distances()};  // the same shift of the chunk before
};

Status all_reduce(ProgramBuilder& builder, const Collective& collective, const AxisView& axis, int chunks) {
  OnSwitch on_switch{builder, axis};
  const Edges start = alias(builder, collective.input, collective.output, {});
  int number = 0;
  for (const Region& piece : pieces_of(collective.output, static_cast<std::size_t>(collective.dim), axis.size, chunks)) {
    const auto blocks = Blocks::make(piece, collective.dim, axis.size);
    if (!blocks) return blocks.error();
    const std::string label = fmt::format("{} ", number++);
    const Edges summed = on_switch.reduce(*blocks, blocks->block(own(axis)), start, label);
    on_switch.copy(*blocks, summed, label);
  }
  return success();
}

}  // namespace

std::vector<PipelineStage> in_switch_stages(const AxisView& axis, Bytes input) {
  // While both stages work, a link carries every block of the data once.
  const PipelineStage stage{axis, 1, 1, static_cast<double>(input.count())};
  return {stage, stage};
}

Expected<Expansion> in_switch(const Mesh& mesh, const Program& program, const Collective& collective, const ChunkRule& rule) {
  using Kind = CollectiveKind;
  if (collective.kind != Kind::all_gather && collective.kind != Kind::reduce_scatter && collective.kind != Kind::all_reduce)
    return unsupported("in-switch", "all-gather, reduce-scatter and all-reduce", collective);
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  if (!mesh.wraps(*axis)) return Diagnostic{{}, fmt::format("`in-switch` works on a switch, and axis {} is a line", mesh.name(*axis))};
  ProgramBuilder builder{mesh, program};
  OnSwitch on_switch{builder, *axis};
  if (collective.kind == Kind::all_reduce) {
    if (auto whole = Blocks::make(collective.output, collective.dim, axis->size); !whole) return whole.error();
    const int chunks = rule ? rule(mesh, in_switch_stages(*axis, bytes_of(program, collective.input))) : default_chunks;
    if (chunks < 1) return Diagnostic{{}, fmt::format("expected at least one chunk, found {}", chunks)};
    if (auto ok = all_reduce(builder, collective, *axis, chunks); !ok) return ok.error();
  } else if (collective.kind == Kind::all_gather) {
    const auto workspace = open_workspace(builder, collective, *axis);
    if (!workspace) return workspace.error();
    on_switch.copy(workspace->blocks, workspace->start, "");
  } else {
    const auto blocks = Blocks::make(collective.input, collective.dim, axis->size);
    if (!blocks) return blocks.error();
    on_switch.reduce(*blocks, collective.output, alias(builder, blocks->block(own(*axis)), collective.output, {}), "");
  }
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
