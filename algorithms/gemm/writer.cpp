#include "algorithms/gemm/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace podsim {

namespace {

Region whole(BufferId id, const std::vector<std::int64_t>& extents) {
  Region region{id, {}};
  for (const std::int64_t extent : extents) region.dims.push_back(all(extent));
  return region;
}

std::vector<Edge> edges(const Tasks& tasks) {
  std::vector<Edge> result;
  result.reserve(tasks.size());
  for (const TaskId task : tasks) result.push_back(Edge{task});
  return result;
}

}  // namespace

Region Slots::slot(std::int64_t i) const { return with(whole(buffer, extents), 0, span(i % count(), 1)); }

std::string step_label(std::string_view what, std::int64_t step, std::int64_t steps) {
  return steps == 1 ? std::string{what} : fmt::format("{} s{}", what, step);
}

GemmWriter::GemmWriter(const Mesh& mesh, AxisView row, AxisView col, DType dtype) : row_{row}, col_{col}, dtype_{dtype} {
  schedule_.mesh = mesh;
  schedule_.programs.push_back({every_device(mesh), {}, {}});
  schedule_.computes = Products{};
}

void GemmWriter::begin(const GemmProblem& problem, Names names, Tasks start) {
  names_ = std::move(names);
  start_ = std::move(start);
  std::get<Products>(schedule_.computes)
      .push_back({names_.out, names_.left, names_.right, problem.m, problem.n, problem.k, problem.dataflow == Dataflow::rs,
                  problem.dataflow == Dataflow::ls});
}

Region GemmWriter::left(std::int64_t rows, std::int64_t columns, const View* view) {
  return matrix(names_.left, Role::input, rows, columns, {row_}, {col_}, view);
}
Region GemmWriter::right(std::int64_t rows, std::int64_t columns, const View* view) {
  return matrix(names_.right, Role::input, rows, columns, {row_}, {col_}, view);
}
Region GemmWriter::out(std::int64_t rows, std::int64_t columns, const View* view) {
  return matrix(names_.out, Role::output, rows, columns, {row_}, {col_}, view);
}

Region GemmWriter::matrix(const std::string& tensor, Role role, std::int64_t rows, std::int64_t columns, std::vector<AxisView> row_axes,
                          std::vector<AxisView> column_axes, const View* view) {
  Buffer buffer{tensor, {rows, columns}, dtype_, role, tensor, {std::move(row_axes), std::move(column_axes)}};
  for (std::size_t d = 0; d < 2; ++d) {
    std::erase_if(buffer.sharding[d], [](const AxisView& axis) { return axis.size == 1; });  // the axis that a one-axis algorithm lacks
    for (const AxisView& axis : buffer.sharding[d]) {
      assert(buffer.extents[d] % axis.size == 0);
      buffer.extents[d] /= axis.size;
    }
  }
  if (view) {
    const auto dim = static_cast<std::ptrdiff_t>(view->dim);
    buffer.extents.erase(buffer.extents.begin() + dim);
    buffer.extents.insert(buffer.extents.begin() + dim, view->extents.begin(), view->extents.end());
    buffer.sharding.insert(buffer.sharding.begin() + dim + 1, view->extents.size() - 1, {});
  }
  std::vector<Buffer>& buffers = program().buffers;
  const auto found =
      std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& other) { return other.role != Role::scratch && other.tensor == tensor; });
  const BufferId id{static_cast<std::size_t>(found - buffers.begin())};
  assert(found == buffers.end() || *found == buffer);  // an algorithm cuts a tensor the same way in all GEMMs of a layer
  if (found == buffers.end()) buffers.push_back(buffer);
  return whole(id, buffer.extents);
}

Region GemmWriter::scratch(const std::string& name, std::vector<std::int64_t> extents) {
  const BufferId id{program().buffers.size()};
  const Region region = whole(id, extents);
  program().buffers.push_back({names_.prefix + name, std::move(extents), dtype_, Role::scratch, {}, {}});
  return region;
}

Slots GemmWriter::slots(const std::string& name, std::int64_t count, std::vector<std::int64_t> extents) {
  extents.insert(extents.begin(), count);
  return {scratch(name, extents).buffer, extents};
}

TaskId GemmWriter::add(std::string label, Op op, std::vector<Edge> after, Guard where) {
  if (after.empty() || !where.empty())
    for (const TaskId task : start_) after.push_back(Edge{task});
  program().tasks.push_back({names_.prefix + label, std::move(op), std::move(after), std::move(where), {}});
  return TaskId{program().tasks.size() - 1};
}

TaskId GemmWriter::add(std::string label, Op op, const Tasks& after, Guard where) {
  return add(std::move(label), std::move(op), edges(after), std::move(where));
}

TaskId GemmWriter::place(std::string label, Region from, Region to, const Tasks& after, Guard where) {
  return add(std::move(label), Local{LocalKind::place, {std::move(from)}, {std::move(to)}, 1, Unit::dma}, after, std::move(where));
}

TaskId GemmWriter::collective(std::string label, CollectiveKind kind, const AxisView& axis, Region input, Region output, int dim, const Tasks& after,
                              std::int64_t root) {
  return add(std::move(label), Collective{kind, {axis}, std::move(input), std::move(output), dim, 0, root, {}}, after);
}

Tasks GemmWriter::last_tasks() const {
  const std::vector<Task>& tasks = schedule_.programs.front().tasks;
  std::vector<bool> followed(tasks.size(), false);
  for (const Task& task : tasks)
    if (task.where.empty())  // a guarded follower may be absent
      for (const Edge& edge : task.after) followed[edge.task.index()] = true;
  Tasks last;
  for (std::size_t t = 0; t < tasks.size(); ++t)
    if (!followed[t]) last.push_back(TaskId{t});
  return last;
}

Schedule GemmWriter::finish(std::string name) && {
  schedule_.name = std::move(name);
  return std::move(schedule_);
}

}  // namespace podsim
