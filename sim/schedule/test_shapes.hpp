// One good schedule with a task of every kind, and a table of what is said when one thing is wrong with it. For the tests of check_shapes().
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/testing.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim::test_shapes {

// Tasks and buffers of the good schedule, by position.
enum : int { matmul_task, copy_task, add_task, shift_task, send_task, recv_task, gather_task, scatter_task, launch_task };
enum : int { X, W, Y, a, b, c, half };

inline Schedule good() {
  using namespace podsim::testing;  // NOLINT(google-build-using-namespace)
  Writer w{std::vector<MeshAxis>{{"row", 4, true}, {"col", 2, true}}};
  w.program(0, 8);
  const AxisView row = w.axis(0), col = w.axis(1);
  w.now().buffers = {{"X", {4, 6}, DType::f32, Role::input, "X", {{row}, {col}}},
                     {"W", {6, 8}, DType::f32, Role::input, "W", {{row}, {}}},
                     {"Y", {4, 8}, DType::f32, Role::output, "Y", {{}, {}}},
                     {"a", {16}, DType::f32, Role::scratch, {}, {}},
                     {"b", {16}, DType::f32, Role::scratch, {}, {}},
                     {"c", {16}, DType::f32, Role::scratch, {}, {}},
                     {"half", {16}, DType::bf16, Role::scratch, {}, {}}};
  const auto buffer = [](int position) { return BufferId{position}; };
  w.add("matmul", product(buffer(X), buffer(W), buffer(Y), 4, 8, 6));
  w.add("copy", copy(part(buffer(a), 0, 4), part(buffer(b), 0, 4)));
  w.add("add", Local{LocalKind::add, {part(buffer(a), 0, 4), part(buffer(a), 4, 4)}, {part(buffer(b), 0, 4)}, 1, Unit::core});
  w.add("shift", shift(row, Affine{{{col, 1}}}, part(buffer(a), 0, 4), part(buffer(b), 0, 4)), {after(TaskId{copy_task})});
  w.add("send", Send{1, {own(row, 1), own(col)}, part(buffer(a), 0, 4), {}});
  w.add("recv", Recv{1, {own(row, -1), own(col)}, part(buffer(b), 0, 4), Combine::replace}, {after(TaskId{shift_task}, Half::receive)});
  w.add("gather", Collective{CollectiveKind::all_gather, {row}, part(buffer(a), 0, 4), part(buffer(c), 0, 16), 0});
  w.add("scatter", Collective{CollectiveKind::reduce_scatter, {row, col}, part(buffer(c), 0, 16), part(buffer(b), 0, 2), 0});
  w.add("launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma});
  w.now().tasks.back().origin = Origin{0, CollectiveKind::all_gather, row, Bytes{16}};
  w.schedule.computes = Products{{"Y", "X", "W", 4, 8, 6, false, false}};
  return w.schedule;
}

inline Task& task(Schedule& schedule, int position) { return schedule.programs[0].tasks[static_cast<std::size_t>(position)]; }
inline Buffer& buffer(Schedule& schedule, int position) { return schedule.programs[0].buffers[static_cast<std::size_t>(position)]; }
template <class T>
T& op(Schedule& schedule, int position) {
  return std::get<T>(task(schedule, position).op);
}

struct Case {
  std::string what;
  std::function<void(Schedule&)> spoil;
  std::vector<std::string> messages;
};

inline void expect_each(const std::vector<Case>& cases) {
  for (const Case& entry : cases) {
    Schedule schedule = good();
    entry.spoil(schedule);
    std::vector<std::string> messages;
    for (const Diagnostic& problem : check_shapes(schedule)) messages.push_back(to_text(problem));
    EXPECT_THAT(messages, ::testing::ElementsAreArray(entry.messages)) << entry.what;
  }
}

inline constexpr std::int64_t beyond = (std::int64_t{1} << 56) + 1;
inline constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();

}  // namespace podsim::test_shapes
