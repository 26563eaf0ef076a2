#include "sim/model/core_share.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/table/testing.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::copy;
using testing::part;
using testing::plain_machine;
using testing::shift;
using testing::small_system;
using testing::SmallSystem;
using testing::Writer;

constexpr double ns = 1e-9;

/// Links of 4 GB/s (1 ns per element) and 100 ns; a Local on the core takes 1 ns per element too.
Machine sharing_machine(double share) {
  Machine machine = plain_machine();
  machine.link.fill({BytesPerSecond{4e9}, Seconds{100 * ns}});
  machine.software.core_share.fill(share);
  return machine;
}

/// "place:nanoseconds" of each piece of device 0.
std::vector<std::string> pieces_of(const SmallSystem& pod, const Schedule& schedule, std::size_t local = 0) {
  const auto model = testing::model_of(pod, schedule);
  EXPECT_TRUE(model) << to_text(model.error());
  std::vector<std::string> result;
  if (!model || model->core_shares.empty()) return result;
  for (const CoreShares::Piece& piece : model->core_shares[0].pieces)
    result.push_back(std::to_string(piece.place) + ":" + std::to_string(std::llround(piece.time[local].count() / ns)));
  return result;
}

Schedule gather_between_works(const SmallSystem& pod, int works, bool last_waits) {
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {4000}), b = w.scratch("b", {4000});
  const AxisView x = w.axis(0);
  w.add("launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma});
  w.add("plus", shift(x, 1, part(a, 0, 300), part(a, 300, 300)), {after(TaskId{0})});
  w.add("minus", shift(x, -1, part(a, 600, 300), part(a, 900, 300)), {after(TaskId{0})});
  const TaskId second = w.add("plus again", shift(x, 1, part(a, 1200, 100), part(a, 1300, 100)), {after(TaskId{1})});
  for (int t = 0; t < 4; ++t) w.task(TaskId{t}).origin = Origin{0, CollectiveKind::all_gather, x, Bytes{1200}};
  for (int i = 0; i < works; ++i) w.add("work", copy(part(b, 0, 50), part(b, 2000, 50)));
  if (last_waits) w.add("use", copy(part(b, 100, 50), part(b, 3000, 50)), {after(second)});
  return w.schedule;
}

TEST(CoreShare, IsOfTheCollectivesOwnDurationNotOfTheSumOverItsDirections) {
  const SmallSystem pod = small_system(sharing_machine(0.5), {4});
  // 400 ns and 200 ns in one direction, 400 ns in the other: the Collective takes 600 ns.
  EXPECT_THAT(pieces_of(pod, gather_between_works(pod, 0, false)), ::testing::ElementsAre("0:300"));
}

TEST(CoreShare, OperationsThatDifferInTheirEdgesOrSizesLastAsLongAsAlone) {
  struct Shape {
    bool chained = false;
    std::int64_t second = 100;
  };
  const SmallSystem pod = small_system(sharing_machine(1), {4});
  const auto pieces = [&](const std::vector<Shape>& shapes) {
    Writer w{pod.mesh};
    const BufferId a = w.scratch("a", {8000});
    const AxisView x = w.axis(0);
    for (int c = 0; const Shape& shape : shapes) {
      const TaskId launch = w.add("launch", Local{LocalKind::launch, {}, {}, 1, Unit::dma});
      const TaskId plus = w.add("plus", shift(x, 1, part(a, 0, 300), part(a, 300, 300)), {after(launch)});
      const TaskId again = w.add("again", shift(x, 1, part(a, 1200, shape.second), part(a, 2400, shape.second)), {after(shape.chained ? plus : launch)});
      for (const TaskId task : {launch, plus, again}) w.task(task).origin = Origin{c, CollectiveKind::all_gather, x, Bytes{1200}};
      ++c;
    }
    std::vector<std::string> times;
    for (const std::string& piece : pieces_of(pod, w.schedule)) times.push_back(piece.substr(piece.find(':') + 1));
    return times;
  };
  const std::vector<Shape> shapes{{false, 100}, {true, 100}, {true, 200}, {false, 900}, {true, 100}, {false, 100}};
  std::vector<std::string> alone;
  for (const Shape& shape : shapes) {
    ASSERT_EQ(pieces({shape}).size(), 1U);
    alone.push_back(pieces({shape}).front());
  }
  EXPECT_EQ(pieces(shapes), alone);
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_NE(alone[1], alone[2]);
}

TEST(CoreShare, ComesInEqualPiecesBehindTheWorkThatTheCollectiveGoesOnBeside) {
  const SmallSystem pod = small_system(sharing_machine(0.5), {4});
  EXPECT_THAT(pieces_of(pod, gather_between_works(pod, 2, true)), ::testing::ElementsAre("0:100", "5:100", "6:100"));
}

