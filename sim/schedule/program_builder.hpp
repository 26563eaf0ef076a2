// Writes programs: buffers, tasks and edges, with typed ids. GEMMs, expansions of collectives, parts and blocks of workloads, calibration cases and
// lowering all use it. A builder only appends; the algorithm decides what the tasks mean.
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

/// Edges from both halves of each task.
Edges edges_to(const Tasks& tasks);
/// The edges of both lists without duplicates.
Edges join(Edges a, const Edges& b);

/// The whole of a buffer with these extents.
Region whole_buffer(BufferId buffer, const std::vector<std::int64_t>& extents);
/// The lengths of a region: the extents of a buffer of its size.
std::vector<std::int64_t> lengths_of(const Region& region);
/// `region` with dimension `dim` replaced by `range`.
Region with(Region region, std::size_t dim, Range range);

/// Pointers to all regions of an operation, to renumber or move them.
std::vector<Region*> regions_of(Op& op);

/// A dimension of a global tensor and the mesh axes that shard it, first most significant. An axis of size 1 splits nothing.
struct ShardedDimension {
  std::int64_t extent = 1;  // a multiple of the sizes of `axes`: an assert
  std::vector<AxisView> axes{};
};
/// One device's shard of the tensor `name`. A scratch buffer is sharded in the same way but belongs to no tensor.
Buffer sharded_buffer(std::string name, DType dtype, Role role, const std::vector<ShardedDimension>& dimensions);

/// The tasks and scratch buffers that a collective algorithm makes of one Collective. Edges are positions in `tasks`. Regions name the program's
/// buffers, or scratch: BufferId = number of buffers of the program + position in `scratch`.
struct Expansion {
  std::vector<Task> tasks;
  std::vector<Buffer> scratch;
};

/// Tasks without an unconditional successor. A guarded successor may be absent on a device, and a successor with an edge from one half says nothing
/// about the other half.
std::vector<std::size_t> last_tasks(const Expansion& expansion);

class ProgramBuilder {
 public:
  /// An empty program on these devices. The mesh must outlive the builder.
  ProgramBuilder(const Mesh& mesh, DeviceSet devices);
  /// An expansion to be appended to `around` later: tasks count from 0, buffers from those of `around`, which it may use. Both arguments must outlive
  /// the builder.
  ProgramBuilder(const Mesh& mesh, const Program& around);

  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] std::size_t task_count() const { return program_.tasks.size(); }
  [[nodiscard]] const Task& task(TaskId id) const { return program_.tasks[id.index()]; }
  /// The number of buffers that regions may name: of this program and of `around`.
  [[nodiscard]] std::size_t buffer_count() const { return around().size() + program_.buffers.size(); }
  [[nodiscard]] const Buffer& buffer(BufferId id) const;
  [[nodiscard]] Region whole(BufferId id) const { return whole_buffer(id, buffer(id).extents); }

  /// Memory for so many in all, where that is known.
  void reserve(std::size_t tasks, std::size_t buffers) { program_.tasks.reserve(tasks), program_.buffers.reserve(buffers); }
  BufferId add_buffer(Buffer buffer);
  /// The whole of a new scratch buffer.
  Region scratch(std::string name, std::vector<std::int64_t> extents, DType dtype);

  /// From here on labels begin with `prefix`, and two sorts of tasks wait for `start` as well: those without edges, and guarded ones (their
  /// predecessors may be absent on a device).
  void begin_section(std::string prefix, Tasks start);
  /// Whether the tasks added from here on recompute (Task::recompute); those that append() adds keep their own.
  void recompute(bool on) { recompute_ = on; }
  /// The tasks from `first` on without an unconditional successor.
  [[nodiscard]] Tasks last_tasks(TaskId first = TaskId{}) const;

  TaskId add(Task task);
  TaskId add(std::string label, Op op, Edges after, Guard where = {});
  TaskId add(std::string label, Op op, const Tasks& after, Guard where = {}) {
    return add(std::move(label), std::move(op), edges_to(after), std::move(where));
  }
  /// Adds a task and returns the edges that wait for it.
  Edges step(std::string label, Op op, Edges after, Guard where = {}) {
    return {Edge{add(std::move(label), std::move(op), std::move(after), std::move(where))}};
  }
  /// LocalKind::alias, a copy that is free in time: a real kernel reads the data in `from` itself.
  TaskId alias(std::string label, Region from, Region to, Edges after, Guard where = {});
  TaskId alias(std::string label, Region from, Region to, const Tasks& after, Guard where = {}) {
    return alias(std::move(label), std::move(from), std::move(to), edges_to(after), std::move(where));
  }

  /// Appends an expansion that was written around the first `buffers` buffers of this builder. Its tasks without an unguarded predecessor in it wait
  /// for `start`, and so do its guarded tasks. Returns the edges that wait for all of it: its last_tasks(). Labels stay unchanged.
  /// `where` becomes a guard of all of it: a condition that holds on all devices of a group or on none.
  Edges append(Expansion piece, std::size_t buffers, const Edges& start, const Guard& where = {});
  /// The number of tasks of an expansion that append() makes wait for `start`.
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
  bool recompute_ = false;
};

/// The programs of several schedules on one mesh as one schedule; they run at the same time on disjoint devices.
///   errors   no schedule; different meshes; a device in two of them; a tensor in two of them; a schedule that states no products
Expected<Schedule> side_by_side(std::string name, std::vector<Schedule> schedules);

}  // namespace podsim
