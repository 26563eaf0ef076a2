// Two axes at once: both orders of the phases, each on half of the data.
#include "algorithms/collectives/collectives.hpp"
#include "algorithms/collectives/nested_part.hpp"

namespace podsim {

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
  const auto blocks = corresponding_blocks(collective, static_cast<int>(group), 2, "halves");
  if (!blocks) return blocks.error();
  const auto& [in, out, in_parts, out_parts] = *blocks;

  std::vector<std::size_t> first_to_last(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) first_to_last[i] = i;
  const std::vector<std::size_t> last_to_first(first_to_last.rbegin(), first_to_last.rend());
  for (std::size_t p = 0; p < in_parts.size(); ++p) {
    const std::int64_t elements = elements_of(in.block(0, in_parts[p]));
    const NestedPart half{builder, axes, elements, dtype, p == 0 ? "a" : "b"};
    Edges last = gathers ? alias(builder, in.block(0, in_parts[p]), half.own_block(), {})
                         : alias_blocks(builder, in, in_parts[p], half.all_blocks(), true, {});
    const auto& gather_order = p == 0 ? last_to_first : first_to_last;
    const auto& scatter_order = p == 0 ? first_to_last : last_to_first;
    if (!gathers) {
      auto ends = half.run(CollectiveKind::reduce_scatter, scatter_order, on_one_axis, last);
      if (!ends) return ends.error();
      last = ends->back();
    }
    if (gathers || reduces) {
      auto ends = half.run(CollectiveKind::all_gather, gather_order, on_one_axis, last);
      if (!ends) return ends.error();
      alias_blocks(builder, out, out_parts[p], half.all_blocks(), false, ends->back());
    } else {
      alias(builder, half.own_block(), out.block(0, out_parts[p]), last);
    }
  }
  return std::move(builder).finish_expansion();
}

}  // namespace podsim
