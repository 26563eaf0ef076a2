#include <fmt/format.h>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// The devices along an axis as each of them counts them: number k is k further on. Along a folded axis each dimension goes on by its digit of k
/// (Shift::by_dimension), so that devices that are alike on the torus send alike: carries from one dimension into the next would tell them apart.
class Others {
 public:
  Others(const Mesh& mesh, const AxisView& axis) : mesh_{mesh}, axis_{axis}, dimensions_{dimensions_along(mesh, {axis})} {}

  [[nodiscard]] int count() const { return axis_.size - 1; }
  /// The position of number k; of the device whose number k this one is.
  [[nodiscard]] Affine to(int k) const { return position(k, +1); }
  [[nodiscard]] Affine from(int k) const { return position(k, -1); }
  /// The shifts that bring every device's data to its number k.
  [[nodiscard]] Edges send(ProgramBuilder& builder, int k, const Region& source, const Region& target, const Edges& after) const {
    if (dimensions_.size() > 1) {
      Shift shift{axis_, k, source, target, Combine::replace, {}};
      shift.by_dimension = true;
      return builder.step(fmt::format("{:+}", k), std::move(shift), after);
    }
    Edges sent;
    for (Hop& hop : rotation(mesh_, axis_, k))
      sent = join(sent, builder.step(fmt::format("{:+}", hop.by), Shift{axis_, hop.by, source, target, Combine::replace, {}}, after, std::move(hop.where)));
    return sent;
  }

 private:
  [[nodiscard]] Affine position(int k, int sign) const {
    if (dimensions_.size() <= 1) return own(axis_, sign * k);
    Affine sum;
    for (const AxisView& dimension : dimensions_) sum.terms.push_back({dimension, dimension.stride, sign * (k / dimension.stride % dimension.size)});
    return sum;
  }

  const Mesh& mesh_;
  AxisView axis_;
  std::vector<AxisView> dimensions_;  // under the axis; of one that is not folded the axis itself
};

/// Every device sends to every other at once: source(k), at the sender, to target(k), at its number k.
template <class Source, class Target>
std::vector<Edges> every_pair(ProgramBuilder& builder, const Others& others, const Edges& start, Source source, Target target) {
  std::vector<Edges> arrived;
  for (int k = 1; k <= others.count(); ++k) arrived.push_back(others.send(builder, k, source(k), target(k), start));
  return arrived;
}

Expected<Expansion> gather(ProgramBuilder& builder, const Collective& collective, const AxisView& axis) {
  const auto workspace = open_workspace(builder, collective, axis);
  if (!workspace) return workspace.error();
  const Blocks& blocks = workspace->blocks;
  const Others others{builder.mesh(), axis};
  every_pair(
      builder, others, workspace->start, [&](int) { return blocks.block(own(axis)); }, [&](int k) { return blocks.block(others.from(k)); });
  return std::move(builder).finish_expansion();
}

/// Arrivals land beside each other; two adds to one region are ordered, so they form a chain.
Expected<Expansion> reduce_scatter(ProgramBuilder& builder, const Collective& collective, const AxisView& axis) {
  const auto blocks = Blocks::make(collective.input, collective.dim, axis.size);
  if (!blocks) return blocks.error();
  const Region mine = blocks->block(own(axis));
  Edges sum = alias(builder, mine, collective.output, {});
  std::vector<Region> arrivals;
  for (int k = 1; k < axis.size; ++k)
    arrivals.push_back(builder.scratch(fmt::format("arrival {}", k), lengths_of(mine), builder.buffer(collective.input.buffer).dtype));
  const Others others{builder.mesh(), axis};
  const auto arrived = every_pair(
      builder, others, {}, [&](int k) { return blocks->block(others.to(k)); }, [&](int k) { return arrivals[static_cast<std::size_t>(k - 1)]; });
  for (std::size_t k = 0; k < arrived.size(); ++k)
    sum = accumulate(builder, fmt::format("add {}", k + 1), collective.output, arrivals[k], join(sum, arrived[k]));
  return std::move(builder).finish_expansion();
}

Expected<Expansion> all_to_all(ProgramBuilder& builder, const Collective& collective, const AxisView& axis) {
  Edges start;
  const auto blocks = open_all_to_all(builder, collective, axis, start);
  if (!blocks) return blocks.error();
  const Others others{builder.mesh(), axis};
  every_pair(
      builder, others, start, [&](int k) { return blocks->input.block(others.to(k)); }, [&](int k) { return blocks->output.block(others.from(k)); });
  return std::move(builder).finish_expansion();
}

/// To or from the root: one guarded shift for every other device.
Expected<Expansion> rooted(ProgramBuilder& builder, const Collective& collective, const AxisView& axis) {
  const int P = axis.size, root = static_cast<int>(collective.root);
  const bool sends = collective.kind == CollectiveKind::broadcast;
  const Guard at_root = coordinate_in(axis, root, root + 1);
  const Edges placed = alias(builder, collective.input, collective.output, {}, at_root);
  Edges sum = placed;
  for (int c = 0; c < P; ++c) {
    if (c == root) continue;
    const int from = sends ? root : c, to = sends ? c : root;
    const int straight = to - from, k = (straight + P) % P;
    const int by = builder.mesh().wraps(axis) ? rotation(builder.mesh(), axis, k).front().by : straight;
    const Region landing =
        sends ? collective.output
              : builder.scratch(fmt::format("arrival {}", c), lengths_of(collective.output), builder.buffer(collective.input.buffer).dtype);
    const Edges sent = builder.step(fmt::format("{}>{}", from, to), Shift{axis, by, collective.input, landing, Combine::replace, {}}, {},
                                    coordinate_in(axis, from, from + 1));
    if (!sends) sum = accumulate(builder, fmt::format("add {}", c), collective.output, landing, join(sum, sent), at_root);
  }
  return std::move(builder).finish_expansion();
}

}  // namespace

Expected<Expansion> direct(const Mesh& mesh, const Program& program, const Collective& collective) {
  if (collective.kind == CollectiveKind::permute) return permute(mesh, program, collective);
  if (collective.kind == CollectiveKind::all_reduce) return reduce_scatter_all_gather(mesh, program, collective, &direct);
  const auto axis = single_axis(collective);
  if (!axis) return axis.error();
  ProgramBuilder builder{mesh, program};
  switch (collective.kind) {
    case CollectiveKind::all_gather: return gather(builder, collective, *axis);
    case CollectiveKind::reduce_scatter: return reduce_scatter(builder, collective, *axis);
    case CollectiveKind::all_to_all: return all_to_all(builder, collective, *axis);
    default: return rooted(builder, collective, *axis);
  }
}

}  // namespace podsim
