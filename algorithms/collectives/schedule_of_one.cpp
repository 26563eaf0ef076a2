#include <fmt/format.h>

#include <algorithm>

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

Region everything(const Buffer& buffer, BufferId id) {
  Region region{id, {}};
  for (const std::int64_t extent : buffer.extents) region.dims.push_back(all(extent));
  return region;
}

}  // namespace

Expected<Schedule> collective_schedule(const Mesh& mesh, CollectiveKind kind, const std::vector<AxisView>& axes, Bytes bytes, DType dtype) {
  if (kind != CollectiveKind::all_gather && kind != CollectiveKind::reduce_scatter)
    return Diagnostic{{}, fmt::format("there is no algorithm for {} yet; expected all-gather or reduce-scatter", name_of(kind))};
  std::int64_t group = 1;
  for (const AxisView& axis : axes) group *= axis.size;
  const bool scatters = kind == CollectiveKind::reduce_scatter;
  const std::int64_t whole = size_of(dtype).count() * (scatters ? group : 1);
  if (bytes.count() < 1 || bytes.count() % whole != 0)
    return Diagnostic{{}, fmt::format("the bytes on each device must be a positive multiple of {} ({} elements{}), found {}", whole, name_of(dtype),
                                      scatters ? fmt::format(" for each of {} devices", group) : "", bytes.count())};
  const std::int64_t data = bytes.count() / whole;

  Program program{every_device(mesh), {}, {}};
  program.buffers.push_back(own_data(mesh, "input", Role::input, dtype, scatters ? group : 1, data));
  program.buffers.push_back(own_data(mesh, "output", Role::output, dtype, scatters ? 1 : group, data));
  Collective collective{kind, axes, everything(program.buffers[0], BufferId{0}), everything(program.buffers[1], BufferId{1}),
                        static_cast<int>(mesh.axes().size()), 0, 0};
  program.tasks.push_back({std::string{name_of(kind)}, collective, {}, {}, {}});
  return Schedule{std::string{name_of(kind)}, mesh, {std::move(program)}, std::move(collective)};
}

}  // namespace podsim
