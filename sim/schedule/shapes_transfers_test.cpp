// What check_shapes() says of transfers, collectives, edges and whole schedules, word for word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/test_shapes.hpp"

namespace podsim {
namespace {

using ::testing::IsEmpty;
using namespace test_shapes;  // NOLINT(google-build-using-namespace): the names of its tasks and buffers
using testing::after;
using testing::copy;
using testing::part;
using testing::Writer;

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
      {"by dimension of an axis that is not folded",
       [](Schedule& s) { op<Shift>(s, shift_task).by_dimension = true, op<Shift>(s, shift_task).by = 1; },
       {"task 3 \"shift\": by dimension goes the whole of a folded axis, found row"}},
      {"by dimension as far as the axis",
       [](Schedule& s) {
         s.mesh = *Mesh::make({{"row", 4, true, {{2, true}, {2, true}}}, {"col", 2}});
         op<Shift>(s, shift_task).by_dimension = true;
         op<Shift>(s, shift_task).by = 4;
       },
       {"task 3 \"shift\": expected a constant distance nearer to 0 than 4 to go by dimension"}},
      {"by dimension as a coordinate says",
       [](Schedule& s) {
         s.mesh = *Mesh::make({{"row", 4, true, {{2, true}, {2, true}}}, {"col", 2}});
         op<Shift>(s, shift_task).by_dimension = true;
         op<Shift>(s, shift_task).by = own(s.mesh.whole(1));
       },
       {"task 3 \"shift\": expected a constant distance nearer to 0 than 4 to go by dimension"}},
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
       {"task 6 \"gather\": all-gather: dimension 1 of the output does not divide into 4 blocks"}},
      {"blocks",
       [](Schedule& s) {
         op<Collective>(s, scatter_task) = {
             CollectiveKind::reduce_scatter, {s.mesh.whole(0)}, {BufferId{X}, {all(4), all(6)}}, part(BufferId{b}, 0, 6), 1};
       },
       {"task 7 \"scatter\": reduce-scatter: dimension 1 of the input does not divide into 4 blocks"}},
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
         task(s, gather_task).where = {{own(s.mesh.whole(0)), 0, 1}};
       },
       {"task 6 \"gather\": the guard of a Collective mentions its own mesh axis row; expected one that holds for all devices along it or for none"}},
      {"guard of groups", [](Schedule& s) { task(s, gather_task).where = {{own(s.mesh.whole(1)), 0, 1}}; }, {}},
  });
}

/// The gather as a permute of equal counts along row (4 devices).
void permute(Schedule& schedule, std::vector<Collective::Pair> pairs) {
  Collective& collective = op<Collective>(schedule, gather_task);
  collective.kind = CollectiveKind::permute;
  collective.output.dims[0].length = 4;
  collective.pairs = std::move(pairs);
}

TEST(Shapes, PairsOfAPermute) {
  expect_each({
      {"good",
       [](Schedule& s) {
         permute(s, {{0, 1}, {1, 0}, {3, 3}});
       },
       {}},
      {"beyond",
       [](Schedule& s) {
         permute(s, {{0, 4}});
       },
       {"task 6 \"gather\": the pair 0>4 is not among 4 devices"}},
      {"negative",
       [](Schedule& s) {
         permute(s, {{-1, 0}});
       },
       {"task 6 \"gather\": the pair -1>0 is not among 4 devices"}},
      {"sends twice",
       [](Schedule& s) {
         permute(s, {{2, 0}, {2, 1}});
       },
       {"task 6 \"gather\": device 2 sends twice"}},
      {"receives twice",
       [](Schedule& s) {
         permute(s, {{0, 3}, {1, 3}});
       },
       {"task 6 \"gather\": device 3 receives twice"}},
      {"of another kind",
       [](Schedule& s) {
         op<Collective>(s, gather_task).pairs = {{0, 1}};
       },
       {"task 6 \"gather\": all-gather takes no pairs"}},
  });
}

TEST(Shapes, BlocksOfAnAllToAll) {
  const auto exchange = [](Schedule& s, int from, int to) {
    const Region x{BufferId{X}, {all(4), all(6)}};
    Collective collective = op<Collective>(s, gather_task);
    collective.kind = CollectiveKind::all_to_all;
    collective.input = collective.output = x;
    collective.split_dim = from, collective.dim = to;
    op<Collective>(s, gather_task) = collective;
  };
  expect_each({
      {"good", [&](Schedule& s) { exchange(s, 0, 0); }, {}},
      {"from", [&](Schedule& s) { exchange(s, 1, 0); }, {"task 6 \"gather\": all-to-all: dimension 1 of the input does not divide into 4 blocks"}},
      {"to", [&](Schedule& s) { exchange(s, 0, 2); }, {"task 6 \"gather\": all-to-all: dimension 2 of the output does not divide into 4 blocks"}},
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
       [](Schedule& s) { task(s, recv_task).after = {after(TaskId{copy_task}, Half::send)}; },
       {"task 5 \"recv\": an edge waits for a half of task 1 \"copy\", which does not have it"}},
      {"what a send receives",
       [](Schedule& s) { task(s, recv_task).after = {after(TaskId{send_task}, Half::receive)}; },
       {"task 5 \"recv\": an edge waits for a half of task 4 \"send\", which does not have it"}},
      {"what a receive sends",
       [](Schedule& s) { task(s, gather_task).after = {after(TaskId{recv_task}, Half::send)}; },
       {"task 6 \"gather\": an edge waits for a half of task 5 \"recv\", which does not have it"}},
      {"gating a half of a work",
       [](Schedule& s) { task(s, add_task).after = {after(TaskId{copy_task}, Half::both, Half::send)}; },
       {"task 2 \"add\": an edge gates a half that the task does not have"}},
      {"gating a send's receive",
       [](Schedule& s) { task(s, send_task).after = {after(TaskId{copy_task}, Half::both, Half::receive)}; },
       {"task 4 \"send\": an edge gates a half that the task does not have"}},
  });
  for (const Half done : {Half::both, Half::send, Half::receive})
    for (const Half gates : {Half::both, Half::send, Half::receive}) {
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
       [](Schedule& s) {
         std::get<Products>(s.computes).push_back({"Y", "X", "W", 4, 8, 0, false, false});
       },
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
