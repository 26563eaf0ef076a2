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
      {"Z", {4, 1, 8}, DType::c64, Role::output, "Z", {{}, {row}, {}}, {24}, {3}},
      {"P", {8}, DType::s32, Role::output, "P", {{}}},
  };
  program.buffers.push_back({"away", {8}, DType::f32, Role::scratch, "", {}});
  program.buffers.back().on_host = true;
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
      {"turn", Shift{row, 3, x, x, Combine::replace, {}, InSwitch::none, true}, {}, {}, {}},
      {"send", Send{7, {own(row, 1), Affine{0}}, nothing, {0}}, {}, {}, {}},
      {"send", Recv{-7, {own(row, -1), Affine{0}}, nothing, Combine::add}, {}, {}, {}},
      {"gather", Collective{CollectiveKind::reduce, {row, half}, x, y, 1, 2, 3, {{0, 7}, {7, 0}}, "rotations"}, {{TaskId{4}, Half::both, Half::both}}, {}, {}},
      {"attend", Local{LocalKind::attention, {first}, {second}, 1, Unit::core, true, true}, {}, {}, {}},
      {"norm", Local{LocalKind::norm_grad, {first, second, first, nothing}, {second}, 4096, Unit::core, true, false}, {}, {}, {}},
      {"transform", Local{LocalKind::fft, {y}, {x}, 1, Unit::core, false, false, {0, 2}}, {}, {}, {}},
      {"factor", Local{LocalKind::getrf_panel, {x}, {y, second}, 1, Unit::core, false, false, {}, {2, 1, 0}, {{own(row), 4, 2}, {Affine{3}}}}, {}, {}, {}},
      {"step", Local{LocalKind::adamw, {x, y, x, y}, {x, y, x}, 1, Unit::core, false, false, {}, {}, {}, 0, {1e-3, 0.9, 0.95, 1e-8, 0.1, 7}}, {}, {}, {}},
      {"descend", Local{LocalKind::sgd, {x, y}, {x}, 1, Unit::core, false, false, {}, {}, {}, 0, {0.5}}, {}, {}, {}},
      {"loss", Local{LocalKind::cross_entropy, {x, y, first}, {nothing}, 12, Unit::core, true, false, {}, {}, {{own(row)}}, 32000}, {}, {}, {}},
      {"mask", Local{LocalKind::attention_grad, {first, second}, {second}, 1, Unit::dma, false, true}, {}, {}, {}},
  };
  schedule.programs = {program, Program{{{{8, 16}}}, {program.buffers[1]}, {}}, Program{}};
  schedule.computes = Collective{CollectiveKind::all_gather, {col}, x, y, 0, 0, 0};
  return schedule;
}

/// A claim with every kind of node and every field of one; the graph makes no sense.
inline ReferenceProgram every_node() {
  ReferenceProgram program;
  for (const ReferenceTraits& traits : reference_table) {
    ReferenceNode node;
    node.kind = traits.kind;
    const int n = static_cast<int>(program.nodes.size());
    for (int i = 0; i < traits.operands; ++i) node.operands.push_back(n - 1 - i);
    node.extents = {n + 1, 4};
    node.number = n % 2 == 0 ? 1 : 0.1 * n;
    node.dim = n % 3;
    node.offset = n % 5, node.causal = n % 2 == 0;
    node.inverse = n % 3 == 1, node.complex = n % 5 == 2;
    if (traits.kind == ReferenceKind::input) node.below = 32000;
    if (traits.kind == ReferenceKind::fft) node.dims = {1, 0};
    node.transpose_left = n % 2 == 1, node.transpose_right = n % 4 == 1;
    if (traits.kind == ReferenceKind::input) node.tensor = "X", node.operands.clear();
    if (traits.kind == ReferenceKind::product) node.operands = {0, 0};
    if (traits.kind == ReferenceKind::transpose) node.permutation = {1, 0}, node.name = "turned \"X\"";
    if (traits.kind == ReferenceKind::block_collective)
      node.collective = {CollectiveKind::all_to_all, {1, 0}, 1, 2, -3, {{{0}, {}, {1}}}, {{{1, 0}}}, Reduction::maximum, {{0, 1}, {1, 3}}};
    program.nodes.push_back(node);
  }
  program.outputs = {{"Y", 1}, {"Z", static_cast<int>(program.nodes.size()) - 1}};
  program.claim = "what it is";
  return program;
}

/// Writes schedules of random values. They mean nothing, but a reader has to accept them.
class RandomScheduleWriter {
 public:
  explicit RandomScheduleWriter(std::uint64_t seed) : rng_{seed} {
    schedule_.name = coin() ? "" : "random " + std::to_string(seed);
    schedule_.mesh = test_mesh();
  }

  Schedule write() && {
    for (std::uint64_t f = 0, functions = rng_.below(3); f < functions; ++f) {
      Program body = program();
      body.devices = {};
      const int parameters = static_cast<int>(rng_.below(body.buffers.size() + 1));
      schedule_.functions.push_back({"function " + std::to_string(f), parameters, std::move(body)});
    }
    for (std::uint64_t p = 0; p < 1 + rng_.below(3); ++p) {
      schedule_.programs.push_back(program());
      Program& caller = schedule_.programs.back();
      for (std::size_t f = 0; f < schedule_.functions.size(); ++f) {
        Call call{static_cast<int>(f), {}};
        while (coin()) call.arguments.emplace_back(rng_.below(caller.buffers.size()));
        caller.tasks.push_back({"call", std::move(call), {}, {}, {}});
      }
    }
    if (rng_.below(3) == 0)
      schedule_.computes =
          Products{1 + rng_.below(3), {"C", "A", "", rng_.between(0, 999), rng_.between(0, 999), rng_.between(0, 999), true, coin()}};
    if (rng_.below(3) == 0)
      schedule_.computes = Collective{CollectiveKind::permute,
                                      {},
                                      region(schedule_.programs[0]),
                                      region(schedule_.programs[0]),
                                      0,
                                      1,
                                      2,
                                      {{0, 1}, {rng_.between(0, 9), rng_.between(0, 9)}}};
    return std::move(schedule_);
  }

