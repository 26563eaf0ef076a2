#include "sim/schedule/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::copy;
using testing::part;
using testing::shift;
using testing::Writer;

TEST(ScheduleText, HasEveryOperationOnALine) {
  Writer w{std::vector<MeshAxis>{{"row", 4, true}, {"col", 8, false}}};
  const AxisView row = w.axis(0), col = w.axis(1), half = w.schedule.mesh.factor(1, {2, 4}, 0);
  w.schedule.name = "all of it";
  w.schedule.programs[0].devices = {{{0, 8}, {16, 32}}};
  w.now().buffers = {{"X", {2, 8, 16}, DType::bf16, Role::input, "X", {{row}, {half, row}, {}}},
                     {"Y", {8, 16}, DType::f32, Role::output, "result", {{}, {col}}},
                     {"s", {8, 4}, DType::f32, Role::scratch, {}, {}},
                     {"one", {}, DType::f32, Role::scratch, {}, {}}};
  const BufferId X{0}, Y{1}, s{2}, one{3};
  const Region x{X, {all(2), block(own(half, 0, false), 4), span(3, 1)}}, y{Y, {all(8), span(4, 8)}};
  w.add("multiply", Matmul{{X, {all(2), all(8), all(16)}}, {s, {all(8), all(4)}}, y, 2, 1, 1, false, true, true});
  w.add("plain", Matmul{{s, {all(8), all(4)}}, {s, {all(8), all(4)}}, y, 1, 1, 1, true, false, false}, {after(TaskId{0})});
  w.add("halve", Local{LocalKind::scale, {x}, {x}, 0.5, Unit::core}, {after(TaskId{0}), after(TaskId{1})});
  w.add("sum", Local{LocalKind::add, {{one, {}}, {one, {}}}, {{one, {}}}, 1, Unit::dma});
  w.add("move", Shift{row, Affine{{{col, -2}}, 1}, y, y, Combine::add, {1, 0}}, {after(TaskId{0}, Half::both, Half::receive)},
        {{Affine{{{row, 1}, {col, -1}}, -3}, -2, 5}, {own(col, 0, false), 1, 4}});
  w.add("push", Send{7, {Affine{{{row, 1}}, 2}, Affine{3}}, x, {0, 1}}, {after(TaskId{4}, Half::receive, Half::send)});
  w.add("pull", Recv{-7, {Affine{0}, Affine{{{col, 1}}, -1}}, x, Combine::add}, {after(TaskId{4}, Half::send)});
  w.add("gather", Collective{CollectiveKind::all_gather, {row, col}, {s, {span(0, 2), {Affine{{{row, 3}}}, -2, 9, 1}}}, {s, {all(8), all(4)}}, 1});
  w.add("launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma});
  w.task(TaskId{8}).origin = Origin{3, CollectiveKind::reduce_scatter, half, Bytes{64}};
  w.add("norm", Local{LocalKind::norm_sums, {{s, {all(8), all(4)}}}, {{Y, {span(0, 2), span(0, 4)}}}, 64, Unit::core, true});
  w.add("attend", Local{LocalKind::attention_grad, {x, y}, {y}, 1, Unit::core, true, true});
  EXPECT_EQ(to_text(w.schedule), R"(schedule "all of it" on row=4,col=8
program 0 on devices 0..7 16..31
  buffer X bf16[2,8,16] input of X(row,col/4:2+row,-)
  buffer Y f32[8,16] output of result(-,col)
  buffer s f32[8,4] scratch
  buffer one f32[] scratch
     0 multiply             matmul Y[:,4:12] += X[:,:,:]|2 . s[:,:]^T
     1 plain                matmul Y[:,4:12] = s[:,:]^T . s[:,:] after 0
     2 halve                core scale X[:,(col/4:2)*4:+4,3] -> X[:,(col/4:2)*4:+4,3] factor 0.5 after 0, 1
     3 sum                  dma add one[] one[] -> one[]
     4 move                 shift row by -2*col+1: Y[:,4:12] ->+ Y[:,4:12] route 1,0 after 0 gates receive where -2 <= row-col-3 < 5 and 1 <= col < 4
     5 push                 send channel 7 to row=row+2,col=3: X[:,(col/4:2)*4:+4,3] route 0,1 after 4.received gates send
     6 pull                 recv channel -7 from row=0,col=col-1: ->+ X[:,(col/4:2)*4:+4,3] after 4.sent
     7 gather               all-gather over row+col dim 1: s[0:2,(3*row)*-2+9] -> s[:,:]
     8 launch               dma launch of reduce-scatter 3 on col/4:2
     9 norm                 core norm-sums s[:,:] -> Y[0:2,0:4] factor 64 features-first
    10 attend               core attention-grad X[:,(col/4:2)*4:+4,3] Y[:,4:12] -> Y[:,4:12] features-first causal
)");
}

TEST(ScheduleText, SaysWhichBuffersAreOnTheHost) {
  testing::Writer w{std::vector<MeshAxis>{{"x", 2, true}}};
  w.now().buffers[w.scratch("away", {3}).index()].on_host = true;
  EXPECT_THAT(to_text(w.schedule), ::testing::HasSubstr("buffer away f32[3] scratch on the host\n"));
}

TEST(ScheduleText, SaysWhatItComputes) {
  Writer product{std::vector<MeshAxis>{{"x", 2, true}}};
  product.schedule.computes = Products{{"Y", "X", "W", 4, 8, 6, false, true}, {"dX", "dY", "W", 4, 6, 8, true, false}};
  EXPECT_EQ(to_text(product.schedule),
            "schedule \"test\" on x=2\ncomputes Y[4,8] = X . W^T over 6\ncomputes dX[4,6] = dY^T . W over 8\nprogram 0 on devices 0..1\n");
  Writer gather{std::vector<MeshAxis>{{"x", 2, true}}};
  const BufferId a = gather.scratch("a", {4});
  gather.schedule.computes = Collective{CollectiveKind::all_gather, {gather.axis(0)}, part(a, 0, 2), part(a, 0, 4), 0};
  EXPECT_EQ(to_text(gather.schedule),
            "schedule \"test\" on x=2\nprogram 0 on devices 0..1\n  computes all-gather over x dim 0: a[0:2] -> a[:]\n  buffer a f32[4] scratch\n");
}

TEST(ScheduleText, SaysOfAGraphWhatEachNodeIs) {
  Writer w{std::vector<MeshAxis>{{"x", 2, true}}};
  ReferenceNode a, sum, product;
  a.tensor = "A", a.extents = {4, 2};
  product.kind = ReferenceKind::product, product.operands = {0, 0}, product.extents = {4, 4}, product.transpose_right = true, product.name = "B";
  sum.kind = ReferenceKind::block_collective, sum.operands = {1}, sum.extents = {2, 4};
  sum.collective = {CollectiveKind::all_reduce, {0}, 0, 0, 0, {{{0}}}, {}};
  w.schedule.computes = ReferenceProgram{{a, product, sum}, {{"C", 2}}, ""};
  EXPECT_EQ(to_text(w.schedule), R"(schedule "test" on x=2
computes C = all-reduce(B)
     0 A[4,2] input
     1 B[4,4] product 0 0^T
     2 [2,4] block-collective 1 all-reduce over x dim 0 split 0 shift 0: (x,-) -> (-,-)
  output C is 2
program 0 on devices 0..1
)");
}

TEST(ScheduleText, SaysOfACollectiveWhatItsKindNeeds) {
  Writer w{std::vector<MeshAxis>{{"x", 4, true}}};
  const BufferId a = w.scratch("a", {4});
  const auto text = [&](CollectiveKind kind, std::vector<Collective::Pair> pairs = {}) {
    Collective collective{kind, {w.axis(0)}, part(a, 0, 4), part(a, 0, 4), 1, 2, 3, std::move(pairs)};
    w.now().tasks = {{"c", std::move(collective), {}, {}, {}}};
    const std::string whole = to_text(w.schedule);
    const std::size_t begin = whole.find("over x") + 7, end = whole.find(':', begin);
    return whole.substr(begin, end - begin);
  };
  EXPECT_EQ(text(CollectiveKind::all_gather), "dim 1");
  EXPECT_EQ(text(CollectiveKind::reduce_scatter), "dim 1");
  EXPECT_EQ(text(CollectiveKind::all_reduce), "dim 1");
  EXPECT_EQ(text(CollectiveKind::all_to_all), "from dim 2 to dim 1");
  EXPECT_EQ(text(CollectiveKind::broadcast), "root 3");
  EXPECT_EQ(text(CollectiveKind::reduce), "root 3");
  EXPECT_EQ(text(CollectiveKind::permute, {{0, 1}, {1, 0}}), "0>1 1>0");
}

TEST(ScheduleText, AConstantPlaceIsReducedByItsModulus) {
  Writer w{std::vector<MeshAxis>{{"x", 2, true}}};
  const BufferId a = w.scratch("a", {8});
  const auto text = [&](Range range) { return to_text(w.schedule.mesh, w.now(), {a, {std::move(range)}}); };
  EXPECT_EQ(text({Affine{{}, 5, 3}, 2, 1, 1}), "a[5]");
  EXPECT_EQ(text({Affine{{}, -1, 4}, 2, 0, 2}), "a[6:8]");
  EXPECT_EQ(text({Affine{{}, std::int64_t{1} << 56, 3}, std::int64_t{1} << 40, 0, 1}), "a[1099511627776]") << "and does not overflow before";
}

TEST(ScheduleText, ShowsWhatIsNotWellShaped) {
  Writer w{std::vector<MeshAxis>{{"x", 2, true}}};
  const BufferId a = w.scratch("a", {8});
  w.add("too many ranges", copy({a, {all(8), all(8)}}, {a, {}}));
  w.add("too many axes", Send{0, {Affine{1}, Affine{2}}, part(a, 0, 1), {}});
  EXPECT_EQ(to_text(w.schedule), R"(schedule "test" on x=2
program 0 on devices 0..1
  buffer a f32[8] scratch
     0 too many ranges      core copy a[:,0:8] -> a[]
     1 too many axes        send channel 0 to x=1,?=2: a[0]
)");
}

TEST(ScheduleText, AffineFunctionsReadAsWritten) {
  const Mesh mesh = *Mesh::make({{"row", 4, true}, {"col", 4, true}});
  const AxisView row = mesh.whole(0), col = mesh.whole(1);
  EXPECT_EQ(to_text(mesh, Affine{}), "0");
  EXPECT_EQ(to_text(mesh, Affine{-3}), "-3");
  EXPECT_EQ(to_text(mesh, Affine{{}, 5, 3}), "(5)%3");
  EXPECT_EQ(to_text(mesh, Affine{{{row, -1}, {col, 1}}, -2}), "-row+col-2");
  EXPECT_EQ(to_text(mesh, Affine{{{row, 2}, {col, -4}}, 1, 8}), "(2*row-4*col+1)%8");
  EXPECT_EQ(to_text(mesh, Affine{{{row, -4, -1}, {col, 1, 2}}, 3}), "-4*(row-1)%4+(col+2)%4+3");
}

TEST(ScheduleText, TasksAreNamedByPositionAndLabel) {
  Writer w{std::vector<MeshAxis>{{"x", 2, true}}};
  const BufferId a = w.scratch("a", {8});
  w.add("tab\there", copy(part(a, 0, 1), part(a, 1, 1)));
  EXPECT_EQ(task_name(w.now(), TaskId{0}), "0 \"tab\\there\"");
}

}  // namespace
}  // namespace podsim
