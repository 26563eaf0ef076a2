#include "sim/schedule/program_builder.hpp"

#include <gtest/gtest.h>

namespace podsim {
namespace {

Mesh four() { return *Mesh::make({{"ring", 4, true}}); }
Op nothing() { return Local{LocalKind::join, {}, {}, 1, Unit::dma}; }

TEST(ProgramBuilder, ASectionNamesItsTasksAndStartsAfterTheOneBefore) {
  const Mesh mesh = four();
  ProgramBuilder builder{mesh, every_device(mesh)};
  const TaskId a = builder.add("a", nothing(), Tasks{}), b = builder.add("b", nothing(), Tasks{a});
  builder.begin_section("second: ", builder.last_tasks());
  const Guard at_0{{own(mesh.whole(0)), 0, 1}};
  const TaskId c = builder.add("c", nothing(), Tasks{}), d = builder.add("d", nothing(), Tasks{c}), e = builder.add("e", nothing(), Tasks{c}, at_0);
  EXPECT_EQ(builder.last_tasks(c), (Tasks{d, e}));  // e may be absent, so it hides nothing
  const Program program = std::move(builder).finish();
  EXPECT_EQ(program.tasks[c.index()].label, "second: c");
  EXPECT_EQ(program.tasks[c.index()].after, edges_to({b}));
  EXPECT_EQ(program.tasks[d.index()].after, edges_to({c}));
  EXPECT_EQ(program.tasks[e.index()].after, edges_to({c, b}));
}

TEST(ProgramBuilder, AnExpansionIsRenumberedWhereItIsPut) {
  const Mesh mesh = four();
  ProgramBuilder builder{mesh, every_device(mesh)};
  const Region x = builder.whole(builder.add_buffer(sharded_buffer("X", DType::f32, Role::input, {{8, {mesh.whole(0)}}, {3}})));
  EXPECT_EQ(lengths_of(x), (std::vector<std::int64_t>{2, 3}));
  const Program around = Program{every_device(mesh), {builder.buffer(x.buffer)}, {}};
  const auto piece = [&] {
    ProgramBuilder inner{mesh, around};
    const Region held = inner.scratch("held", {2, 3}, DType::f32);
    EXPECT_EQ(held.buffer, BufferId{1});
    const Edges placed = inner.step("in", Local{LocalKind::alias, {x}, {held}, 1, Unit::dma}, {});
    inner.step("on", Local{LocalKind::scale, {held}, {held}, 2, Unit::dma}, placed);
    return std::move(inner).finish_expansion();
  };
  EXPECT_EQ(ProgramBuilder::count_starts(piece()), 1u);
  const Edges first = builder.append(piece(), 1, {}), second = builder.append(piece(), 1, first);
  EXPECT_EQ(second, edges_to({TaskId{3}}));
  const Program program = std::move(builder).finish();
  ASSERT_EQ(program.buffers.size(), 3u);
  EXPECT_EQ(program.tasks[2].after, edges_to({TaskId{1}}));  // begins when the first is over
  EXPECT_EQ(std::get<Local>(program.tasks[2].op).reads.front().buffer, x.buffer);
  EXPECT_EQ(std::get<Local>(program.tasks[2].op).writes.front().buffer, BufferId{2});
  EXPECT_EQ(program.tasks[3].after, edges_to({TaskId{2}}));
}

}  // namespace
}  // namespace podsim
