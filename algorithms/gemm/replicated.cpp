#include "algorithms/gemm/replicated.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/invariant.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

namespace {

/// How many different parts of its tensor the devices hold.
int parts_of(const Buffer& buffer) {
  int parts = 1;
  for (const auto& axes : buffer.sharding)
    for (const AxisView& axis : axes) parts *= axis.size;
  return parts;
}

/// Whole mesh axes of more than one device that the sharding does not name.
std::vector<AxisView> replicating_axes(const Mesh& mesh, const Buffer& buffer) {
  std::vector<AxisView> result;
  for (int a = 0; a < static_cast<int>(mesh.axes().size()); ++a) {
    const auto names = [&](const std::vector<AxisView>& axes) {
      return std::any_of(axes.begin(), axes.end(), [&](const AxisView& axis) { return axis.axis == a; });
    };
    if (mesh.whole(a).size > 1 && std::none_of(buffer.sharding.begin(), buffer.sharding.end(), names)) result.push_back(mesh.whole(a));
  }
  return result;
}

bool refers_to(Op& op, BufferId buffer) {
  const std::vector<Region*> regions = regions_of(op);
  return std::any_of(regions.begin(), regions.end(), [&](const Region* region) { return region->buffer == buffer; });
}

/// The all-gather that makes the input `id` out of a new one, which is split further.
Expected<Task> gather(const Mesh& mesh, Program& program, BufferId id) {
  Buffer& buffer = program.buffers[id.index()];
  const int copies = size_of(program.devices) / parts_of(buffer);
  const std::vector<AxisView> axes = replicating_axes(mesh, buffer);
  int devices = 1;
  for (const AxisView& axis : axes) devices *= axis.size;
  const auto dim = std::find_if(buffer.extents.begin(), buffer.extents.end(), [&](std::int64_t extent) { return extent % copies == 0; });
  if (devices != copies || dim == buffer.extents.end())
    return Diagnostic{{}, fmt::format("{} devices need the same {}, which cannot be split evenly among them to be gathered", copies, buffer.tensor)};
  const auto d = static_cast<std::size_t>(dim - buffer.extents.begin());
  Buffer split = buffer;
  split.name += " shard";
  split.extents[d] /= copies;
  split.sharding[d].insert(split.sharding[d].end(), axes.begin(), axes.end());
  const std::string label = "gather " + buffer.tensor;
  buffer.role = Role::scratch;
  buffer.tensor.clear();
  buffer.sharding.clear();
  const Region to = whole_buffer(id, buffer.extents), from = whole_buffer(BufferId{program.buffers.size()}, split.extents);
  program.buffers.push_back(std::move(split));
  return Task{label, Collective{CollectiveKind::all_gather, axes, from, to, static_cast<int>(d), 0, 0, {}}, {}, {}, {}};
}

}  // namespace

std::vector<Replicated> replicated_tensors(const Schedule& schedule) {
  PODSIM_ASSERT(schedule.programs.size() == 1);
  std::vector<Replicated> result;
  const Program& program = schedule.programs.front();
  for (const Buffer& buffer : program.buffers)
    if (const int copies = size_of(program.devices) / parts_of(buffer); buffer.role != Role::scratch && copies > 1)
      result.push_back({buffer.tensor, buffer.role, copies, false});
  return result;
}

Expected<Schedule> gather_inputs(Schedule schedule, std::span<const std::string> given) {
  PODSIM_ASSERT(schedule.programs.size() == 1);
  Program& program = schedule.programs.front();
  std::vector<Task> gathers;
  std::vector<BufferId> gathered;
  for (const Replicated& replicated : replicated_tensors(schedule)) {
    if (replicated.role != Role::input || std::find(given.begin(), given.end(), replicated.tensor) != given.end()) continue;
    const auto buffer = std::find_if(program.buffers.begin(), program.buffers.end(), [&](const Buffer& b) { return b.tensor == replicated.tensor; });
    gathered.emplace_back(static_cast<std::size_t>(buffer - program.buffers.begin()));
    auto task = gather(schedule.mesh, program, gathered.back());
    if (!task) return task.error();
    gathers.push_back(*std::move(task));
  }
  for (Task& task : program.tasks) {
    for (Edge& edge : task.after) edge.task = TaskId{edge.task.index() + gathers.size()};
    for (std::size_t g = 0; g < gathers.size(); ++g)
      if (refers_to(task.op, gathered[g])) task.after.push_back(Edge{TaskId{g}});
  }
  program.tasks.insert(program.tasks.begin(), gathers.begin(), gathers.end());
  return schedule;
}

}  // namespace podsim
