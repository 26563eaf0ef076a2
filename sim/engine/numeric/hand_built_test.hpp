// Small schedules written by hand, for the tests of this folder: they must not depend on the algorithms that the engine is to prove.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace podsim::hand_built {

inline Mesh mesh_of(std::vector<MeshAxis> axes) { return *Mesh::make(std::move(axes)); }

inline Buffer input(std::string tensor, std::vector<std::int64_t> extents, std::vector<std::vector<AxisView>> sharding, DType dtype = DType::f32) {
  return {tensor, std::move(extents), dtype, Role::input, tensor, std::move(sharding)};
}
inline Buffer output(std::string tensor, std::vector<std::int64_t> extents, std::vector<std::vector<AxisView>> sharding, DType dtype = DType::f32) {
  return {tensor, std::move(extents), dtype, Role::output, tensor, std::move(sharding)};
}
inline Buffer scratch(std::string name, std::vector<std::int64_t> extents, DType dtype = DType::f32) {
  return {std::move(name), std::move(extents), dtype, Role::scratch, {}, {}};
}

inline Region whole(const Program& program, int buffer) {
  Region region{BufferId{buffer}, {}};
  for (const std::int64_t extent : program.buffers[static_cast<std::size_t>(buffer)].extents) region.dims.push_back(all(extent));
  return region;
}

/// Appends a task; edges to all of `after`, default both halves.
inline int add(Program& program, std::string label, Op op, std::vector<int> after = {}, Guard where = {}) {
  Task task{std::move(label), std::move(op), {}, std::move(where), {}};
  for (const int earlier : after) task.after.push_back({TaskId{earlier}, Half::both, Half::both});
  program.tasks.push_back(std::move(task));
  return static_cast<int>(program.tasks.size()) - 1;
}

inline Local copy(Region from, Region to) { return {LocalKind::copy, {std::move(from)}, {std::move(to)}, 1, Unit::core}; }

/// A ring of P - 1 shifts by 1 that gathers block own(axis) of dimension `dim` of `buffer`, which is there after task `own_block`, and after
/// `free` (-1: none) of the buffer's last use. Returns the last shift.
inline int ring_gather(Program& program, const AxisView& axis, int buffer, int dim, int own_block, int free = -1) {
  const auto block_region = [&](std::int64_t add_to_own) {
    Region region = whole(program, buffer);
    Range& range = region.dims[static_cast<std::size_t>(dim)];
    range = block(own(axis, add_to_own), range.length / axis.size);
    return region;
  };
  int last = own_block;
  for (int step = 1; step < axis.size; ++step) {
    std::vector<int> after{last};
    if (step == 1 && free >= 0) after.push_back(free);
    last =
        add(program, "gather step " + std::to_string(step), Shift{axis, 1, block_region(1 - step), block_region(-step), Combine::replace, {}}, after);
  }
  return last;
}

/// P devices, shards of `rows` x 3; one-way ring.
inline Schedule ring_all_gather(int P, std::int64_t rows, DType dtype = DType::f32) {
  Schedule schedule{"ring all-gather", mesh_of({{"x", P, true}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  Program program{every_device(schedule.mesh), {input("X", {rows, 3}, {{x}, {}}, dtype), output("Y", {P * rows, 3}, {{}, {}}, dtype)}, {}};
  Region own_block = whole(program, 1);
  own_block.dims[0] = block(own(x), rows);
  ring_gather(program, x, 1, 0, add(program, "own block", copy(whole(program, 0), own_block)));
  schedule.computes = Collective{CollectiveKind::all_gather, {x}, whole(program, 0), whole(program, 1), 0, 0, 0};
  schedule.programs.push_back(std::move(program));
  return schedule;
}

/// P devices, inputs of P blocks of `rows` x 3, different on each; one-way ring, adding on the way.
inline Schedule ring_reduce_scatter(int P, std::int64_t rows, DType dtype = DType::f32) {
  Schedule schedule{"ring reduce-scatter", mesh_of({{"x", P, true}}), {}, {}};
  const AxisView x = schedule.mesh.whole(0);
  Program program{every_device(schedule.mesh),
                  {input("X", {P * rows, 3}, {{x}, {}}, dtype), output("Y", {rows, 3}, {{x}, {}}, dtype), scratch("sums", {P * rows, 3}, dtype)},
                  {}};
  const auto sums = [&](std::int64_t add_to_own) { return Region{BufferId{2}, {block(own(x, add_to_own), rows), all(3)}}; };
  int last = add(program, "own terms", copy(whole(program, 0), whole(program, 2)));
  for (int step = 1; step < P; ++step)
    last = add(program, "reduce step " + std::to_string(step), Shift{x, 1, sums(-step), sums(-step - 1), Combine::add, {}}, {last});
  add(program, "result", copy(sums(0), whole(program, 1)), {last});
  schedule.computes = Collective{CollectiveKind::reduce_scatter, {x}, whole(program, 0), whole(program, 1), 0, 0, 0};
  schedule.programs.push_back(std::move(program));
  return schedule;
}

struct GemmExtents {
  std::int64_t m, n, k;
};

/// Y[m,n] = X[m,k] W[k,n] on P x P devices, output-stationary, in S slices of interleaved blocks of B (MeshSlice with one-way rings and two
/// sets of gather buffers).
inline Schedule sliced_product(int P, GemmExtents of, int S, std::int64_t B, DType dtype = DType::f32) {
  Schedule schedule{"sliced product", mesh_of({{"row", P, true}, {"col", P, true}}), {}, Products{{"Y", "X", "W", of.m, of.n, of.k, false, false}}};
  const AxisView row = schedule.mesh.whole(0), col = schedule.mesh.whole(1);
  const std::int64_t m = of.m / P, n = of.n / P, J = of.k / P / (S * B);
  Program program{every_device(schedule.mesh),
                  {input("X", {m, J, S, B}, {{row}, {col}, {}, {}}, dtype), input("W", {J, S, B, n}, {{row}, {}, {}, {col}}, dtype),
                   output("Y", {m, n}, {{row}, {col}}, product_result(dtype)), scratch("GX0", {m, P, J, B}, dtype), scratch("GX1", {m, P, J, B}, dtype),
                   scratch("GW0", {P, J, B, n}, dtype), scratch("GW1", {P, J, B, n}, dtype)},
                  {}};
  std::vector<int> products;
  for (int s = 0; s < S; ++s) {
    const int gx = 3 + s % 2, gw = 5 + s % 2;
    Region x = whole(program, 0), w = whole(program, 1), own_x = whole(program, gx), own_w = whole(program, gw);
    x.dims[2] = span(s, 1), w.dims[1] = span(s, 1);
    own_x.dims[1] = block(own(col), 1), own_w.dims[0] = block(own(row), 1);
    const std::vector<int> free = s < 2 ? std::vector<int>{} : std::vector<int>{products[static_cast<std::size_t>(s) - 2]};
    const int cut_x = add(program, "cut X", copy(x, own_x), free), cut_w = add(program, "cut W", copy(w, own_w), free);
    std::vector<int> after{ring_gather(program, col, gx, 1, cut_x), ring_gather(program, row, gw, 0, cut_w)};
    if (s > 0) after.push_back(products.back());
    products.push_back(
        add(program, "product", Matmul{whole(program, gx), whole(program, gw), whole(program, 2), 1, 3, 1, false, false, s > 0}, after));
  }
  schedule.programs.push_back(std::move(program));
  return schedule;
}

}  // namespace podsim::hand_built
