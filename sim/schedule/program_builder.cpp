#include "sim/schedule/program_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

/// Which tasks of an expansion begin it. What follows only guarded tasks follows nothing on a device where they are absent.
std::vector<bool> starts_of(const Expansion& piece) {
  const auto guarded = [&](const Edge& edge) { return !piece.tasks[edge.task.index()].where.empty(); };
  std::vector<bool> starts;
  starts.reserve(piece.tasks.size());
  for (const Task& task : piece.tasks) starts.push_back(!task.where.empty() || std::all_of(task.after.begin(), task.after.end(), guarded));
  return starts;
}

}  // namespace

Edges edges_to(const Tasks& tasks) {
  Edges result;
  result.reserve(tasks.size());
  for (const TaskId task : tasks) result.push_back(Edge{task});
  return result;
}

Edges join(Edges a, const Edges& b) {
  for (const Edge& edge : b)
    if (std::find(a.begin(), a.end(), edge) == a.end()) a.push_back(edge);
  return a;
}

Region whole_buffer(BufferId buffer, const std::vector<std::int64_t>& extents) {
  Region region{buffer, {}};
  region.dims.reserve(extents.size());
  for (const std::int64_t extent : extents) region.dims.push_back(all(extent));
  return region;
}

std::vector<std::int64_t> lengths_of(const Region& region) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(region.dims.size());
  for (const Range& range : region.dims) lengths.push_back(range.length);
  return lengths;
}

Region with(Region region, std::size_t dim, Range range) {
  region.dims[dim] = std::move(range);
  return region;
}

std::vector<Region*> regions_of(Op& op) {
  using Regions = std::vector<Region*>;
  return std::visit(Overloaded{
                        [](Matmul& m) {
                          return Regions{&m.left, &m.right, &m.out};
                        },
                        [](Local& l) {
                          Regions regions;
                          for (Region& region : l.reads) regions.push_back(&region);
                          for (Region& region : l.writes) regions.push_back(&region);
                          return regions;
                        },
                        [](Shift& s) {
                          return Regions{&s.source, &s.target};
                        },
                        [](Send& s) { return Regions{&s.source}; },
                        [](Recv& r) { return Regions{&r.target}; },
                        [](Collective& c) {
                          return Regions{&c.input, &c.output};
                        },
                        [](Call&) { return Regions{}; },
                    },
                    op);
}

Buffer sharded_buffer(std::string name, DType dtype, Role role, const std::vector<ShardedDimension>& dimensions) {
  Buffer buffer{std::move(name), {}, dtype, role, {}, {}};
  if (role != Role::scratch) buffer.tensor = buffer.name;
  for (const ShardedDimension& dimension : dimensions) {
    std::int64_t extent = dimension.extent;
    std::vector<AxisView> split;
    for (const AxisView& axis : dimension.axes) {
      PODSIM_ASSERT(extent % axis.size == 0);
      extent /= axis.size;
      if (axis.size > 1) split.push_back(axis);
    }
    buffer.extents.push_back(extent);
    if (role != Role::scratch) buffer.sharding.push_back(std::move(split));
  }
  return buffer;
}

std::vector<std::size_t> last_tasks(const Expansion& expansion) {
  std::vector<bool> followed(expansion.tasks.size(), false);
  for (const Task& task : expansion.tasks) {
    if (!task.where.empty()) continue;
    for (const Edge& edge : task.after)
      if (edge.done == Half::both && edge.gates == Half::both) followed[edge.task.index()] = true;
  }
  std::vector<std::size_t> last;
  for (std::size_t i = 0; i < followed.size(); ++i)
    if (!followed[i]) last.push_back(i);
  return last;
}

ProgramBuilder::ProgramBuilder(const Mesh& mesh, DeviceSet devices) : mesh_{mesh}, program_{std::move(devices), {}, {}} {}

ProgramBuilder::ProgramBuilder(const Mesh& mesh, const Program& around) : mesh_{mesh}, around_{&around}, program_{around.devices, {}, {}} {}

const std::vector<Buffer>& ProgramBuilder::around() const {
  static const std::vector<Buffer> none;
  return around_ == nullptr ? none : around_->buffers;
}

const Buffer& ProgramBuilder::buffer(BufferId id) const {
  const std::size_t outer = around().size();
  return id.index() < outer ? around()[id.index()] : program_.buffers[id.index() - outer];
}

BufferId ProgramBuilder::add_buffer(Buffer buffer) {
  program_.buffers.push_back(std::move(buffer));
  return BufferId{buffer_count() - 1};
}

Region ProgramBuilder::scratch(std::string name, std::vector<std::int64_t> extents, DType dtype) {
  return whole(add_buffer({std::move(name), std::move(extents), dtype, Role::scratch, {}, {}}));
}

void ProgramBuilder::begin_section(std::string prefix, Tasks start) {
  prefix_ = std::move(prefix);
  start_ = std::move(start);
}

