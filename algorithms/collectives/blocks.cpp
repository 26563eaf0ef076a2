#include "algorithms/collectives/blocks.hpp"

#include <fmt/format.h>

#include <cassert>

namespace podsim {

Expected<Blocks> Blocks::make(const Region& region, int dim, int count) {
  Blocks blocks;
  blocks.region_ = region;
  blocks.dim_ = static_cast<std::size_t>(dim);
  Range& range = blocks.region_.dims[blocks.dim_];
  if (!range.index.terms.empty())
    return Diagnostic{{}, fmt::format("dimension {} is cut into blocks, so it must begin at the same place on every device", dim)};
  range.offset += range.stride * range.index.constant;
  range.index = {};
  assert(range.length % count == 0);  // check_shapes()
  blocks.block_length_ = range.length / count;
  return blocks;
}

Part Blocks::whole() const { return {dim_, 0, block_length_}; }

Region Blocks::block(const Affine& index) const { return block(index, whole()); }

Region Blocks::block(const Affine& index, const Part& part) const {
  Region region = region_;
  Range& range = region.dims[dim_];
  range = {index, block_length_, range.offset, block_length_};
  Range& cut = region.dims[part.dim];
  cut.offset += part.begin;
  cut.length = part.length;
  return region;
}

std::vector<Part> Blocks::halves() const {
  const auto split = [](std::size_t dim, std::int64_t length) {
    const std::int64_t first = (length + 1) / 2;
    return std::vector<Part>{{dim, 0, first}, {dim, first, length - first}};
  };
  for (std::size_t d = 0; d < region_.dims.size(); ++d)
    if (d != dim_ && region_.dims[d].length > 1) return split(d, region_.dims[d].length);
  if (block_length_ > 1) return split(dim_, block_length_);
  return {whole()};
}

Expected<AxisView> single_axis(const Collective& collective) {
  if (collective.axes.size() != 1)
    return Diagnostic{{}, fmt::format("this algorithm works along one mesh axis, the collective names {}", collective.axes.size())};
  return collective.axes.front();
}

namespace {

Task place(const Region& from, const Region& to, std::string label, std::vector<Edge> after) {
  return {std::move(label), Local{LocalKind::place, {from}, {to}, 1, Unit::dma}, std::move(after), {}, {}};
}

/// All of a region of a buffer without a place of its own: [0, length) per dimension.
Region like(const Region& region, BufferId buffer) {
  Region copy{buffer, {}};
  for (const Range& range : region.dims) copy.dims.push_back(all(range.length));
  return copy;
}

}  // namespace

Expected<Workspace> open_workspace(const Program& program, const Collective& collective, const AxisView& axis) {
  const bool gathers = collective.kind == CollectiveKind::all_gather;
  if (!gathers && collective.kind != CollectiveKind::reduce_scatter)
    return Diagnostic{{}, fmt::format("this algorithm does all-gather and reduce-scatter, not {}", name_of(collective.kind))};

  Expansion expansion;
  std::vector<Edge> after_start;
  Region region = gathers ? collective.output : collective.input;
  const Buffer& buffer = program.buffers[region.buffer.index()];
  if (!gathers && buffer.role != Role::scratch) {
    Buffer sums{"partial sums", {}, buffer.dtype, Role::scratch, {}, {}};
    for (const Range& range : region.dims) sums.extents.push_back(range.length);
    expansion.scratch.push_back(std::move(sums));
    region = like(collective.input, BufferId{program.buffers.size()});
    expansion.tasks.push_back(place(collective.input, region, "place", {}));
    after_start = {Edge{TaskId{0}}};
  }
  auto blocks = Blocks::make(region, collective.dim, axis.size);
  if (!blocks) return blocks.error();
  if (gathers)
    if (const Region own_block = blocks->block(own(axis)); collective.input != own_block) {
      expansion.tasks.push_back(place(collective.input, own_block, "place", {}));
      after_start = {Edge{TaskId{0}}};
    }
  return Workspace{std::move(*blocks), std::move(expansion), std::move(after_start)};
}

void close_workspace(Workspace& workspace, const Collective& collective, const AxisView& axis, std::vector<Edge> last) {
  if (collective.kind != CollectiveKind::reduce_scatter) return;
  const Region own_block = workspace.blocks.block(own(axis));
  if (collective.output == own_block) return;
  workspace.expansion.tasks.push_back(place(own_block, collective.output, "place", std::move(last)));
}

}  // namespace podsim
