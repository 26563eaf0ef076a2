#include <fmt/format.h>

#include <set>

#include "algorithms/collectives/collectives.hpp"

namespace podsim {

namespace {

/// A buffer [1 per mesh axis..., blocks, data] of a tensor in which every device's data is its own.
Buffer own_data(const Mesh& mesh, std::string name, Role role, DType dtype, std::int64_t blocks, std::int64_t data) {
  Buffer buffer{name, {}, dtype, role, name, {}};
  for (std::size_t a = 0; a < mesh.axes().size(); ++a) {
    buffer.extents.push_back(1);
    buffer.sharding.push_back({mesh.whole(static_cast<int>(a))});
  }
  buffer.extents.insert(buffer.extents.end(), {blocks, data});
  buffer.sharding.insert(buffer.sharding.end(), 2, {});
  return buffer;
}

}  // namespace

Expected<Schedule> collective_schedule(const Mesh& mesh, CollectiveKind kind, const std::vector<AxisView>& axes, Bytes bytes, DType dtype,
                                       const CollectiveDetails& details) {
  std::int64_t group = 1;
  for (const AxisView& axis : axes) group *= axis.size;
  // An all-reduce has a block per device only where they divide it.
  const bool reduces_blocks = kind == CollectiveKind::all_reduce && bytes.count() % (size_of(dtype).count() * group) == 0;
  const bool all_blocks_in = kind == CollectiveKind::reduce_scatter || reduces_blocks || kind == CollectiveKind::all_to_all;
  const bool all_blocks_out = kind == CollectiveKind::all_gather || reduces_blocks || kind == CollectiveKind::all_to_all;
  const std::int64_t whole = size_of(dtype).count() * (all_blocks_in ? group : 1);
  if (bytes.count() < 1 || bytes.count() % whole != 0)
    return Diagnostic{{},
                      fmt::format("the bytes on each device must be a positive multiple of {} ({} elements{}), found {}", whole, name_of(dtype),
                                  all_blocks_in ? fmt::format(" for each of {} devices", group) : "", bytes.count())};
  const std::int64_t data = bytes.count() / whole;

  ProgramBuilder builder{mesh, every_device(mesh)};
  const Region input = builder.whole(builder.add_buffer(own_data(mesh, "input", Role::input, dtype, all_blocks_in ? group : 1, data)));
  const Region output = builder.whole(builder.add_buffer(own_data(mesh, "output", Role::output, dtype, all_blocks_out ? group : 1, data)));
  const int dim = static_cast<int>(mesh.axes().size());
  Collective collective{kind, axes, input, output, dim, 0, 0, {}};
  if (kind == CollectiveKind::all_to_all) collective.split_dim = dim;
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) collective.root = details.root;
  if (kind == CollectiveKind::permute) collective.pairs = details.pairs.empty() ? shift_pairs(group, 1) : details.pairs;
  if (collective.root < 0 || collective.root >= group)
    return Diagnostic{{}, fmt::format("the root must be among {} devices, found {}", group, collective.root)};
  std::set<std::int64_t> senders, receivers;
  for (const Collective::Pair& pair : collective.pairs) {
    if (pair.from < 0 || pair.from >= group || pair.to < 0 || pair.to >= group)
      return Diagnostic{{}, fmt::format("a pair must be among {} devices, found {} to {}", group, pair.from, pair.to)};
    if (!senders.insert(pair.from).second) return Diagnostic{{}, fmt::format("each device sends once, {} sends twice", pair.from)};
    if (!receivers.insert(pair.to).second) return Diagnostic{{}, fmt::format("each device receives once, {} receives twice", pair.to)};
  }
  builder.add(std::string{name_of(kind)}, collective, Edges{});
  return Schedule{std::string{name_of(kind)}, mesh, {std::move(builder).finish()}, std::move(collective)};
}

}  // namespace podsim