Tasks ProgramBuilder::last_tasks(TaskId first) const {
  const std::vector<Task>& tasks = program_.tasks;
  std::vector<bool> followed(tasks.size(), false);
  for (std::size_t t = first.index(); t < tasks.size(); ++t)
    if (tasks[t].where.empty())  // a guarded follower may be absent
      for (const Edge& edge : tasks[t].after) followed[edge.task.index()] = true;
  Tasks last;
  for (std::size_t t = first.index(); t < tasks.size(); ++t)
    if (!followed[t]) last.push_back(TaskId{t});
  return last;
}

TaskId ProgramBuilder::add(Task task) {
  if (task.after.empty() || !task.where.empty())
    for (const TaskId before : start_) task.after.push_back(Edge{before});
  if (!prefix_.empty()) task.label.insert(0, prefix_);
  task.recompute = task.recompute || recompute_;
  program_.tasks.push_back(std::move(task));
  return TaskId{program_.tasks.size() - 1};
}

TaskId ProgramBuilder::add(std::string label, Op op, Edges after, Guard where) {
  return add(Task{std::move(label), std::move(op), std::move(after), std::move(where), {}});
}

TaskId ProgramBuilder::alias(std::string label, Region from, Region to, Edges after, Guard where) {
  return add(std::move(label), Local{LocalKind::alias, {std::move(from)}, {std::move(to)}, 1, Unit::dma}, std::move(after), std::move(where));
}

std::size_t ProgramBuilder::count_starts(const Expansion& piece) {
  const std::vector<bool> starts = starts_of(piece);
  return static_cast<std::size_t>(std::count(starts.begin(), starts.end(), true));
}

Edges ProgramBuilder::append(Expansion piece, std::size_t buffers, const Edges& start, const Guard& where) {
  const std::vector<bool> starts = starts_of(piece);
  const auto first = static_cast<int>(program_.tasks.size());
  // Its scratch buffers are numbered right behind those that it was made around; others may have taken these numbers since.
  const int moved = static_cast<int>(buffer_count() - buffers);
  Edges ends;
  for (const std::size_t last : podsim::last_tasks(piece)) ends.push_back(Edge{TaskId{first + static_cast<int>(last)}});
  std::vector<Task>& tasks = program_.tasks;
  if (const std::size_t needed = tasks.size() + piece.tasks.size(); needed > tasks.capacity()) tasks.reserve(std::max(needed, 2 * tasks.capacity()));
  for (std::size_t t = 0; t < piece.tasks.size(); ++t) {
    Task& task = piece.tasks[t];
    for (Edge& edge : task.after) edge.task.value += first;
    if (starts[t]) task.after.insert(task.after.begin(), start.begin(), start.end());
    if (moved > 0)
      for (Region* region : regions_of(task.op))
        if (region->buffer.index() >= buffers) region->buffer.value += moved;
    task.where.insert(task.where.end(), where.begin(), where.end());
    program_.tasks.push_back(std::move(task));
  }
  for (Buffer& buffer : piece.scratch) program_.buffers.push_back(std::move(buffer));
  return ends;
}

Expected<Schedule> side_by_side(std::string name, std::vector<Schedule> schedules) {
  if (schedules.empty()) return Diagnostic{{}, "no schedule to put beside another"};
  Schedule result{std::move(name), schedules.front().mesh, {}, Products{}};
  std::set<std::string> tensors;
  std::vector<bool> taken(static_cast<std::size_t>(result.mesh.devices()), false);
  for (Schedule& schedule : schedules) {
    auto* products = std::get_if<Products>(&schedule.computes);
    if (products == nullptr) return Diagnostic{{}, fmt::format("{} states no products", quoted(schedule.name))};
    if (schedule.mesh != result.mesh)
      return Diagnostic{{}, fmt::format("{} is of the mesh {}, not {}", quoted(schedule.name), to_text(schedule.mesh), to_text(result.mesh))};
    std::set<std::string> own;
    for (Program& program : schedule.programs) {
      for (const Buffer& buffer : program.buffers)
        if (buffer.role != Role::scratch) own.insert(buffer.tensor);
      for (const DeviceSet::Interval& interval : program.devices.intervals)
        for (int d = interval.first; d < interval.last; ++d) {
          if (taken[static_cast<std::size_t>(d)]) return Diagnostic{{}, fmt::format("{}: device {} is busy already", quoted(schedule.name), d)};
          taken[static_cast<std::size_t>(d)] = true;
        }
      result.programs.push_back(std::move(program));
    }
    for (const std::string& tensor : own)
      if (!tensors.insert(tensor).second) return Diagnostic{{}, fmt::format("{}: there is a tensor {} already", quoted(schedule.name), tensor)};
    auto& all_products = std::get<Products>(result.computes);
    all_products.insert(all_products.end(), products->begin(), products->end());
  }
  return result;
}

}  // namespace podsim
