// What a model keeps once for many devices. (Costs of each activity: costed_graph_test.cpp.)
#include "sim/model/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/table/testing.hpp"
#include "sim/model/fold.hpp"
#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using testing::part;
using testing::plain_machine;
using testing::shift;
using testing::small_system;
using testing::SmallSystem;
using testing::Writer;

TEST(Model, TransfersOfTheSameDevicesShareTheirRouting) {
  const SmallSystem pod = small_system(plain_machine(), {4, 4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {100});
  for (int i = 0; i < 5; ++i) w.add("col", shift(w.axis(1), 1, part(a, i, 1), part(a, 50 + i, 1)));
  w.add("row", shift(w.axis(0), 1, part(a, 0, 1), part(a, 60, 1)));
  Shift turned = shift(w.axis(0), 1, part(a, 0, 1), part(a, 70, 1));
  turned.route_order = {1, 0};
  w.add("row, another order of dimensions", turned);
  const auto model = testing::model_of(pod, w.schedule);
  EXPECT_EQ(model->routings.size(), 3U);
  EXPECT_EQ(model->paths.size(), 1U + 3 * 16) << "and the empty one";
  EXPECT_EQ(model->costs[0][0].routing, model->costs[0][4].routing);
  EXPECT_FALSE(model->folded());
}

TEST(Model, AntipodalShiftsOfBothSignsHaveRoutesOfTheirOwn) {
  const SmallSystem pod = small_system(plain_machine(), {4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {100});
  w.add("plus", shift(w.axis(0), 2, part(a, 0, 1), part(a, 50, 1)));
  w.add("minus", shift(w.axis(0), -2, part(a, 0, 1), part(a, 51, 1)));
  const auto model = testing::model_of(pod, w.schedule);
  const auto links = [&](std::size_t task) {
    std::vector<std::uint32_t> ids;
    for (const PathLink& link : model->links_of(model->path(model->costs[0][task], 0))) ids.push_back(link.link);
    return ids;
  };
  EXPECT_THAT(links(0), ::testing::ElementsAre(0, 2)) << "the + links of chips 0 and 1";
  EXPECT_THAT(links(1), ::testing::ElementsAre(1, 7)) << "the - links of chips 0 and 3";
}

TEST(Model, WhatIsNotWellShapedIsNotCosted) {
  // The cost of attention looks at five dimensions of its result.
  const SmallSystem pod = small_system(plain_machine(), {4});
  for (const LocalKind kind : {LocalKind::attention, LocalKind::attention_grad}) {
    Writer w{pod.mesh};
    const BufferId a = w.scratch("a", {4});
    w.add("t", Local{kind, std::vector<Region>(kind == LocalKind::attention ? 1 : 2, part(a, 0, 4)), {part(a, 0, 4)}});
    const auto model = make_model(w.schedule, pod.machine, pod.grid, pod.placement);
    ASSERT_FALSE(model);
    EXPECT_THAT(to_text(model.error()), ::testing::HasSubstr("qkv has 1 dimensions"));
    EXPECT_FALSE(make_folded_model(w.schedule, pod.machine, pod.grid, pod.placement));
    std::get<Local>(w.task(TaskId{0}).op).writes.clear();
    std::get<Local>(w.task(TaskId{0}).op).reads.clear();
    EXPECT_FALSE(make_model(w.schedule, pod.machine, pod.grid, pod.placement));
    EXPECT_FALSE(make_folded_model(w.schedule, pod.machine, pod.grid, pod.placement));
  }
}

}  // namespace
}  // namespace podsim
