#include "algorithms/collectives/nested_part.hpp"

#include <fmt/format.h>

namespace podsim {

NestedPart::NestedPart(ProgramBuilder& builder, const std::vector<AxisView>& axes, std::int64_t elements, DType dtype, std::string_view name)
    : builder_{builder}, axes_{axes}, name_{name} {
  std::vector<std::int64_t> extents;
  for (const AxisView& axis : axes) extents.push_back(axis.size);
  extents.push_back(elements);
  all_ = builder.scratch(fmt::format("part {}", name), extents, dtype);
}

Region NestedPart::at(const std::vector<bool>& own_only) const {
  Region region = all_;
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (own_only[i]) region.dims[i] = block(own(axes_[i]), 1);
  return region;
}

Expected<std::vector<Edges>> NestedPart::run(CollectiveKind kind, const std::vector<std::size_t>& order, const CollectiveAlgorithm& algorithm, Edges last,
                                             const std::vector<Edges>& before) const {
  const bool gathers = kind == CollectiveKind::all_gather;
  std::vector<bool> own_only(axes_.size(), gathers);
  std::vector<Edges> ends;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t axis = order[i];
    const Region from = at(own_only);
    own_only[axis] = !gathers;
    const Collective phase{kind, {axes_[axis]}, from, at(own_only), static_cast<int>(axis), 0, 0, {}};
    if (i < before.size()) last = join(std::move(last), before[i]);
    auto done = append(builder_, algorithm, phase, std::move(last), fmt::format("{} {}", name_, builder_.mesh().name(axes_[axis])));
    if (!done) return done.error();
    last = *std::move(done);
    ends.push_back(last);
  }
  return ends;
}

Expected<CorrespondingBlocks> corresponding_blocks(const Collective& collective, int group, int count, std::string_view algorithm) {
  const bool gathers = collective.kind == CollectiveKind::all_gather, scatters = collective.kind == CollectiveKind::reduce_scatter;
  // The side that is one block may have fewer dimensions: those of length 1 do not count.
  const auto dim_of_one_block = [&](const Region& region, const Region& other) {
    return region.dims.size() == other.dims.size() ? collective.dim : 0;
  };
  auto in = gathers ? Blocks::make(collective.input, dim_of_one_block(collective.input, collective.output), 1)
                    : Blocks::make(collective.input, collective.dim, group);
  if (!in) return in.error();
  auto out = !scatters ? Blocks::make(collective.output, collective.dim, group)
                       : Blocks::make(collective.output, dim_of_one_block(collective.output, collective.input), 1);
  if (!out) return out.error();
  std::vector<Part> many_parts = gathers ? out->parts(count) : in->parts(count);
  auto other_parts = same_parts(many_parts, gathers ? out->block(0) : in->block(0), gathers ? in->block(0) : out->block(0));
  if (!other_parts)
    return Diagnostic{{}, fmt::format("`{}` cuts blocks along a dimension, so the blocks of input and output must have the same shape", algorithm)};
  if (gathers) return CorrespondingBlocks{*std::move(in), *std::move(out), *std::move(other_parts), std::move(many_parts)};
  return CorrespondingBlocks{*std::move(in), *std::move(out), std::move(many_parts), *std::move(other_parts)};
}

}  // namespace podsim
