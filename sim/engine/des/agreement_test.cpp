// des and the referee give the same times, on schedules whose flows share links. simgrid's times are exact but for the last bits of doubles; des
// rounds every duration up to a picosecond: that is the difference that is allowed.
#include <gtest/gtest.h>

#include "sim/base/test_cases.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/schedule/text.hpp"

namespace podsim {
namespace {

using testing::Agreement;
using testing::engines_agree;
using testing::RandomScheduleOptions;
using testing::World;

struct Kind {
  std::int64_t scale = 1;
  double relative = 0;
};

/// Far flows between any devices, on any topology.
void compare(std::uint64_t first, std::uint64_t last, const Kind& kind, Agreement& seen) {
  for (std::uint64_t seed = first; seed < last; ++seed) {
    Rng rng{seed, stream_of("agreement")};
    RandomScheduleOptions options;
    options.exchanges = seed % 3 > 0;
    options.careless = false;
    options.edge_chance = seed % 4 * 0.15;
    options.axes = testing::random_axes(rng);
    options.most_tasks = 12;
    options.far = true;
    options.scale = kind.scale;
    Schedule schedule = testing::random_schedule(seed, options);
    const World world = testing::random_world(schedule.mesh, testing::costly_machine(rng, static_cast<double>(kind.scale)), rng);
    testing::turn_routes(schedule, world.dimensions, rng);
    if (seed % 7 == 0) testing::split_program(schedule, !options.exchanges, rng);
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    if (!model) continue;  // guards that disagree; chips that do not reach each other
    ASSERT_TRUE(engines_agree(*model, kind.relative, seen)) << "seed " << seed << "\n" << to_text(schedule);
  }
}

const Kind large{64, 1e-6};  // 64 KiB a transfer and more
const Kind tiny{1, 0};       // 16 bytes: the picoseconds of rounding are all that may differ

/// Split, so that they run beside each other.
class DesAgreesWithSimgrid : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, DesAgreesWithSimgrid, ::testing::Range<std::uint64_t>(0, test::cases(880, 220), 220));

TEST_P(DesAgreesWithSimgrid, OnLargeTransfersThatShareLinks) {
  Agreement seen;
  compare(GetParam(), GetParam() + 220, large, seen);
  RecordProperty("worst", std::to_string(seen.worst));
  EXPECT_GE(seen.compared, 125);
  EXPECT_GE(seen.contended, seen.compared / 2);
}

TEST_P(DesAgreesWithSimgrid, OnTinyTransfersToThePicosecond) {
  Agreement seen;
  compare(10000 + GetParam(), 10000 + GetParam() + 110, tiny, seen);
  RecordProperty("worst", std::to_string(seen.worst));
  EXPECT_GE(seen.compared, 62);
  EXPECT_GE(seen.contended, seen.compared / 4);
}

/// Transforms, factorisations, rows that are picked; transfers of every dtype. Every schedule is played by both engines, and folded.
TEST_P(DesAgreesWithSimgrid, OnEveryKindOfWork) {
  Agreement seen;
  testing::Folds folds;
  std::vector<int> kinds(local_kind_count, 0);
  for (std::uint64_t seed = 30000 + GetParam(); seed < 30000 + GetParam() + 110; ++seed) {
    Rng rng{seed, stream_of("kinds")};
    RandomScheduleOptions options;
    options.exchanges = seed % 3 == 0;
    options.careless = false;
    options.guards = seed % 2 == 0;
    options.edge_chance = seed % 4 * 0.15;
    options.axes = testing::random_axes(rng);
    options.most_tasks = 12;
    options.far = true;
    options.scale = seed % 2 == 0 ? 1 : 64;
    options.every_kind = true;
    const Schedule schedule = testing::random_schedule(seed, options);
    const World world = testing::random_world(schedule.mesh, testing::costly_machine(rng, static_cast<double>(options.scale)), rng, {.symmetric = seed % 4 > 1});
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    if (!model) continue;  // guards that disagree; chips that do not reach each other
    ASSERT_TRUE(engines_agree(*model, 1e-6, seen)) << "seed " << seed << "\n" << to_text(schedule);
    ASSERT_TRUE(testing::folding_changes_nothing(schedule, world, folds)) << "seed " << seed << "\n" << to_text(schedule);
    for (const Task& task : schedule.programs[0].tasks)
      if (const auto* local = std::get_if<Local>(&task.op)) ++kinds[static_cast<std::size_t>(local->kind)];
  }
  RecordProperty("worst", std::to_string(seen.worst));
  EXPECT_GE(seen.compared, 60);
  for (std::size_t kind = testing::first_random_kind; kind < local_kind_count; ++kind) EXPECT_GT(kinds[kind], 3) << kind;
}

/// Memories slower than the links: every schedule is played by both engines, and folded.
TEST_P(DesAgreesWithSimgrid, WhereMemoryIsShort) {
  Agreement seen;
  testing::Folds folds;
  int delayed = 0;  // later than if nobody shared a memory
  for (std::uint64_t seed = 20000 + GetParam(); seed < 20000 + GetParam() + 220; ++seed) {
    Rng rng{seed, stream_of("memory")};
    RandomScheduleOptions options;
    options.exchanges = seed % 3 == 0;
    options.careless = false;
    options.guards = seed % 2 == 0;
    options.edge_chance = seed % 4 * 0.1;
    options.axes = testing::random_axes(rng);
    for (MeshAxis& axis : options.axes) axis.wraps |= seed % 5 > 0;
    options.most_tasks = 12;
    options.far = true;
    options.scale = 64;
    const Schedule schedule = testing::random_schedule(seed, options);
    Machine machine = testing::costly_machine(rng, 64);
    machine.chip.memory_shared = true;
    machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(1, 15) * 1e8};
    machine.chip.transfer_memory_passes = std::max(0.25, machine.chip.transfer_memory_passes);
    World world = testing::random_world(schedule.mesh, machine, rng, {.symmetric = seed % 4 > 0});
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    if (!model) continue;  // guards that disagree; chips that do not reach each other
    ASSERT_TRUE(engines_agree(*model, 1e-6, seen)) << "seed " << seed << "\n" << to_text(schedule);
    ASSERT_TRUE(testing::folding_changes_nothing(schedule, world, folds)) << "seed " << seed << "\n" << to_text(schedule);
    const auto shared = (*timing_engine("des"))->run(*model, {});
    world.machine.chip.memory_shared = false;
    const auto separate = (*timing_engine("des"))->run(*make_model(schedule, world.machine, *world.topology, world.placement), {});
    delayed += shared && separate && shared->makespan.count() > 1.01 * static_cast<double>(separate->makespan.count());
  }
  RecordProperty("worst", std::to_string(seen.worst));
  RecordProperty("delayed", delayed);
  EXPECT_GE(seen.compared, 180);
  EXPECT_GE(delayed, 125);
  EXPECT_GE(folds.partly, 40);
  EXPECT_GE(folds.into_one, 40);
}

}  // namespace
}  // namespace podsim
