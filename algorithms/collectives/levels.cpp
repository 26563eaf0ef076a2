// Networks of several levels: the fast inner level works on all data, the slow outer one on what is left of it; chunks keep both busy.
#include <fmt/format.h>

#include <algorithm>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/collectives/nested_part.hpp"

namespace podsim {

namespace {

using Axes = std::vector<AxisView>;

/// The phases of chunks, one chunk behind the other: phase p of a chunk follows phase p-1 of the same chunk and phase p of the one before.
class LevelPhases {
 public:
  LevelPhases(ProgramBuilder& builder, const Collective& collective, const Levels& levels, const CollectiveAlgorithm& inside,
              const CollectiveAlgorithm& outermost)
      : builder_{builder}, collective_{collective}, axes_{moving_along(collective.axes)}, levels_{moving_along(levels)}, inside_{inside}, outermost_{outermost} {
    for (const AxisView& axis : axes_) group_ *= axis.size;
  }

  Status run(int chunks) {
    switch (collective_.kind) {
      case CollectiveKind::all_reduce: return all_reduce(chunks);
      case CollectiveKind::all_to_all: return all_to_all(chunks);
      default: return gather_or_scatter(chunks);
    }
  }

 private:
  [[nodiscard]] std::size_t position_of(const AxisView& level) const {
    return static_cast<std::size_t>(std::find(axes_.begin(), axes_.end(), level) - axes_.begin());
  }
  /// Of levels in axes_, outermost first.
  [[nodiscard]] std::vector<std::size_t> outer_first() const {
    std::vector<std::size_t> order;
    for (const AxisView& level : levels_) order.push_back(position_of(level));
    return order;
  }
  [[nodiscard]] std::vector<std::size_t> inner_first() const {
    std::vector<std::size_t> order = outer_first();
    std::reverse(order.begin(), order.end());
    return order;
  }
  /// What works along an axis.
  [[nodiscard]] CollectiveAlgorithm along() const {
    return [this](const Mesh& mesh, const Program& program, const Collective& part) {
      return (part.axes.front() == levels_.front() ? outermost_ : inside_)(mesh, program, part);
    };
  }

  /// One phase of a chunk along one level.
  Status phase(std::size_t number, const Collective& part, std::string_view label, Edges& last) {
    if (before_.size() <= number) before_.resize(number + 1);
    auto ends = append(builder_, along(), part, join(last, before_[number]), label);
    if (!ends)
      return Diagnostic{{}, fmt::format("the {} along {} of the {}: {}", name_of(part.kind), builder_.mesh().name(part.axes.front()),
                                        name_of(collective_.kind), ends.error().message)};
    last = before_[number] = *std::move(ends);
    return success();
  }

  /// Which elements a device keeps between the phases is free, so it works in the output and needs no scratch.
  Status all_reduce(int chunks) {
    const Edges start = alias(builder_, collective_.input, collective_.output, {});
    const auto dim = static_cast<std::size_t>(collective_.dim);
    if (auto whole = Blocks::make(collective_.output, collective_.dim, static_cast<int>(group_)); !whole)
      return Diagnostic{{}, fmt::format("all-reduce over {} devices cuts dimension {} into blocks: {}", group_, dim, whole.error().message)};
    int number = 0;
    for (const Region& piece : pieces_of(collective_.output, dim, group_, chunks)) {
      Edges last = start;
      std::vector<Region> kept{piece};  // by how many of the inner levels it is scattered
      std::size_t phases = 0;
      const std::string chunk = std::to_string(number++);
      const auto step = [&](CollectiveKind kind, const AxisView& level, const Region& input, const Region& output) {
        return phase(phases++, {kind, {level}, input, output, collective_.dim, 0, 0, {}}, fmt::format("{} {}", chunk, builder_.mesh().name(level)), last);
      };
      for (std::size_t l = levels_.size(); l-- > 1;) {
        const auto blocks = Blocks::make(kept.back(), collective_.dim, levels_[l].size);
        if (!blocks) return blocks.error();
        const Region whole = kept.back();
        kept.push_back(blocks->block(own(levels_[l])));
        if (auto ok = step(CollectiveKind::reduce_scatter, levels_[l], whole, kept.back()); !ok) return ok;
      }
      if (auto ok = step(CollectiveKind::all_reduce, levels_.front(), kept.back(), kept.back()); !ok) return ok;
      for (std::size_t l = 1; l < levels_.size(); ++l) {
        const Region mine = kept.back();
        kept.pop_back();
        if (auto ok = step(CollectiveKind::all_gather, levels_[l], mine, kept.back()); !ok) return ok;
      }
    }
    return success();
  }

  Status gather_or_scatter(int chunks) {
    const bool gathers = collective_.kind == CollectiveKind::all_gather;
    const auto blocks = corresponding_blocks(collective_, static_cast<int>(group_), chunks, "hierarchical");
    if (!blocks) return blocks.error();
    const auto& [in, out, in_parts, out_parts] = *blocks;
    const DType dtype = builder_.buffer(collective_.input.buffer).dtype;
    for (std::size_t p = 0; p < in_parts.size(); ++p) {
      const NestedPart part{builder_, axes_, elements_of(in.block(0, in_parts[p])), dtype, std::to_string(p)};
      Edges start = gathers ? alias(builder_, in.block(0, in_parts[p]), part.own_block(), {})
                            : alias_blocks(builder_, in, in_parts[p], part.all_blocks(), true, {});
      auto ends = part.run(collective_.kind, gathers ? outer_first() : inner_first(), along(), std::move(start), before_);
      if (!ends) return ends.error();
      before_ = *std::move(ends);
      if (gathers)
        alias_blocks(builder_, out, out_parts[p], part.all_blocks(), false, before_.back());
      else
        alias(builder_, part.own_block(), out.block(0, out_parts[p]), before_.back());
    }
    return success();
  }

