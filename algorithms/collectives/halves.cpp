// Two axes at once: both orders of the phases, each on half of the data.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "algorithms/collectives/builder.hpp"
#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// One half: its blocks lie in scratch as [coordinate on each axis..., elements], so that either axis can be gathered first.
class DataHalf {
 public:
  DataHalf(ProgramBuilder& builder, const std::vector<AxisView>& axes, std::int64_t elements, DType dtype, std::string_view name)
      : builder_{builder}, axes_{axes}, name_{name} {
    std::vector<std::int64_t> extents;
    for (const AxisView& axis : axes) extents.push_back(axis.size);
    extents.push_back(elements);
    all_ = builder.scratch(fmt::format("half {}", name), extents, dtype);
  }

  /// The own blocks along the axes marked, everything along the others.
  [[nodiscard]] Region at(const std::vector<bool>& own_only) const {
    Region region = all_;
    for (std::size_t i = 0; i < axes_.size(); ++i)
      if (own_only[i]) region.dims[i] = block(own(axes_[i]), 1);
    return region;
  }
  [[nodiscard]] const Region& all_blocks() const { return all_; }
  [[nodiscard]] Region own_block() const { return at(std::vector<bool>(axes_.size(), true)); }

  /// Phases in this order of axes; a reduce-scatter leaves the own block, an all-gather starts from it.
  Expected<Edges> run(CollectiveKind kind, const std::vector<std::size_t>& order, const CollectiveAlgorithm& algorithm, Edges last) const {
    const bool gathers = kind == CollectiveKind::all_gather;
    std::vector<bool> own_only(axes_.size(), gathers);
    for (const std::size_t axis : order) {
      const Region before = at(own_only);
      own_only[axis] = !gathers;
      const Collective phase{kind, {axes_[axis]}, before, at(own_only), static_cast<int>(axis), 0, 0, {}};
      auto ends = append(builder_, algorithm, phase, last, fmt::format("{} {}", name_, builder_.mesh().name(axes_[axis])));
      if (!ends) return ends.error();
      last = std::move(*ends);
    }
    return last;
  }

 private:
  ProgramBuilder& builder_;
  const std::vector<AxisView>& axes_;
  std::string name_;
  Region all_;
};

/// The same parts of a region that has the same elements in the same order, but for dimensions of length 1. nullopt: the shapes differ.
std::optional<std::vector<Part>> same_parts(const std::vector<Part>& parts, const Region& from, const Region& to) {
  const auto longer_than_1 = [](const Region& region) {
    std::vector<std::size_t> dims;
    for (std::size_t d = 0; d < region.dims.size(); ++d)
      if (region.dims[d].length > 1) dims.push_back(d);
    return dims;
  };
  const std::vector<std::size_t> a = longer_than_1(from), b = longer_than_1(to);
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](std::size_t i, std::size_t j) { return from.dims[i].length == to.dims[j].length; }))
    return std::nullopt;
  std::vector<Part> result;
  for (const Part& part : parts) {
    const auto cut = std::find(a.begin(), a.end(), part.dim);  // absent: a block of a single element, which is not cut
    result.push_back({cut == a.end() ? 0 : b[static_cast<std::size_t>(cut - a.begin())], part.begin, part.length});
  }
  return result;
}

}  // namespace

Expected<Expansion> halves(const Mesh& mesh, const Program& program, const Collective& collective, const CollectiveAlgorithm& on_one_axis) {
  const bool gathers = collective.kind == CollectiveKind::all_gather, reduces = collective.kind == CollectiveKind::all_reduce;
  if (!gathers && !reduces && collective.kind != CollectiveKind::reduce_scatter)
    return unsupported("halves", "all-gather, reduce-scatter and all-reduce", collective);
  std::vector<AxisView> axes;
  for (const AxisView& axis : collective.axes)
    if (axis.size > 1) axes.push_back(axis);
  if (axes.size() < 2) return Diagnostic{{}, "`halves` runs two orders of axes, so it needs two axes with more than one device"};
  std::int64_t group = 1;
  for (const AxisView& axis : axes) group *= axis.size;

  ProgramBuilder builder{mesh, program};
  const DType dtype = builder.buffer(collective.input.buffer).dtype;
  // The side that is one block may have fewer dimensions: those of length 1 do not count.
  const auto dim_of_one_block = [&](const Region& region, const Region& other) {
    return region.dims.size() == other.dims.size() ? collective.dim : 0;
  };
  const auto in = gathers ? Blocks::make(collective.input, dim_of_one_block(collective.input, collective.output), 1)
                          : Blocks::make(collective.input, collective.dim, static_cast<int>(group));
  if (!in) return in.error();
  const auto out = gathers || reduces ? Blocks::make(collective.output, collective.dim, static_cast<int>(group))
                                      : Blocks::make(collective.output, dim_of_one_block(collective.output, collective.input), 1);
  if (!out) return out.error();
  // Halves of blocks that correspond on both sides.
  const std::vector<Part> many_parts = gathers ? out->halves() : in->halves();
  const auto other_parts = same_parts(many_parts, gathers ? out->block(0) : in->block(0), gathers ? in->block(0) : out->block(0));
  if (!other_parts) return Diagnostic{{}, "`halves` cuts blocks along a dimension, so the blocks of input and output must have the same shape"};
  const std::vector<Part>&in_parts = gathers ? *other_parts : many_parts, &out_parts = gathers ? many_parts : *other_parts;

  std::vector<std::size_t> first_to_last(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) first_to_last[i] = i;
  const std::vector<std::size_t> last_to_first(first_to_last.rbegin(), first_to_last.rend());
  for (std::size_t p = 0; p < in_parts.size(); ++p) {
    const std::int64_t elements = elements_of(in->block(0, in_parts[p]));
    const DataHalf half{builder, axes, elements, dtype, p == 0 ? "a" : "b"};
    Edges last = gathers ? alias(builder, in->block(0, in_parts[p]), half.own_block(), {})
                         : alias_blocks(builder, *in, in_parts[p], half.all_blocks(), true, {});
    const auto& gather_order = p == 0 ? last_to_first : first_to_last;
    const auto& scatter_order = p == 0 ? first_to_last : last_to_first;
    if (!gathers) {
      auto ends = half.run(CollectiveKind::reduce_scatter, scatter_order, on_one_axis, last);
      if (!ends) return ends.error();
      last = std::move(*ends);
    }
    if (gathers || reduces) {
      auto ends = half.run(CollectiveKind::all_gather, gather_order, on_one_axis, last);
      if (!ends) return ends.error();
      alias_blocks(builder, *out, out_parts[p], half.all_blocks(), false, std::move(*ends));
    } else {
      alias(builder, half.own_block(), out->block(0, out_parts[p]), last);
    }
  }
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
