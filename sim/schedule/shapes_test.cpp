// What check_shapes() says, word for word: one good schedule, and one thing wrong with it at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "sim/schedule/testing.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::copy;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using testing::neighbour;
using testing::part;
using testing::product;
using testing::shift;
using testing::Writer;

// Tasks and buffers of the good schedule, by position.
enum : int { matmul_task, copy_task, add_task, shift_task, send_task, recv_task, gather_task, scatter_task, launch_task };
enum : int { X, W, Y, a, b, c, half };

Schedule good() {
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
  w.add("recv", Recv{1, {own(row, -1), own(col)}, part(buffer(b), 0, 4), Combine::replace}, {after(TaskId{shift_task}, Half::second)});
  w.add("gather", Collective{CollectiveKind::all_gather, {row}, part(buffer(a), 0, 4), part(buffer(c), 0, 16), 0});
  w.add("scatter", Collective{CollectiveKind::reduce_scatter, {row, col}, part(buffer(c), 0, 16), part(buffer(b), 0, 2), 0});
  w.add("launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma});
  w.now().tasks.back().origin = Origin{0, CollectiveKind::all_gather, row, Bytes{16}};
  w.schedule.computes = Product{"Y", "X", "W", 4, 8, 6, false, false};
  return w.schedule;
}

Task& task(Schedule& schedule, int position) { return schedule.programs[0].tasks[static_cast<std::size_t>(position)]; }
Buffer& buffer(Schedule& schedule, int position) { return schedule.programs[0].buffers[static_cast<std::size_t>(position)]; }
template <class T>
T& op(Schedule& schedule, int position) {
  return std::get<T>(task(schedule, position).op);
}

struct Case {
  std::string what;
  std::function<void(Schedule&)> spoil;
  std::vector<std::string> messages;
};

void expect_each(const std::vector<Case>& cases) {
  for (const Case& entry : cases) {
    Schedule schedule = good();
    entry.spoil(schedule);
    std::vector<std::string> messages;
    for (const Diagnostic& problem : check_shapes(schedule)) messages.push_back(to_text(problem));
    EXPECT_THAT(messages, ElementsAreArray(entry.messages)) << entry.what;
  }
}

constexpr std::int64_t beyond = (std::int64_t{1} << 56) + 1;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();

TEST(Shapes, AGoodScheduleHasNoProblem) { EXPECT_THAT(check_shapes(good()), IsEmpty()); }

TEST(Shapes, DeviceSets) {
  const std::string not_a_range = "are not a range of the mesh's 8 devices";
  expect_each({
      {"beyond",
       [](Schedule& s) {
         s.programs[0].devices = {{{0, 9}}};
       },
       {"program 0: devices 0..9 " + not_a_range}},
      {"negative",
       [](Schedule& s) {
         s.programs[0].devices = {{{-1, 2}}};
       },
       {"program 0: devices -1..2 " + not_a_range}},
      {"empty",
       [](Schedule& s) {
         s.programs[0].devices = {{{3, 3}}};
       },
       {"program 0: devices 3..3 " + not_a_range}},
      {"backwards, twice",
       [](Schedule& s) {
         s.programs[0].devices = {{{5, 3}, {9, 10}}};
       },
       {"program 0: devices 5..3 " + not_a_range, "program 0: devices 9..10 " + not_a_range}},
      {"overlapping",
       [](Schedule& s) {
         s.programs.push_back({{{{6, 8}}}, {}, {}});
       },
       {"program 1: device 6 already runs another program"}},
      {"within one set",
       [](Schedule& s) {
         s.programs[0].devices = {{{0, 4}, {3, 8}}};
       },
       {"program 0: device 3 already runs another program"}},
  });
}

TEST(Shapes, Buffers) {
  expect_each({
      {"no elements",
       [](Schedule& s) { buffer(s, a).extents = {0}; },
       {"buffer \"a\": extents must be positive and their product below 2^53, found 0"}},
      {"negative",
       [](Schedule& s) {
         buffer(s, a).extents = {4, -4};
       },
       {"buffer \"a\": extents must be positive and their product below 2^53, found -4"}},
      {"a product that overflows",
       [](Schedule& s) {
         buffer(s, a).extents = {std::int64_t{1} << 40, std::int64_t{1} << 40};
       },
       {"buffer \"a\": extents must be positive and their product below 2^53, found 1099511627776"}},
      {"the largest number",
       [](Schedule& s) { buffer(s, a).extents = {most}; },
       {"buffer \"a\": extents must be positive and their product below 2^53, found 9223372036854775807"}},
      {"scratch with a tensor", [](Schedule& s) { buffer(s, a).tensor = "T"; }, {"buffer \"a\": scratch has no tensor and no sharding"}},
      {"input without a tensor", [](Schedule& s) { buffer(s, X).tensor = ""; }, {"buffer \"X\": an input or output needs the name of its tensor"}},
      {"too few dimensions sharded",
       [](Schedule& s) { buffer(s, X).sharding.pop_back(); },
       {"buffer \"X\": expected a sharding for each of 2 dimensions, found 1"}},
      {"no such axis",
       [](Schedule& s) {
         buffer(s, X).sharding[0] = {{2, 1, 4}};
       },
       {"buffer \"X\": the sharding names axis 2, which is no view of the mesh row=4,col=2"}},
      {"no such factor",
       [](Schedule& s) {
         buffer(s, X).sharding[0] = {{0, 2, 4}};
       },
       {"buffer \"X\": the sharding names axis 0, which is no view of the mesh row=4,col=2"}},
      {"an axis twice",
       [](Schedule& s) { buffer(s, X).sharding[1] = buffer(s, X).sharding[0]; },
       {"buffer \"X\": the sharding names mesh axis row twice"}},
  });
}

TEST(Shapes, Regions) {
  const auto left = [](Schedule& s) -> Region& { return op<Matmul>(s, matmul_task).left; };
  expect_each({
      {"no such buffer", [&](Schedule& s) { left(s).buffer = BufferId{7}; }, {"task 0 \"matmul\": left: there is no buffer 7"}},
      {"negative buffer", [&](Schedule& s) { left(s).buffer = BufferId{-1}; }, {"task 0 \"matmul\": left: there is no buffer -1"}},
      {"rank", [&](Schedule& s) { left(s).dims.pop_back(); }, {"task 0 \"matmul\": left: expected 2 ranges for buffer \"X\", found 1"}},
      {"too long",
       [&](Schedule& s) { left(s).dims[1].length = 7; },
       {"task 0 \"matmul\": left: dimension 1 of buffer \"X\" has 6 elements, the range takes 7"}},
      {"empty",
       [&](Schedule& s) { left(s).dims[0].length = 0; },
       {"task 0 \"matmul\": left: dimension 0 of buffer \"X\" has 4 elements, the range takes 0"}},
      {"offset",
       [&](Schedule& s) { left(s).dims[0].offset = beyond; },
       {"task 0 \"matmul\": left: stride 1 and offset 72057594037927937 lead beyond 2^56"}},
      {"stride",
       [&](Schedule& s) { left(s).dims[0].stride = least; },
       {"task 0 \"matmul\": left: stride -9223372036854775808 and offset 0 lead beyond 2^56"}},
      {"stride times index",
       [&](Schedule& s) {
         left(s).dims[0] = {Affine{std::int64_t{1} << 30}, std::int64_t{1} << 30, 0, 1};
       },
       {"task 0 \"matmul\": left: stride 1073741824 and offset 0 lead beyond 2^56"}},
      {"constant",
       [&](Schedule& s) { left(s).dims[0].index = Affine{-2 * beyond}; },
       {"task 0 \"matmul\": left: an index beyond 2^56 or a negative modulus"}},
      {"coefficient",
       [&](Schedule& s) {
         left(s).dims[0].index = Affine{{{s.mesh.whole(0), beyond}}};
       },
       {"task 0 \"matmul\": left: an index beyond 2^56 or a negative modulus"}},
      {"modulus",
       [&](Schedule& s) {
         left(s).dims[0].index = Affine{{}, 0, -4};
       },
       {"task 0 \"matmul\": left: an index beyond 2^56 or a negative modulus"}},
      {"view",
       [&](Schedule& s) {
         left(s).dims[0].index = own({1, 2, 2});
       },
       {"task 0 \"matmul\": left: axis 1 with stride 2 and size 2 is no view of the mesh row=4,col=2"}},
      {"view of no axis",
       [&](Schedule& s) {
         left(s).dims[0].index = own({-1, 1, 2});
       },
       {"task 0 \"matmul\": left: axis -1 with stride 1 and size 2 is no view of the mesh row=4,col=2"}},
      {"view of size 0",
       [&](Schedule& s) {
         left(s).dims[0].index = own({0, 1, 0});
       },
       {"task 0 \"matmul\": left: axis 0 with stride 1 and size 0 is no view of the mesh row=4,col=2"}},
      {"view that overflows",
       [&](Schedule& s) {
         left(s).dims[0].index = own({0, std::numeric_limits<int>::max(), std::numeric_limits<int>::max()}, 0, false);
       },
       {"task 0 \"matmul\": left: axis 0 with stride 2147483647 and size 2147483647 is no view of the mesh row=4,col=2"}},
  });
}

TEST(Shapes, CoefficientsAreBoundedEvenWhereTheAxisHasOneDevice) {
  // A view of size 1 always has coordinate 0, but whoever prints or negates the number still meets it.
  expect_each({{"least",
                [](Schedule& s) {
                  op<Matmul>(s, matmul_task).left.dims[0].index = Affine{{{AxisView{0, 1, 1}, least}}};
                },
                {"task 0 \"matmul\": left: an index beyond 2^56 or a negative modulus"}}});
}

TEST(Shapes, Matmuls) {
  expect_each({
      {"contraction",
       [](Schedule& s) { op<Matmul>(s, matmul_task).right.dims[0].length = 5; },
       {"task 0 \"matmul\": the contraction is 6 on the left and 5 on the right"}},
      {"rows", [](Schedule& s) { op<Matmul>(s, matmul_task).out.dims[0].length = 3; }, {"task 0 \"matmul\": the product is 4x8, out is 3x8"}},
      {"columns", [](Schedule& s) { op<Matmul>(s, matmul_task).out.dims[1].length = 7; }, {"task 0 \"matmul\": the product is 4x8, out is 4x7"}},
      {"transposed left",
       [](Schedule& s) { op<Matmul>(s, matmul_task).transpose_left = true; },
       {"task 0 \"matmul\": the contraction is 4 on the left and 6 on the right", "task 0 \"matmul\": the product is 6x8, out is 4x8"}},
      {"transposed right",
       [](Schedule& s) { op<Matmul>(s, matmul_task).transpose_right = true; },
       {"task 0 \"matmul\": the contraction is 6 on the left and 8 on the right", "task 0 \"matmul\": the product is 4x6, out is 4x8"}},
      {"split",
       [](Schedule& s) { op<Matmul>(s, matmul_task).left_split = 2; },
       {"task 0 \"matmul\": the contraction is 1 on the left and 6 on the right", "task 0 \"matmul\": the product is 24x8, out is 4x8"}},
      {"dtypes", [](Schedule& s) { buffer(s, W).dtype = DType::bf16; }, {"task 0 \"matmul\": left is f32, right is bf16, out is f32"}},
  });
  Schedule split = good();
  op<Matmul>(split, matmul_task).out_split = 3;
  EXPECT_EQ(to_text(check_shapes(split).front()), "task 0 \"matmul\": out: cannot split 2 dimensions after 3");
}

TEST(Shapes, Locals) {
  expect_each({
      {"reads", [](Schedule& s) { op<Local>(s, copy_task).reads.clear(); }, {"task 1 \"copy\": copy takes 1 reads and 1 writes, found 0 and 1"}},
      {"kind",
       [](Schedule& s) { op<Local>(s, copy_task).kind = LocalKind::add; },
       {"task 1 \"copy\": add takes 2 reads and 1 writes, found 1 and 1"}},
      {"elements",
       [](Schedule& s) { op<Local>(s, copy_task).reads[0].dims[0].length = 3; },
       {"task 1 \"copy\": the read region has 3 elements, the written region has 4"}},
      {"second read",
       [](Schedule& s) { op<Local>(s, add_task).reads[1].dims[0].length = 3; },
       {"task 2 \"add\": the read region has 3 elements, the written region has 4"}},
      {"dtype",
       [](Schedule& s) { op<Local>(s, copy_task).reads[0].buffer = BufferId{half}; },
       {"task 1 \"copy\": the read region is bf16, the written region is f32"}},
      {"launch with data",
       [](Schedule& s) { op<Local>(s, launch_task).reads = {part(BufferId{a}, 0, 1)}; },
       {"task 8 \"launch\": launch takes 0 reads and 0 writes, found 1 and 0"}},
      {"launch of nothing",
       [](Schedule& s) { task(s, launch_task).origin.reset(); },
       {"task 8 \"launch\": a launch starts a Collective, so it needs its origin"}},
  });
}

TEST(Shapes, Origins) {
  expect_each({
      {"axis",
       [](Schedule& s) {
         task(s, launch_task).origin->axis = {5, 1, 1};
       },
       {"task 8 \"launch\": origin: axis 5 with stride 1 and size 1 is no view of the mesh row=4,col=2"}},
  });
}

TEST(Shapes, Transfers) {
  expect_each({
      {"elements",
       [](Schedule& s) { op<Shift>(s, shift_task).source.dims[0].length = 3; },
       {"task 3 \"shift\": the source has 3 elements, the target has 4"}},
      {"dtype",
       [](Schedule& s) { op<Shift>(s, shift_task).target.buffer = BufferId{half}; },
       {"task 3 \"shift\": the source is f32, the target is bf16"}},
      {"own axis",
       [](Schedule& s) { op<Shift>(s, shift_task).by = own(s.mesh.whole(0)); },
       {"task 3 \"shift\": the distance of a shift may depend on the other axes only"}},
      {"own axis by a factor",
       [](Schedule& s) {
         op<Shift>(s, shift_task).by = own(s.mesh.factor(0, {2, 2}, 0));
       },
       {"task 3 \"shift\": the distance of a shift may depend on the other axes only"}},
      {"axis",
       [](Schedule& s) {
         op<Shift>(s, shift_task).axis = {0, 3, 2};
       },
       {"task 3 \"shift\": axis: axis 0 with stride 3 and size 2 is no view of the mesh row=4,col=2"}},
      {"by", [](Schedule& s) { op<Shift>(s, shift_task).by = Affine{most}; }, {"task 3 \"shift\": by: an index beyond 2^56 or a negative modulus"}},
      {"route order",
       [](Schedule& s) {
         op<Shift>(s, shift_task).route_order = {0, 2};
       },
       {"task 3 \"shift\": the route order is no permutation of the physical dimensions"}},
      {"route order twice",
       [](Schedule& s) {
         op<Send>(s, send_task).route_order = {1, 1};
       },
       {"task 4 \"send\": the route order is no permutation of the physical dimensions"}},
      {"peer",
       [](Schedule& s) { op<Send>(s, send_task).to.pop_back(); },
       {"task 4 \"send\": expected the peer's coordinate on each of 2 mesh axes, found 1"}},
      {"peer's value",
       [](Schedule& s) { op<Recv>(s, recv_task).from[0].constant = most; },
       {"task 5 \"recv\": peer: an index beyond 2^56 or a negative modulus"}},
      {"target",
       [](Schedule& s) { op<Recv>(s, recv_task).target.dims[0].length = 17; },
       {"task 5 \"recv\": target: dimension 0 of buffer \"b\" has 16 elements, the range takes 17"}},
  });
}

TEST(Shapes, Collectives) {
  expect_each({
      {"all-gather's count",
       [](Schedule& s) { op<Collective>(s, gather_task).input.dims[0].length = 3; },
       {"task 6 \"gather\": all-gather over 4 devices: the input has 3 elements, the output 16"}},
      {"reduce-scatter's count",
       [](Schedule& s) { op<Collective>(s, scatter_task).output.dims[0].length = 4; },
       {"task 7 \"scatter\": reduce-scatter over 8 devices: the input has 16 elements, the output 4"}},
      {"all-reduce keeps its size",
       [](Schedule& s) { op<Collective>(s, gather_task).kind = CollectiveKind::all_reduce; },
       {"task 6 \"gather\": all-reduce over 4 devices: the input has 4 elements, the output 16"}},
      {"dim",
       [](Schedule& s) { op<Collective>(s, gather_task).dim = 1; },
       {"task 6 \"gather\": dimension 1 of the output does not divide into 4 blocks"}},
      {"blocks",
       [](Schedule& s) {
         op<Collective>(s, scatter_task) = {
             CollectiveKind::reduce_scatter, {s.mesh.whole(0)}, {BufferId{X}, {all(4), all(6)}}, part(BufferId{b}, 0, 6), 1};
       },
       {"task 7 \"scatter\": dimension 1 of the input does not divide into 4 blocks"}},
      {"an axis twice",
       [](Schedule& s) {
         op<Collective>(s, gather_task).axes = {s.mesh.factor(0, {2, 2}, 0), s.mesh.factor(0, {2, 2}, 1)};
       },
       {"task 6 \"gather\": mesh axis row/1:2 is named twice"}},
      {"no axis",
       [](Schedule& s) {
         op<Collective>(s, gather_task).axes.clear();
         op<Collective>(s, gather_task).output.dims[0].length = 4;
       },
       {"task 6 \"gather\": a collective needs at least one mesh axis"}},
      {"dtype",
       [](Schedule& s) { op<Collective>(s, gather_task).input.buffer = BufferId{half}; },
       {"task 6 \"gather\": the input is bf16, the output is f32"}},
      {"root", [](Schedule& s) { op<Collective>(s, gather_task).root = 4; }, {"task 6 \"gather\": root 4 is not among 4 devices"}},
      {"negative root", [](Schedule& s) { op<Collective>(s, gather_task).root = -1; }, {"task 6 \"gather\": root -1 is not among 4 devices"}},
      {"guard",
       [](Schedule& s) {
         task(s, gather_task).where = {{own(s.mesh.whole(1)), 0, 1}};
       },
       {"task 6 \"gather\": a Collective takes no guard: all devices along its axes take part"}},
  });
}

TEST(Shapes, Edges) {
  const std::string earlier = "expected an earlier task of the same program";
  expect_each({
      {"to itself",
       [](Schedule& s) { task(s, copy_task).after = {after(TaskId{copy_task})}; },
       {"task 1 \"copy\": an edge leads to task 1; " + earlier}},
      {"to a later task",
       [](Schedule& s) { task(s, copy_task).after = {after(TaskId{5})}; },
       {"task 1 \"copy\": an edge leads to task 5; " + earlier}},
      {"to no task", [](Schedule& s) { task(s, copy_task).after = {after(TaskId{-1})}; }, {"task 1 \"copy\": an edge leads to task -1; " + earlier}},
      {"half of a work",
       [](Schedule& s) { task(s, recv_task).after = {after(TaskId{copy_task}, Half::first)}; },
       {"task 5 \"recv\": an edge waits for a half of task 1 \"copy\", which does not have it"}},
      {"what a send receives",
       [](Schedule& s) { task(s, recv_task).after = {after(TaskId{send_task}, Half::second)}; },
       {"task 5 \"recv\": an edge waits for a half of task 4 \"send\", which does not have it"}},
      {"what a receive sends",
       [](Schedule& s) { task(s, gather_task).after = {after(TaskId{recv_task}, Half::first)}; },
       {"task 6 \"gather\": an edge waits for a half of task 5 \"recv\", which does not have it"}},
      {"gating a half of a work",
       [](Schedule& s) { task(s, add_task).after = {after(TaskId{copy_task}, Half::both, Half::first)}; },
       {"task 2 \"add\": an edge gates a half that the task does not have"}},
      {"gating a send's receive",
       [](Schedule& s) { task(s, send_task).after = {after(TaskId{copy_task}, Half::both, Half::second)}; },
       {"task 4 \"send\": an edge gates a half that the task does not have"}},
  });
  for (const Half done : {Half::both, Half::first, Half::second})
    for (const Half gates : {Half::both, Half::first, Half::second}) {
      Schedule schedule = good();
      task(schedule, gather_task).op = op<Shift>(schedule, shift_task);
      task(schedule, gather_task).after = {after(TaskId{shift_task}, done, gates)};
      EXPECT_THAT(check_shapes(schedule), IsEmpty()) << "a shift has both halves";
    }
}

TEST(Shapes, Guards) {
  expect_each({{"value",
                [](Schedule& s) {
                  task(s, copy_task).where = {{Affine{{}, 0, -1}, 0, 1}};
                },
                {"task 1 \"copy\": where: an index beyond 2^56 or a negative modulus"}}});
  Schedule schedule = good();
  task(schedule, copy_task).where = {{Affine{0}, least, most}};
  EXPECT_THAT(check_shapes(schedule), IsEmpty()) << "bounds may be anything";
}

TEST(Shapes, Computes) {
  expect_each({
      {"no product",
       [](Schedule& s) { std::get<Product>(s.computes).k = 0; },
       {"computes: the extents of a product must be positive, found m=4, n=8, k=0"}},
      {"no collective",
       [](Schedule& s) {
         s.computes = Collective{CollectiveKind::all_gather, {s.mesh.whole(0)}, part(BufferId{a}, 0, 3), part(BufferId{c}, 0, 16), 0};
       },
       {"computes: task 0 \"computes\": all-gather over 4 devices: the input has 3 elements, the output 16"}},
      {"nothing to compute it on",
       [](Schedule& s) {
         s.programs.clear();
         s.computes = Collective{};
       },
       {"computes: a collective needs a program"}},
  });
}

TEST(Shapes, ProblemsOfLaterProgramsAreReportedToo) {
  Schedule schedule = good();
  op<Local>(schedule, copy_task).reads.clear();
  schedule.programs[0].devices = {{{0, 4}}};
  Program second{{{{4, 8}}}, {schedule.programs[0].buffers[a]}, {}};
  second.tasks.push_back({"second", copy(part(BufferId{0}, 0, 17), part(BufferId{0}, 0, 17)), {}, {}, {}});
  schedule.programs.push_back(second);
  std::vector<std::string> messages;
  for (const Diagnostic& problem : check_shapes(schedule)) messages.push_back(to_text(problem));
  EXPECT_THAT(messages, ::testing::ElementsAre("program 0 task 1 \"copy\": copy takes 1 reads and 1 writes, found 0 and 1",
                                               "program 1 task 0 \"second\": read: dimension 0 of buffer \"a\" has 16 elements, the range takes 17"));
}

TEST(Shapes, HostileNumbersNeverOverflow) {
  // 2^24 devices on one axis, 2^50 elements on each: products of these do not fit 64 bits. (The sanitized build is the witness.)
  Writer w{std::vector<MeshAxis>{{"x", 1 << 24, true}}};
  const BufferId huge = w.scratch("huge", {std::int64_t{1} << 50});
  const auto gather = [&](std::vector<AxisView> axes) {
    return Collective{CollectiveKind::all_gather, std::move(axes), part(huge, 0, std::int64_t{1} << 50), part(huge, 0, std::int64_t{1} << 50), 0};
  };
  w.add("gather", gather({w.axis(0)}));
  w.add("gather thrice", gather({w.axis(0), w.axis(0), w.axis(0)}));
  EXPECT_EQ(check_shapes(w.schedule).size(), 2u) << to_text(check_shapes(w.schedule));
}

}  // namespace
}  // namespace podsim