  /// Blocks lie in scratch as [coordinate on each axis..., elements]; a phase turns its dimension from "to" into "from".
  Status all_to_all(int chunks) {
    const auto in = Blocks::make(collective_.input, collective_.split_dim, static_cast<int>(group_));
    if (!in) return in.error();
    const auto out = Blocks::make(collective_.output, collective_.dim, static_cast<int>(group_));
    if (!out) return out.error();
    const std::vector<Part> in_parts = in->parts(chunks);
    std::vector<Part> out_parts = out->parts(chunks);
    const bool alike = in_parts.size() == out_parts.size() && same_lengths(in->block(0), out->block(0)) && in_parts.front().dim == out_parts.front().dim;
    const std::vector<Part> whole_in{in->whole()}, whole_out{out->whole()};  // blocks of other shapes stay whole
    const auto& from = alike ? in_parts : whole_in;
    const auto& to = alike ? out_parts : whole_out;
    std::vector<std::int64_t> extents;
    for (const AxisView& axis : axes_) extents.push_back(axis.size);
    extents.push_back(0);
    for (std::size_t p = 0; p < from.size(); ++p) {
      extents.back() = elements_of(in->block(0, from[p]));
      const auto scratch = [&](const std::string& name) { return builder_.scratch(name, extents, builder_.buffer(collective_.input.buffer).dtype); };
      Region held = scratch(fmt::format("blocks {}", p));
      Edges last = alias_blocks(builder_, *in, from[p], held, true, {});
      std::size_t number = 0;
      for (const std::size_t axis : inner_first()) {
        const Region next = scratch(fmt::format("blocks {} after phase {}", p, number + 1));
        const Collective part{CollectiveKind::all_to_all, {axes_[axis]}, held, next, static_cast<int>(axis), static_cast<int>(axis), 0, {}};
        if (auto ok = phase(number++, part, fmt::format("{} {}", p, builder_.mesh().name(axes_[axis])), last); !ok) return ok;
        held = next;
      }
      alias_blocks(builder_, *out, to[p], held, false, last);
    }
    return success();
  }

  static bool same_lengths(const Region& a, const Region& b) { return lengths_of(a) == lengths_of(b); }

  ProgramBuilder& builder_;
  const Collective& collective_;
  Axes axes_, levels_;
  const CollectiveAlgorithm &inside_, &outermost_;
  std::int64_t group_ = 1;
  std::vector<Edges> before_;  // the same phase of the previous chunk
};

/// What a chunk passes: bytes of the whole payload over one direction of each level's links, if devices send as little as they can.
std::vector<PipelineStage> stages_of(const Collective& collective, const Levels& levels, double bytes) {
  double share = bytes;  // of one device, at the level
  std::vector<PipelineStage> inner;
  const Axes axes = moving_along(levels);
  const bool all_to_all = collective.kind == CollectiveKind::all_to_all;
  for (std::size_t l = axes.size(); l-- > 0;) {
    const double size = axes[l].size;
    inner.push_back({axes[l], 1, axes[l].size - 1, share * (size - 1) / size});
    if (!all_to_all) share /= size;
  }
  if (collective.kind != CollectiveKind::all_reduce) return inner;
  std::vector<PipelineStage> both = inner;
  both.back().steps *= 2, both.back().bytes *= 2;
  for (std::size_t l = inner.size() - 1; l-- > 0;) both.push_back(inner[l]);
  return both;
}

}  // namespace

Expected<Expansion> hierarchical(const Mesh& mesh, const Program& program, const Collective& collective, const Levels& levels,
                                 const CollectiveAlgorithm& inside, const CollectiveAlgorithm& outermost, const ChunkRule& rule) {
  using Kind = CollectiveKind;
  if (collective.kind == Kind::broadcast || collective.kind == Kind::reduce || collective.kind == Kind::permute)
    return unsupported("hierarchical", "all-gather, reduce-scatter, all-reduce and all-to-all", collective);
  if (moving_along(collective.axes).size() < 2)
    return Diagnostic{{}, "`hierarchical` goes from level to level, so it needs two axes with more than one device"};
  Axes sorted_axes = moving_along(collective.axes), sorted_levels = moving_along(levels);
  std::sort(sorted_axes.begin(), sorted_axes.end());
  std::sort(sorted_levels.begin(), sorted_levels.end());
  if (sorted_axes != sorted_levels) return Diagnostic{{}, "the levels of a collective are its axes, outermost first"};
  const Bytes larger = std::max(bytes_of(program, collective.input), bytes_of(program, collective.output));
  const int chunks = rule ? rule(mesh, stages_of(collective, levels, static_cast<double>(larger.count()))) : default_chunks;
  if (chunks < 1) return Diagnostic{{}, fmt::format("expected at least one chunk, found {}", chunks)};
  ProgramBuilder builder{mesh, program};
  if (auto ok = LevelPhases{builder, collective, levels, inside, outermost}.run(chunks); !ok) return ok.error();
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
