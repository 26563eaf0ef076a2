// Random schedules that are free of races: every order and number of threads gives the same bits, of every kind of work and every dtype.
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

/// All buffers are inputs, so that all are filled and returned.
Schedule of_inputs(Schedule schedule) {
  for (Program& program : schedule.programs)
    for (Buffer& buffer : program.buffers) {
      buffer.role = Role::input;
      buffer.tensor = buffer.name;
      buffer.sharding.assign(buffer.extents.size(), {});
      buffer.sharding[0] = {schedule.mesh.whole(0)};
    }
  return schedule;
}

std::vector<std::uint32_t> bits_of(const Tensors& tensors) {
  std::vector<std::uint32_t> bits;
  for (const auto& device : tensors.values)
    for (const auto& buffer : device)
      for (const float word : buffer) bits.push_back(std::bit_cast<std::uint32_t>(word));
  return bits;
}

TEST(RandomSchedules, WithoutRacesHaveTheSameBitsInEveryOrder) {
  std::map<LocalKind, int> kinds;
  std::map<DType, int> moved;
  int compared = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    testing::RandomScheduleOptions options;
    options.careless = false;
    options.every_kind = true;
    options.edge_chance = 0.85;
    options.scale = 1 + static_cast<std::int64_t>(seed % 3);
    const Schedule schedule = of_inputs(testing::random_schedule(seed, options));
    if (!validate(schedule).ok()) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    NumericOptions in_order;
    in_order.filling = seed % 2 == 0 ? Filling::uniform : Filling::integers;
    in_order.threads = 1;
    const auto first = make_numeric_engine(in_order)->run(schedule);
    if (!first) {
      ASSERT_EQ(first.error().cause, Cause::data) << to_text(first.error());  // a matrix that happens to be singular
      ++refused;
      continue;
    }
    for (const std::uint64_t order : {0, 1, 2}) {
      NumericOptions others = in_order;
      others.threads = 2;
      if (order > 0) others.order.random_seed = order;
      const auto again = make_numeric_engine(others)->run(schedule);
      ASSERT_TRUE(again) << to_text(again.error());
      ASSERT_EQ(bits_of(*again), bits_of(*first));
    }
    ++compared;
    for (const Task& task : schedule.programs[0].tasks) {
      const auto dtype_of = [&](const Region& region) { return schedule.programs[0].buffers[region.buffer.index()].dtype; };
      if (const auto* local = std::get_if<Local>(&task.op)) ++kinds[local->kind];
      if (const auto* shift = std::get_if<Shift>(&task.op)) ++moved[dtype_of(shift->source)];
      if (const auto* send = std::get_if<Send>(&task.op)) ++moved[dtype_of(send->source)];
    }
  }
  EXPECT_GT(compared, 200);
  EXPECT_LT(refused, compared / 4);
  for (std::size_t kind = testing::first_random_kind; kind < local_kind_count; ++kind) EXPECT_GT(kinds[static_cast<LocalKind>(kind)], 5) << kind;
  for (int dtype = 0; dtype < dtype_count; ++dtype) EXPECT_GT(moved[static_cast<DType>(dtype)], 10) << dtype;
}

}  // namespace
}  // namespace podsim
