// What check_shapes() says of devices, buffers, regions and work, word for word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/test_shapes.hpp"

namespace podsim {
namespace {

using ::testing::IsEmpty;
using namespace test_shapes;  // NOLINT(google-build-using-namespace): the names of its tasks and buffers
using testing::copy;
using testing::part;
using testing::Writer;

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
       {"buffer \"a\": extents must be positive and their product below 2^53, found 4x-4"}},
      {"a product that overflows",
       [](Schedule& s) {
         buffer(s, a).extents = {std::int64_t{1} << 40, std::int64_t{1} << 40};
       },
       {"buffer \"a\": extents must be positive and their product below 2^53, found 1099511627776x1099511627776 = 1.209e+24"}},
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

TEST(Shapes, OnlyCopiesTouchTheHost) {
  const auto on_host = [](Schedule& s, int position) { buffer(s, position).on_host = true; };
  const std::string said = " is on the host: expected only to-host to write it and from-host to read it";
  expect_each({
      {"a copy to and from it",
       [&](Schedule& s) {
         task(s, add_task).op = Local{LocalKind::join, {}, {}, 1, Unit::dma}, task(s, shift_task).op = Local{LocalKind::join, {}, {}, 1, Unit::dma};
         task(s, shift_task).after.clear();
         s.programs[0].tasks.resize(shift_task + 1);
         on_host(s, b);
         op<Local>(s, copy_task).kind = LocalKind::to_host;
       },
       {}},
      {"another Local writes it",
       [&](Schedule& s) {
         s.programs[0].tasks.resize(copy_task + 1);
         on_host(s, b);
       },
       {"task 1 \"copy\": buffer \"b\"" + said}},
      {"to-host reads it",
       [&](Schedule& s) {
         s.programs[0].tasks.resize(copy_task + 1);
         on_host(s, a);
         op<Local>(s, copy_task).kind = LocalKind::to_host;
       },
       {"task 1 \"copy\": buffer \"a\"" + said}},
      {"from-host reads it",
       [&](Schedule& s) {
         s.programs[0].tasks.resize(copy_task + 1);
         on_host(s, a);
         op<Local>(s, copy_task).kind = LocalKind::from_host;
       },
       {}},
      {"a product reads it",
       [&](Schedule& s) {
         s.programs[0].tasks.resize(matmul_task + 1);
         on_host(s, X);
       },
       {"task 0 \"matmul\": buffer \"X\"" + said}},
      {"transfers use it",
       [&](Schedule& s) { on_host(s, c); },
       {"task 6 \"gather\": buffer \"c\"" + said, "task 7 \"scatter\": buffer \"c\"" + said}},
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
      {"moved coordinate",
       [&](Schedule& s) { left(s).dims[0].index = own(s.mesh.whole(0), beyond); },
       {"task 0 \"matmul\": left: a coordinate moved by 72057594037927937"}},
      {"moved coordinate back",
       [&](Schedule& s) { left(s).dims[0].index = own(s.mesh.whole(0), least); },
       {"task 0 \"matmul\": left: a coordinate moved by -9223372036854775808"}},
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
      {"result", [](Schedule& s) { buffer(s, X).dtype = buffer(s, W).dtype = DType::s8; }, {"task 0 \"matmul\": left is s8, right is s8, out is f32"}},
      {"passes", [](Schedule& s) { std::get<Matmul>(s.programs[0].tasks[0].op).float32_passes = 7; }, {"task 0 \"matmul\": a float32 product of 7 passes; expected up to 6"}},
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

}  // namespace
}  // namespace podsim
