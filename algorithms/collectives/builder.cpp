#include "algorithms/collectives/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

constexpr std::size_t few_edges = 128;  // cost less than a join, a task on every device

}  // namespace

Edges alias(ProgramBuilder& builder, const Region& from, const Region& to, Edges after, Guard where) {
  if (same_place(from, to)) return after;
  return {Edge{builder.alias("place", from, to, std::move(after), std::move(where))}};
}

Edges gathered(ProgramBuilder& builder, Edges after, std::size_t followers) {
  if (after.size() * followers <= few_edges + 2 * (after.size() + followers)) return after;
  return builder.step("join", Local{LocalKind::join, {}, {}, 1, Unit::dma}, std::move(after));
}

Edges alias_blocks(ProgramBuilder& builder, const Blocks& blocks, const Part& part, const Region& held, bool in, Edges after) {
  std::vector<std::int64_t> counts = lengths_of(held);
  counts.pop_back();
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{1}, std::multiplies{});
  if (blocks.outermost() && (static_cast<int>(part.dim) != blocks.dim() || part == blocks.whole())) {
    const Region all = blocks.run(0, total, part);
    return in ? alias(builder, all, held, std::move(after)) : alias(builder, held, all, std::move(after));
  }
  after = gathered(builder, std::move(after), static_cast<std::size_t>(total));
  Edges placed;
  for (std::int64_t b = 0; b < total; ++b) {
    Region row = held;
    std::int64_t rest = b;
    for (std::size_t d = counts.size(); d-- > 0; rest /= counts[d]) {
      row.dims[d].offset += rest % counts[d];
      row.dims[d].length = 1;
    }
    const Region block = blocks.block(b, part);
    placed.push_back(Edge{builder.alias("place", in ? block : row, in ? row : block, after)});
  }
  return placed;
}

Edges accumulate(ProgramBuilder& builder, std::string label, const Region& sum, const Region& summand, Edges after, Guard where) {
  return builder.step(std::move(label), Local{LocalKind::add, {sum, summand}, {sum}, 1, Unit::dma}, std::move(after), std::move(where));
}

Region own_copy(ProgramBuilder& builder, const Region& input, Edges& after) {
  const Buffer& holder = builder.buffer(input.buffer);
  if (holder.role == Role::scratch) return input;
  const Region sums = builder.scratch("partial sums", lengths_of(input), holder.dtype);
  after = alias(builder, input, sums, std::move(after));
  return sums;
}

Expected<Edges> append(ProgramBuilder& builder, const CollectiveAlgorithm& algorithm, const Collective& collective, Edges after,
                       std::string_view label, const Guard& where) {
  // An algorithm looks at no buffers but its Collective's: the program around it has these alone, however many there are.
  Program context;
  Collective own = collective;
  std::vector<BufferId> ids;  // of the context's buffers in the program
  for (Region* region : {&own.input, &own.output}) {
    const auto known = std::ranges::find(ids, region->buffer);
    const auto id = static_cast<int>(known - ids.begin());
    if (known == ids.end()) context.buffers.push_back(builder.buffer(region->buffer)), ids.push_back(region->buffer);
    region->buffer = BufferId{id};
  }
  auto piece = algorithm(builder.mesh(), context, own);
  if (!piece) return piece.error();
  if (piece->tasks.empty()) return after;

  const int moved = static_cast<int>(builder.buffer_count() - ids.size());  // of scratch buffers
  for (Task& task : piece->tasks) {
    for (Region* region : regions_of(task.op)) region->buffer = region->buffer.index() < ids.size() ? ids[region->buffer.index()] : BufferId{region->buffer.value + moved};
    task.where.insert(task.where.end(), where.begin(), where.end());
    if (!label.empty()) task.label = task.label.empty() ? std::string{label} : fmt::format("{} {}", label, task.label);
  }
  if (!label.empty())
    for (Buffer& buffer : piece->scratch) buffer.name = fmt::format("{} {}", buffer.name, label);
  after = gathered(builder, std::move(after), ProgramBuilder::count_starts(*piece));
  Edges ends = builder.append(*std::move(piece), builder.buffer_count(), after);
  const bool everywhere = std::any_of(ends.begin(), ends.end(), [&](const Edge& end) { return builder.task(end.task).where.empty(); });
  if (!everywhere) ends.insert(ends.end(), after.begin(), after.end());
  return ends;
}

std::vector<AxisView> moving_along(const std::vector<AxisView>& axes) {
  std::vector<AxisView> result;
  for (const AxisView& axis : axes)
    if (axis.size > 1) result.push_back(axis);
  return result;
}

std::vector<AxisView> dimensions_along(const Mesh& mesh, const std::vector<AxisView>& axes) {
  std::vector<AxisView> result;
  for (const AxisView& axis : axes)
    for (const AxisView& view : axis == mesh.whole(axis.axis) ? mesh.factors(axis.axis) : std::vector<AxisView>{axis})
      if (view.size > 1) result.push_back(view);
  return result;
}

