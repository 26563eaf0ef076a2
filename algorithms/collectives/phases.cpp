// Collectives along several axes: one axis after the other, each phase on blocks nested in the same output.
#include <fmt/format.h>

#include <algorithm>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

using Axes = std::vector<AxisView>;

/// Axes along which something moves; the first one if there is none.
Axes moving(const Axes& axes) {
  Axes result;
  for (const AxisView& axis : axes)
    if (axis.size > 1) result.push_back(axis);
  if (result.empty() && !axes.empty()) result.push_back(axes.front());
  return result;
}

std::int64_t positions(const Axes& axes) {
  std::int64_t count = 1;
  for (const AxisView& axis : axes) count *= axis.size;
  return count;
}

/// The own block of a region along the first `count` axes, first most significant.
Expected<Region> nested(Region region, int dim, const Axes& axes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto blocks = Blocks::make(region, dim, axes[i].size);
    if (!blocks) return blocks.error();
    region = blocks->block(own(axes[i]));
  }
  return region;
}

/// Phases of one Collective, each along one of its axes.
class Phases {
 public:
  Phases(ProgramBuilder& builder, const Collective& collective, const CollectiveAlgorithm& algorithm)
      : builder_{builder},
        collective_{collective},
        axes_{moving(collective.axes)},
        root_{coordinates_of(axes_, collective.root)},
        algorithm_{algorithm} {}

  Status run() {
    switch (collective_.kind) {
      case CollectiveKind::all_gather: return gather(collective_.input, collective_.output);
      case CollectiveKind::reduce_scatter: {
        auto in_place = nested(collective_.input, collective_.dim, axes_, axes_.size());
        if (!in_place) return in_place.error();
        const Region sums = same_place(*in_place, collective_.output) ? collective_.input : own_copy(builder_, collective_.input, last_);
        return scatter(sums, collective_.output);
      }
      case CollectiveKind::all_reduce: {
        last_ = alias(builder_, collective_.input, collective_.output, {});
        const auto own_block = nested(collective_.output, collective_.dim, axes_, axes_.size());
        if (!own_block)
          return Diagnostic{{},
                            fmt::format("all-reduce over {} devices cuts dimension {} into blocks: {}", positions(axes_), collective_.dim,
                                        own_block.error().message)};
        if (auto ok = scatter(collective_.output, *own_block); !ok) return ok;
        return gather(*own_block, collective_.output);
      }
      case CollectiveKind::all_to_all: return exchange();
      case CollectiveKind::broadcast: return broadcast();
      case CollectiveKind::reduce: return reduce();
      case CollectiveKind::permute: break;
    }
    return unsupported("phases", "every kind but permute", collective_);
  }

 private:
  Status phase(std::size_t axis, CollectiveKind kind, const Region& input, const Region& output, int dim, const Guard& where = {}) {
    const Collective part{kind, {axes_[axis]}, input, output, dim, dim, root_[axis], {}};
    auto ends = append(builder_, algorithm_, part, last_, builder_.mesh().name(axes_[axis]), where);
    if (!ends)
      return Diagnostic{{},
                        fmt::format("the {} along {} of the {}: {}", name_of(kind), builder_.mesh().name(axes_[axis]), name_of(collective_.kind),
                                    ends.error().message)};
    last_ = std::move(*ends);
    return success();
  }

  /// The last axis first: what it gathers is one block of the next.
  Status gather(Region input, const Region& output) {
    for (std::size_t i = axes_.size(); i-- > 0;) {
      const auto gathered = nested(output, collective_.dim, axes_, i);
      if (!gathered) return gathered.error();
      if (auto ok = phase(i, CollectiveKind::all_gather, input, *gathered, collective_.dim); !ok) return ok;
      input = *gathered;
    }
    return success();
  }

  /// The first axis first, backwards of gather().
  Status scatter(const Region& sums, const Region& output) {
    Region input = sums;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const auto kept = i + 1 == axes_.size() ? Expected<Region>{output} : nested(sums, collective_.dim, axes_, i + 1);
      if (!kept) return kept.error();
      if (auto ok = phase(i, CollectiveKind::reduce_scatter, input, *kept, collective_.dim); !ok) return ok;
      input = *kept;
    }
    return success();
  }

  Status alias_blocks(const Region& region, int dim, const Region& held, bool in) {
    const auto blocks = Blocks::make(region, dim, static_cast<int>(positions(axes_)));
    if (!blocks) return blocks.error();
    last_ = podsim::alias_blocks(builder_, *blocks, blocks->whole(), held, in, std::move(last_));
    return success();
  }

  /// Blocks lie in scratch as [coordinate on each axis..., elements]; the phase of an axis turns its dimension from "to" into "from".
  Status exchange() {
    const DType dtype = builder_.buffer(collective_.input.buffer).dtype;
    std::vector<std::int64_t> extents;
    for (const AxisView& axis : axes_) extents.push_back(axis.size);
    extents.push_back(elements_of(collective_.input) / positions(axes_));
    Region held = builder_.scratch("blocks", extents, dtype);
    if (auto ok = alias_blocks(collective_.input, collective_.split_dim, held, true); !ok) return ok;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const Region next = builder_.scratch(fmt::format("blocks after phase {}", i + 1), extents, dtype);
      if (auto ok = phase(i, CollectiveKind::all_to_all, held, next, static_cast<int>(i)); !ok) return ok;
      held = next;
    }
    return alias_blocks(collective_.output, collective_.dim, held, false);
  }

  /// Devices that share the root's coordinates on the axes from `first`.
  [[nodiscard]] Guard at_root_from(std::size_t first) const {
    Guard guard;
    for (std::size_t i = first; i < axes_.size(); ++i) guard.push_back({own(axes_[i]), root_[i], root_[i] + 1});
    return guard;
  }

  Status broadcast() {
    for (std::size_t i = 0; i < axes_.size(); ++i)
      if (auto ok = phase(i, CollectiveKind::broadcast, i == 0 ? collective_.input : collective_.output, collective_.output, 0, at_root_from(i + 1));
          !ok)
        return ok;
    return success();
  }

  Status reduce() {
    const Region sums = own_copy(builder_, collective_.input, last_);
    for (std::size_t i = axes_.size(); i-- > 0;)
      if (auto ok = phase(i, CollectiveKind::reduce, sums, i == 0 ? collective_.output : sums, 0, at_root_from(i + 1)); !ok) return ok;
    return success();
  }

  ProgramBuilder& builder_;
  const Collective& collective_;
  Axes axes_;
  std::vector<int> root_;
  const CollectiveAlgorithm& algorithm_;
  Edges last_;
};

}  // namespace

Expected<Expansion> in_phases(const Mesh& mesh, const Program& program, const Collective& collective, const CollectiveAlgorithm& on_one_axis) {
  const Axes axes = moving(collective.axes);
  if (axes.size() == 1 || collective.kind == CollectiveKind::permute) {
    Collective single = collective;
    if (collective.kind != CollectiveKind::permute) single.axes = axes;
    return on_one_axis(mesh, program, single);
  }
  ProgramBuilder builder{mesh, program};
  if (auto ok = Phases{builder, collective, on_one_axis}.run(); !ok) return ok.error();
  return std::move(builder).finish_expansion();
}

Expected<Expansion> reduce_scatter_all_gather(const Mesh& mesh, const Program& program, const Collective& collective,
                                              const CollectiveAlgorithm& algorithm) {
  ProgramBuilder builder{mesh, program};
  if (auto ok = Phases{builder, collective, algorithm}.run(); !ok) return ok.error();
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
