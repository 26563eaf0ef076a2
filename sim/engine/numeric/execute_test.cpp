#include "sim/engine/numeric/execute.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/schedule/testing.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using testing::between;
using testing::copy;
using testing::part;
using testing::ring;
using testing::Writer;

Buffer tensor(std::string name, std::int64_t extent, Role role, std::vector<AxisView> axes, DType dtype = DType::f32) {
  Buffer buffer{name, {extent}, dtype, role, name, {std::move(axes)}};
  return buffer;
}

TEST(Execute, ShardsAreCutFromAndJoinedToWholeTensors) {
  Writer w{ring(2)};
  w.now().buffers = {tensor("X", 2, Role::input, {w.axis(0)}), tensor("Y", 2, Role::output, {w.axis(0)})};
  const Region x = part(BufferId{0}, 0, 2), y = part(BufferId{1}, 0, 2);
  w.add("swap", testing::shift(w.axis(0), 1, x, y));
  const auto outputs = execute(w.schedule, {{"X", {1, 2, 3, 4}}}, {});
  ASSERT_TRUE(outputs) << to_text(outputs.error());
  EXPECT_THAT(outputs->at("Y"), ElementsAre(3, 4, 1, 2));
}

TEST(Execute, WhatNoTaskWritesIsNotANumber) {
  Writer w{ring(2)};
  w.now().buffers = {tensor("X", 1, Role::input, {w.axis(0)}), tensor("Y", 1, Role::output, {w.axis(0)})};
  w.add("copy", copy(part(BufferId{0}, 0, 1), part(BufferId{1}, 0, 1)), {}, between(w.axis(0), 1, 2));
  const auto outputs = execute(w.schedule, {{"X", {1, 2}}}, {});
  ASSERT_TRUE(outputs) << to_text(outputs.error());
  EXPECT_TRUE(std::isnan(outputs->at("Y")[0]));
  EXPECT_EQ(outputs->at("Y")[1], 2);
}

TEST(Execute, BufferOfBf16RoundsItsInput) {
  Writer w{ring(2)};
  w.now().buffers = {tensor("X", 1, Role::input, {}, DType::bf16), tensor("Y", 1, Role::output, {}, DType::bf16)};
  w.add("copy", copy(part(BufferId{0}, 0, 1), part(BufferId{1}, 0, 1)));
  const auto outputs = execute(w.schedule, {{"X", {1 + 0x1p-10F}}}, {});
  ASSERT_TRUE(outputs) << to_text(outputs.error());
  EXPECT_THAT(outputs->at("Y"), ElementsAre(1));
}

TEST(Execute, PartialSumsAreAddedUp) {
  Writer w{ring(3)};
  w.now().buffers = {tensor("X", 1, Role::input, {w.axis(0)}), tensor("Y", 1, Role::output, {})};
  w.now().buffers[1].unreduced = {w.axis(0)};
  w.add("copy", copy(part(BufferId{0}, 0, 1), part(BufferId{1}, 0, 1)));
  const auto outputs = execute(w.schedule, {{"X", {1, 2, 4}}}, {});
  ASSERT_TRUE(outputs) << to_text(outputs.error());
  EXPECT_THAT(outputs->at("Y"), ElementsAre(7));
}

}  // namespace
}  // namespace podsim
