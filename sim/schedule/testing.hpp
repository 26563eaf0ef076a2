// Small schedules written by hand, for the tests of several folders. Not for production code.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/base/invariant.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim::testing {

/// Writes a schedule task by task. Its first program runs on every device until program() says otherwise.
class Writer {
 public:
  explicit Writer(std::vector<MeshAxis> axes) {
    auto mesh = Mesh::make(std::move(axes));
    PODSIM_ASSERT(mesh);
    start(*std::move(mesh));
  }
  explicit Writer(const Mesh& mesh) { start(mesh); }

  /// Narrows the first program, which has no task yet, to these devices, or starts another one on them.
  void program(int first, int last) {
    if (!now().tasks.empty()) schedule.programs.emplace_back();
    now().devices = {{{first, last}}};
  }

  BufferId scratch(std::string name, std::vector<std::int64_t> extents, DType dtype = DType::f32) {
    return buffer({std::move(name), std::move(extents), dtype, Role::scratch, {}, {}});
  }
  /// A buffer of a tensor of its name that every device holds all of.
  BufferId replicated(const std::string& name, Role role, const std::vector<std::int64_t>& extents, DType dtype = DType::f32) {
    return buffer({name, extents, dtype, role, name, std::vector<std::vector<AxisView>>(extents.size())});
  }

  TaskId add(std::string label, Op op, std::vector<Edge> after = {}, Guard where = {}) {
    now().tasks.push_back({std::move(label), std::move(op), std::move(after), std::move(where), {}});
    return TaskId{now().tasks.size() - 1};
  }

  [[nodiscard]] AxisView axis(int position) const { return schedule.mesh.whole(position); }
  Program& now() { return schedule.programs.back(); }
  Task& task(TaskId id) { return now().tasks[id.index()]; }

  Schedule schedule;

 private:
  void start(const Mesh& mesh) {
    schedule.name = "test";
    schedule.mesh = mesh;
    schedule.programs.push_back({every_device(mesh), {}, {}});
  }
  BufferId buffer(Buffer buffer) {
    now().buffers.push_back(std::move(buffer));
    return BufferId{now().buffers.size() - 1};
  }
};

inline Edge after(TaskId task, Half done = Half::both, Half gates = Half::both) { return {task, done, gates}; }

/// The axis of a mesh that is one ring.
inline std::vector<MeshAxis> ring(int size) { return {{"x", size, true}}; }

inline std::vector<std::string> texts(const std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string> result;
  for (const Diagnostic& diagnostic : diagnostics) result.push_back(to_text(diagnostic));
  return result;
}

/// Elements [begin, begin + length) of a buffer of one dimension.
inline Region part(BufferId buffer, std::int64_t begin, std::int64_t length) { return {buffer, {span(begin, length)}}; }

inline Local copy(Region from, Region to, Unit unit = Unit::core) { return {LocalKind::copy, {std::move(from)}, {std::move(to)}, 1, unit}; }
inline Local alias(Region from, Region to) { return {LocalKind::alias, {std::move(from)}, {std::move(to)}, 1, Unit::dma}; }
inline Shift shift(const AxisView& axis, Affine by, Region source, Region target, Combine combine = Combine::replace) {
  return {axis, std::move(by), std::move(source), std::move(target), combine, {}};
}

/// [m, k] . [k, n] -> [m, n], each the whole of a buffer of two dimensions.
inline Matmul product(BufferId left, BufferId right, BufferId out, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate = false) {
  return {{left, {all(m), all(k)}}, {right, {all(k), all(n)}}, {out, {all(m), all(n)}}, 1, 1, 1, false, false, accumulate};
}

/// On a mesh of one axis: the peer at own coordinate + by, modulo the axis's size.
inline Peer neighbour(const AxisView& axis, std::int64_t by) { return {own(axis, by)}; }

/// The devices with low <= coordinate < high.
inline Guard between(const AxisView& axis, std::int64_t low, std::int64_t high) { return {{own(axis, 0, false), low, high}}; }

}  // namespace podsim::testing