 private:
  bool coin() { return rng_.below(2) == 0; }
  std::int64_t number() { return static_cast<std::int64_t>(rng_.next() >> rng_.between(8, 62)) * (coin() ? 1 : -1); }
  Half half() { return static_cast<Half>(rng_.below(3)); }
  Combine combine() { return static_cast<Combine>(rng_.below(3)); }
  CollectiveKind kind() { return static_cast<CollectiveKind>(rng_.below(collective_kind_count)); }

  AxisView view() {
    const Mesh& mesh = schedule_.mesh;
    const int axis = rng_.between(0, 1);
    const AxisView views[] = {mesh.whole(axis), mesh.factor(axis, {2, axis == 0 ? 2 : 4}, rng_.between(0, 1)), AxisView{axis, 1, 1}};
    return views[rng_.below(3)];
  }

  Affine affine() {
    Affine result{number() >> 10};
    while (coin()) result.terms.push_back({view(), number() >> 20, coin() ? 0 : rng_.between(-9, 9)});
    if (coin()) result.modulus = rng_.between(0, 100);
    return result;
  }

  Region region(const Program& program) {
    Region result{BufferId{static_cast<int>(rng_.below(program.buffers.size()))}, {}};
    while (rng_.below(3) != 0 && result.dims.size() < 4)
      result.dims.push_back({coin() ? Affine{} : Affine{std::int64_t{rng_.between(-9, 9)}}, rng_.between(-5, 5), number(), rng_.between(0, 9)});
    return result;
  }

  Buffer buffer() {
    Buffer result{rng_.below(4) == 0 ? "" : std::string(1, static_cast<char>('A' + rng_.below(4))),
                  {},
                  static_cast<DType>(rng_.below(2)),
                  static_cast<Role>(rng_.below(3)),
                  coin() ? "" : "T",
                  {}};
    while (coin()) result.extents.push_back(rng_.between(0, 1000));
    while (coin() && result.sharding.size() < 4) result.sharding.emplace_back(rng_.below(3), view());
    if (result.extents.size() > 4) result.extents.resize(4);
    return result;
  }

  Optimiser optimiser() {
    const auto number = [&] { return coin() ? 0.0 : rng_.uniform(); };
    return {number(), number(), number(), number(), number(), rng_.between(-3, 3)};
  }

  OpaqueCost opaque() {
    OpaqueCost cost{Flops{coin() ? 0.0 : rng_.uniform()}, Flops{coin() ? 0.0 : rng_.uniform()}, static_cast<DType>(rng_.below(2)), {}, {}, Seconds{coin() ? 0.0 : rng_.uniform()}, Seconds{coin() ? 0.0 : rng_.uniform()}};
    if (coin()) cost.bytes = Bytes{rng_.between(0, 1 << 30)};
    if (coin()) cost.time = Seconds{rng_.uniform()};
    return cost;
  }

  Op operation(const Program& program) {
    const auto any = [&] { return region(program); };
    switch (rng_.below(6)) {
      case 0: return Matmul{any(), any(), any(), rng_.between(0, 3), rng_.between(0, 3), 1, coin(), coin(), coin()};
      case 1:
        return Local{local_table[rng_.below(local_table.size())].kind, {any()}, {any(), any()}, rng_.uniform(), static_cast<Unit>(rng_.below(2)),
                     coin(), coin(), {}, {}, {}, coin() ? 0 : rng_.between(0, 9), coin() ? Optimiser{} : optimiser(), coin() ? OpaqueCost{} : opaque()};
      case 2: return Shift{view(), affine(), any(), any(), combine(), {}};
      case 3: return Send{rng_.between(-3, 3), {affine(), affine()}, any(), {2, 1}};
      case 4: return Recv{rng_.between(-3, 3), {affine()}, any(), combine()};
      default: return Collective{kind(), {view()}, any(), any(), rng_.between(0, 2), rng_.between(0, 2), rng_.between(0, 9), {}, coin() ? "" : "ring", coin() ? Reduction::sum : Reduction::maximum};
    }
  }

  /// Task number `t` of the program.
  Task task(const Program& program, std::uint64_t t) {
    Task result;
    result.op = operation(program);
    if (coin()) result.label = "label " + std::to_string(rng_.below(5));
    while (t > 0 && coin()) result.after.push_back({TaskId{static_cast<int>(rng_.below(t))}, half(), half()});
    while (rng_.below(3) == 0) result.where.push_back({affine(), number(), number()});
    if (rng_.below(3) == 0) result.origin = Origin{rng_.between(0, 9), kind(), view(), Bytes{rng_.between(0, 1 << 30)}, Bytes{rng_.between(0, 1 << 20)}};
    result.recompute = coin();
    return result;
  }

  Program program() {
    Program result{every_device(schedule_.mesh), {}, {}};
    if (coin()) result.devices = {{{0, rng_.between(0, 32)}, {32, 32}}};
    for (std::uint64_t b = 0; b < 1 + rng_.below(4); ++b) result.buffers.push_back(buffer());
    for (std::uint64_t t = 0; t < rng_.below(12); ++t) result.tasks.push_back(task(result, t));
    return result;
  }

  Rng rng_;
  Schedule schedule_;
};

inline Schedule random_schedule(std::uint64_t seed) { return RandomScheduleWriter{seed}.write(); }

}  // namespace podsim