Expected<AxisView> single_axis(const Collective& collective) {
  if (collective.axes.size() != 1)
    return Diagnostic{{}, fmt::format("this algorithm works along one mesh axis, the collective names {}", collective.axes.size())};
  return collective.axes.front();
}

Status needs_ring(const Mesh& mesh, const AxisView& axis) {
  if (mesh.wraps(axis)) return success();
  return Diagnostic{{}, fmt::format("a ring needs an axis that wraps, {} is open; `line` is the algorithm for open axes", mesh.name(axis))};
}

Diagnostic unsupported(std::string_view algorithm, std::string_view kinds, const Collective& collective) {
  return {{}, fmt::format("`{}` does {}, not {}", algorithm, kinds, name_of(collective.kind))};
}

Expected<Workspace> open_workspace(ProgramBuilder& builder, const Collective& collective, const Affine& position, int devices, LocalKind placing) {
  Edges start;
  Region region = collective.output;
  if (collective.kind == CollectiveKind::reduce_scatter) {
    auto input = Blocks::make(collective.input, collective.dim, devices);
    if (!input) return input.error();
    const bool in_place = same_place(collective.output, input->block(position));
    region = in_place ? collective.input : own_copy(builder, collective.input, start);
  }
  if (collective.kind == CollectiveKind::all_reduce) start = alias(builder, collective.input, region, {});
  auto blocks = Blocks::make(region, collective.dim, devices);
  if (!blocks) return blocks.error();
  if (collective.kind == CollectiveKind::all_gather) {
    const Region own_block = blocks->block(position);
    if (placing == LocalKind::alias)
      start = alias(builder, collective.input, own_block, {});
    else if (!same_place(collective.input, own_block))
      start = builder.step("copy", Local{placing, {collective.input}, {own_block}, 1, Unit::dma}, {});
  }
  return Workspace{std::move(*blocks), std::move(start)};
}

Expected<Workspace> open_workspace(ProgramBuilder& builder, const Collective& collective, const AxisView& axis, LocalKind placing) {
  return open_workspace(builder, collective, own(axis), axis.size, placing);
}

void close_workspace(ProgramBuilder& builder, const Workspace& workspace, const Collective& collective, const Affine& position, Edges last) {
  if (collective.kind == CollectiveKind::reduce_scatter) alias(builder, workspace.blocks.block(position), collective.output, std::move(last));
}
void close_workspace(ProgramBuilder& builder, const Workspace& workspace, const Collective& collective, const AxisView& axis, Edges last) {
  close_workspace(builder, workspace, collective, own(axis), std::move(last));
}

std::vector<Hop> rotation(const Mesh& mesh, const AxisView& axis, int k) {
  const int P = axis.size;
  PODSIM_ASSERT(0 < k && k < P);
  if (mesh.wraps(axis)) return {{2 * k <= P ? k : k - P, {}}};
  return {{k, coordinate_in(axis, 0, P - k)}, {k - P, coordinate_in(axis, P - k, P)}};
}

Guard coordinate_in(const AxisView& axis, std::int64_t low, std::int64_t high, std::int64_t add) { return {{own(axis, add), low, high}}; }

namespace {

bool is_whole(const Mesh& mesh, const AxisView& view) { return view == mesh.whole(view.axis); }

Peer self(const Mesh& mesh) {
  Peer peer;
  for (std::size_t a = 0; a < mesh.axes().size(); ++a) peer.push_back(own(mesh.whole(static_cast<int>(a))));
  return peer;
}

/// The own coordinate on a mesh axis without what the view contributes.
std::vector<AxisTerm> rest_of(const Mesh& mesh, const AxisView& view) {
  if (is_whole(mesh, view)) return {};
  return {{mesh.whole(view.axis), 1}, {view, -view.stride}};
}

}  // namespace

Peer neighbour(const Mesh& mesh, const AxisView& axis, int by) {
  Peer peer = self(mesh);
  std::vector<AxisTerm> terms = rest_of(mesh, axis);
  terms.push_back({axis, axis.stride, by});
  peer[static_cast<std::size_t>(axis.axis)] = {std::move(terms)};
  return peer;
}

Peer peer_at(const Mesh& mesh, const std::vector<AxisView>& axes, const std::vector<int>& coordinates) {
  Peer peer = self(mesh);
  for (const AxisView& view : axes) peer[static_cast<std::size_t>(view.axis)] = is_whole(mesh, view) ? Affine{} : own(mesh.whole(view.axis));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Affine& on_axis = peer[static_cast<std::size_t>(axes[i].axis)];  // of which several views may be parts
    if (!is_whole(mesh, axes[i])) on_axis.terms.push_back({axes[i], -axes[i].stride});
    on_axis.constant += static_cast<std::int64_t>(axes[i].stride) * coordinates[i];
  }
  return peer;
}

std::vector<int> coordinates_of(const std::vector<AxisView>& axes, std::int64_t position) {
  std::vector<int> coordinates(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    coordinates[i] = static_cast<int>(position % axes[i].size);
    position /= axes[i].size;
  }
  return coordinates;
}

}  // namespace podsim
