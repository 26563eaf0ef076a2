// Schedules for the tests of sim/config. They need not make sense, but they use everything that a file can hold.
#pragma once

#include <limits>
#include <string>
#include <utility>

#include "sim/base/rng.hpp"
#include "sim/schedule/schedule.hpp"

namespace podsim {

inline Mesh test_mesh() {
  auto mesh = Mesh::make({{"row", 4, true}, {"col", 8, false}});
  if (!mesh) throw std::runtime_error(to_text(mesh.error()));
  return *mesh;
}

/// Every operation, every kind of edge, guards, views, an origin, buffers with and without a name of their own, two programs.
inline Schedule every_operation() {
  Schedule schedule;
  schedule.name = "everything, \"quoted\" and \xc2\xb5";
  schedule.mesh = test_mesh();
  const AxisView row = schedule.mesh.whole(0), col = schedule.mesh.whole(1);
  const AxisView half = schedule.mesh.factor(1, {2, 2, 2}, 1);

  Program program;
  program.devices = {{{0, 8}, {16, 32}}};
  program.buffers = {
      {"X", {2, 8, 16}, DType::bf16, Role::input, "X", {{row}, {half, row}, {}}},
      {"Y", {8, 16}, DType::f32, Role::output, "Y", {{}, {col}}},
      {"scratch", {8}, DType::f32, Role::scratch, "", {}},
      {"scratch", {8}, DType::f32, Role::scratch, "", {}},
      {"", {}, DType::f32, Role::scratch, "", {}},
  };
  const Region x{BufferId{0}, {all(2), podsim::block(own(row, 1), 2), span(4, 8)}};
  const Region y{BufferId{1}, {Range{Affine{{AxisTerm{half, -2}, AxisTerm{row, 3}}, 7, 5}, -4, 30, 3}, all(16)}};
  const Region first{BufferId{2}, {all(8)}}, second{BufferId{3}, {all(8)}}, nothing{BufferId{4}, {}};
  program.tasks = {
      {"multiply", Matmul{x, y, y, 2, 1, 0, true, true, true}, {}, {}, {}},
      {"", Local{LocalKind::scale, {first}, {second}, 0.1, Unit::core}, {{TaskId{0}, Half::both, Half::both}}, {}, {}},
      {"launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma}, {}, {}, Origin{3, CollectiveKind::all_to_all, half, Bytes{1 << 20}}},
      {"pass \"on\"",
       Shift{row, Affine{{AxisTerm{col, -1}}, 2}, x, x, Combine::add, {1, 0}},
       {{TaskId{0}, Half::send, Half::receive}, {TaskId{2}, Half::receive, Half::send}},
       {{own(row, 0, false), 1, 4}, {Affine{5}, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}},
       {}},
      {"send", Send{7, {own(row, 1), Affine{0}}, nothing, {0}}, {}, {}, {}},
      {"send", Recv{-7, {own(row, -1), Affine{0}}, nothing, Combine::add}, {}, {}, {}},
      {"gather", Collective{CollectiveKind::reduce, {row, half}, x, y, 1, 2, 3, {{0, 7}, {7, 0}}}, {{TaskId{4}, Half::both, Half::both}}, {}, {}},
      {"attend", Local{LocalKind::attention, {first}, {second}, 1, Unit::core, true, true}, {}, {}, {}},
      {"norm", Local{LocalKind::norm_grad, {first, second, first, nothing}, {second}, 4096, Unit::core, true, false}, {}, {}, {}},
      {"mask", Local{LocalKind::attention_grad, {first, second}, {second}, 1, Unit::dma, false, true}, {}, {}, {}},
  };
  schedule.programs = {program, Program{{{{8, 16}}}, {program.buffers[1]}, {}}, Program{}};
  schedule.computes = Collective{CollectiveKind::all_gather, {col}, x, y, 0, 0, 0};
  return schedule;
}

/// Any values that a reader has to accept.
inline Schedule random_schedule(std::uint64_t seed) {
  Rng rng{seed};
  Schedule schedule;
  schedule.name = rng.below(2) == 0 ? "" : "random " + std::to_string(seed);
  schedule.mesh = test_mesh();
  const auto view = [&] {
    const int axis = rng.between(0, 1);
    const AxisView views[] = {schedule.mesh.whole(axis), schedule.mesh.factor(axis, {2, axis == 0 ? 2 : 4}, rng.between(0, 1)), AxisView{axis, 1, 1}};
    return views[rng.below(3)];
  };
  const auto number = [&] { return static_cast<std::int64_t>(rng.next() >> rng.between(8, 62)) * (rng.below(2) == 0 ? 1 : -1); };
  const auto affine = [&] {
    Affine result{number() >> 10};
    while (rng.below(2) == 0) result.terms.push_back({view(), number() >> 20, rng.below(2) == 0 ? 0 : rng.between(-9, 9)});
    if (rng.below(2) == 0) result.modulus = rng.between(0, 100);
    return result;
  };
  const auto region = [&](const Program& program) {
    Region result{BufferId{static_cast<int>(rng.below(program.buffers.size()))}, {}};
    while (rng.below(3) != 0 && result.dims.size() < 4)
      result.dims.push_back(
          {rng.below(2) == 0 ? Affine{} : Affine{std::int64_t{rng.between(-9, 9)}}, rng.between(-5, 5), number(), rng.between(0, 9)});
    return result;
  };
  const auto half = [&] { return static_cast<Half>(rng.below(3)); };
  for (std::uint64_t p = 0; p < 1 + rng.below(3); ++p) {
    Program program{every_device(schedule.mesh), {}, {}};
    if (rng.below(2) == 0) program.devices = {{{0, rng.between(0, 32)}, {32, 32}}};
    for (std::uint64_t b = 0; b < 1 + rng.below(4); ++b) {
      Buffer buffer{rng.below(4) == 0 ? "" : std::string(1, static_cast<char>('A' + rng.below(4))),
                    {},
                    static_cast<DType>(rng.below(2)),
                    static_cast<Role>(rng.below(3)),
                    rng.below(2) == 0 ? "" : "T",
                    {}};
      while (rng.below(2) == 0) buffer.extents.push_back(rng.between(0, 1000));
      while (rng.below(2) == 0 && buffer.sharding.size() < 4) buffer.sharding.emplace_back(rng.below(3), view());
      if (buffer.extents.size() > 4) buffer.extents.resize(4);
      program.buffers.push_back(std::move(buffer));
    }
    for (std::uint64_t t = 0; t < rng.below(12); ++t) {
      const auto any = [&] { return region(program); };
      const auto kind = [&] { return static_cast<CollectiveKind>(rng.below(collective_kind_count)); };
      const auto combine = [&] { return static_cast<Combine>(rng.below(2)); };
      Task task;
      switch (rng.below(6)) {
        case 0:
          task.op = Matmul{any(), any(), any(), rng.between(0, 3), rng.between(0, 3), 1, rng.below(2) == 0, rng.below(2) == 0, rng.below(2) == 0};
          break;
        case 1:
          task.op = Local{local_table[rng.below(local_table.size())].kind,
                          {any()},
                          {any(), any()},
                          rng.uniform(),
                          static_cast<Unit>(rng.below(2)),
                          rng.below(2) == 0,
                          rng.below(2) == 0};
          break;
        case 2: task.op = Shift{view(), affine(), any(), any(), combine(), {}}; break;
        case 3: task.op = Send{rng.between(-3, 3), {affine(), affine()}, any(), {2, 1}}; break;
        case 4: task.op = Recv{rng.between(-3, 3), {affine()}, any(), combine()}; break;
        default: task.op = Collective{kind(), {view()}, any(), any(), rng.between(0, 2), rng.between(0, 2), rng.between(0, 9)};
      }
      if (rng.below(2) == 0) task.label = "label " + std::to_string(rng.below(5));
      while (t > 0 && rng.below(2) == 0) task.after.push_back({TaskId{static_cast<int>(rng.below(t))}, half(), half()});
      while (rng.below(3) == 0) task.where.push_back({affine(), number(), number()});
      if (rng.below(3) == 0) task.origin = Origin{rng.between(0, 9), kind(), view(), Bytes{rng.between(0, 1 << 30)}};
      program.tasks.push_back(std::move(task));
    }
    schedule.programs.push_back(std::move(program));
  }
  if (rng.below(3) == 0)
    schedule.computes =
        Products{1 + rng.below(3), {"C", "A", "", rng.between(0, 999), rng.between(0, 999), rng.between(0, 999), true, rng.below(2) == 0}};
  if (rng.below(3) == 0)
    schedule.computes = Collective{CollectiveKind::permute,
                                   {},
                                   region(schedule.programs[0]),
                                   region(schedule.programs[0]),
                                   0,
                                   1,
                                   2,
                                   {{0, 1}, {rng.between(0, 9), rng.between(0, 9)}}};
  return schedule;
}

}  // namespace podsim