TEST(CoreShare, StopsAtWorkThatWaitsForTheCollective) {
  const SmallSystem pod = small_system(sharing_machine(0.5), {4});
  EXPECT_THAT(pieces_of(pod, gather_between_works(pod, 0, true)), ::testing::ElementsAre("0:300"));
}

TEST(CoreShare, DoesNotReachBeyondTheTimeThatTheCollectiveTakes) {
  Machine machine = sharing_machine(0.5);
  machine.software.launch[static_cast<std::size_t>(CostKind::local)] = Seconds{250 * ns};
  const SmallSystem pod = small_system(machine, {4});
  // Works of 300 ns: two fill the 600 ns.
  EXPECT_THAT(pieces_of(pod, gather_between_works(pod, 9, false)), ::testing::ElementsAre("0:100", "5:100", "6:100"));
}

TEST(CoreShare, TakesACallWrittenOutForOneCoreTask) {
  const SmallSystem pod = small_system(sharing_machine(0.5), {4});
  Schedule schedule = gather_between_works(pod, 6, false);  // works 4 to 9
  std::vector<Task>& tasks = schedule.programs[0].tasks;
  tasks[4].op = Local{LocalKind::begin_call, {}, {}};
  tasks[7].op = Local{LocalKind::end_call, {}, {}};
  EXPECT_THAT(pieces_of(pod, schedule), ::testing::ElementsAre("0:75", "8:75", "9:75", "10:75")) << "behind its end, and behind two works of 50 ns";
}

TEST(CoreShare, OfAnOperationInACallStaysInTheCall) {
  const SmallSystem pod = small_system(sharing_machine(0.5), {4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {4000});
  w.add("before", copy(part(a, 0, 50), part(a, 50, 50)));
  const TaskId begin = w.add("begin", Local{LocalKind::begin_call, {}, {}});
  const TaskId move = w.add("move", shift(w.axis(0), 1, part(a, 100, 300), part(a, 400, 300)), {after(begin)});
  const TaskId work = w.add("work", copy(part(a, 700, 50), part(a, 750, 50)), {after(begin)});
  w.add("end", Local{LocalKind::end_call, {}, {}}, {after(move), after(work)});
  w.add("behind", copy(part(a, 0, 50), part(a, 50, 50)));
  EXPECT_THAT(pieces_of(pod, w.schedule), ::testing::ElementsAre("2:100", "4:100"));
}

TEST(CoreShare, OfATransferIsPerDeviceWhereRoutesDiffer) {
  const SmallSystem pod = small_system(sharing_machine(0.25), {4}, false);
  Writer w{*Mesh::make({{"x", 4, true}})};  // from the end back to the start: three hops
  const BufferId a = w.scratch("a", {100});
  w.add("ring", shift(w.axis(0), 1, part(a, 0, 40), part(a, 40, 40)));
  EXPECT_THAT(pieces_of(pod, w.schedule, 1), ::testing::ElementsAre("0:35"));
  EXPECT_THAT(pieces_of(pod, w.schedule, 3), ::testing::ElementsAre("0:85"));
}

TEST(CoreShare, IsNoneOfWorkOnTheCoreAndNoneWithoutAShare) {
  const SmallSystem pod = small_system(sharing_machine(0.5), {4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {100});
  w.add("work", copy(part(a, 0, 50), part(a, 50, 50)));
  EXPECT_TRUE(pieces_of(pod, w.schedule).empty());
  const SmallSystem free = small_system(sharing_machine(0), {4});
  EXPECT_TRUE(pieces_of(free, gather_between_works(free, 2, true)).empty());
}

TEST(CoreShare, StandsBehindTheTaskBeforeWhereOneIsAbsent) {
  const SmallSystem pod = small_system(sharing_machine(0.5), {2});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {400});
  const AxisView x = w.axis(0);
  w.add("first", copy(part(a, 0, 10), part(a, 10, 10)), {}, between(x, 0, 1));
  w.add("move", shift(x, 1, part(a, 100, 100), part(a, 200, 100)));
  const auto model = testing::model_of(pod, w.schedule);
  ASSERT_TRUE(model);
  EXPECT_NEAR(model->shares_behind(0, 0, 0).count(), 100 * ns, 1e-18);
  EXPECT_EQ(model->shares_behind(0, 0, 1), Seconds{});
  EXPECT_EQ(model->shares_first(0, 0), Seconds{});
  EXPECT_NEAR(model->shares_first(0, 1).count(), 100 * ns, 1e-18);
}

}  // namespace
}  // namespace podsim
