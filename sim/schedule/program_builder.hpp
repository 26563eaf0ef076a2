// Writes programs: buffers, tasks and what they wait for, with typed ids. GEMMs, expansions of collectives, parts and blocks of workloads, probes and
// lowering are all written with it. A builder only appends; what the tasks mean is the algorithm's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim {

using Tasks = std::vector<TaskId>;
using Edges = std::vector<Edge>;

/// Edges of both halves to each of the tasks.
Edges edges_to(const Tasks& tasks);
/// The edges of both lists, each once.
Edges join(Edges a, const Edges& b);

/// All of a buffer of these extents.
Region whole_buffer(BufferId buffer, const std::vector<std::int64_t>& extents);
/// The lengths of a region: the extents of a buffer that holds it.
std::vector<std::int64_t> lengths_of(const Region& region);
/// A dimension of a region narrowed: region.dims[dim] becomes `range`.
Region with(Region region, std::size_t dim, Range range);

/// Every region of an operation, to be renumbered or moved.
std::vector<Region*> regions_of(Op& op);

/// A dimension of a tensor of all devices, and the axes that split it, first most significant. Axes of one device split nothing.
struct ShardedDimension {
  std::int64_t extent = 1;  // a multiple of the sizes of `axes`: an assert
  std::vector<AxisView> axes{};
};
/// What one device holds of a tensor of that name; scratch is cut the same way and belongs to no tensor.
Buffer sharded_buffer(std::string name, DType dtype, Role role, const std::vector<ShardedDimension>& dimensions);

/// What an algorithm of algorithms/collectives makes of one Collective: tasks whose edges are positions in this list. Regions may name the
/// program's buffers, or new scratch buffers: BufferId = number of buffers of the program + position in `scratch`.
struct Expansion {
  std::vector<Task> tasks;
  std::vector<Buffer> scratch;
};

/// The tasks that no other follows for certain. A guarded follower may be absent on a device, and a follower that waits with one half does
/// not speak for the other.
std::vector<std::size_t> last_tasks(const Expansion& expansion);

class ProgramBuilder {
 public:
  /// An empty program of these devices. The mesh must outlive the builder.
  ProgramBuilder(const Mesh& mesh, DeviceSet devices);
  /// An expansion that is put into `around` later: tasks count from 0, buffers from those of `around`, which may be named. Both arguments must
  /// outlive the builder.
  ProgramBuilder(const Mesh& mesh, const Program& around);

  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] std::size_t task_count() const { return program_.tasks.size(); }
  [[nodiscard]] const Task& task(TaskId id) const { return program_.tasks[id.index()]; }
  /// Buffers that can be named: of this program, and of the one around it.
  [[nodiscard]] std::size_t buffer_count() const { return around().size() + program_.buffers.size(); }
  [[nodiscard]] const Buffer& buffer(BufferId id) const;
  [[nodiscard]] Region whole(BufferId id) const { return whole_buffer(id, buffer(id).extents); }

  BufferId add_buffer(Buffer buffer);
  /// All of a new scratch buffer.
  Region scratch(std::string name, std::vector<std::int64_t> extents, DType dtype);

  /// From here on: labels begin with `prefix`, and a task that waits for nothing, or that is guarded (so that what it waits for may be absent), waits
  /// for `start` as well.
  void begin_section(std::string prefix, Tasks start);
  /// The tasks from `first` on that no other follows on every device.
  [[nodiscard]] Tasks last_tasks(TaskId first = TaskId{}) const;

  TaskId add(Task task);
  TaskId add(std::string label, Op op, Edges after, Guard where = {});
  TaskId add(std::string label, Op op, const Tasks& after, Guard where = {}) {
    return add(std::move(label), std::move(op), edges_to(after), std::move(where));
  }
  /// The same; what comes back waits for the task.
  Edges step(std::string label, Op op, Edges after, Guard where = {}) {
    return {Edge{add(std::move(label), std::move(op), std::move(after), std::move(where))}};
  }
  /// LocalKind::alias, a copy that is free in time: a real kernel reads the data in `from` itself.
  TaskId alias(std::string label, Region from, Region to, Edges after, Guard where = {});
  TaskId alias(std::string label, Region from, Region to, const Tasks& after, Guard where = {}) {
    return alias(std::move(label), std::move(from), std::move(to), edges_to(after), std::move(where));
  }

  /// An expansion that was made around the first `buffers` buffers that can be named here. Each of its tasks that is guarded, or that has no
  /// unguarded predecessor in it, waits for `start`. What comes back waits for all of it: its last_tasks(). Labels stay as they are.
  Edges append(Expansion piece, std::size_t buffers, const Edges& start);
  /// How many tasks of an expansion would wait for `start`.
  static std::size_t count_starts(const Expansion& piece);

  Program finish() && { return std::move(program_); }
  Expansion finish_expansion() && { return {std::move(program_.tasks), std::move(program_.buffers)}; }

 private:
  [[nodiscard]] const std::vector<Buffer>& around() const;

  const Mesh& mesh_;
  const Program* around_ = nullptr;
  Program program_;
  std::string prefix_;
  Tasks start_;
};

/// The programs of several schedules of one mesh in one: each on its own devices, at once.
///   errors   no schedule, or different meshes; devices in two of them; a tensor in two of them; one that states no products
Expected<Schedule> side_by_side(std::string name, std::vector<Schedule> schedules);

}  // namespace podsim
