// Collectives on nodes of GPUs whose rings and trees share links at many rates: des agrees with simgrid.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "algorithms/collectives/testing.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "topologies/networks.hpp"

namespace podsim {
namespace {

struct RailCase {
  std::string name;
  std::string algorithm;
  CollectiveKind kind = CollectiveKind::all_gather;
  int nodes = 0, gpus = 0;
  Bytes bytes{};
  LinkParameters to_rail{}, to_node{};
  double hbm = 0, reduce = 0;  // B/s; 0: unlimited
  Seconds launch, per_message;
};

/// 2..5 nodes of 2..`most` GPUs, links of odd rates: rails, memories, nodes or none are short.
RailCase random_case(std::uint64_t seed, std::string_view algorithm, int most) {
  Rng rng{seed, stream_of(algorithm)};
  RailCase c;
  c.algorithm = algorithm;
  c.nodes = rng.between(2, 5), c.gpus = rng.between(2, most);
  c.kind = algorithm == "tree" ? CollectiveKind::all_reduce
                               : std::array{CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}[rng.below(3)];
  c.bytes = Bytes{std::int64_t{4} * c.nodes * c.gpus * c.gpus * rng.between(1, 1 << rng.between(1, 14))};
  c.to_rail = {BytesPerSecond{rng.between(20000, 100000) * 1e6 + rng.between(0, 999999)}, Seconds{rng.between(0, 3000) * 1e-9}};
  c.to_node = {BytesPerSecond{rng.between(10000, rng.below(2) == 0 ? 60000 : 400000) * 1e6 + rng.between(0, 999999)},
               Seconds{rng.between(0, 3000) * 1e-9}};
  if (rng.below(2) == 0) c.hbm = rng.between(100, 3000) * 1e9;
  if (rng.below(2) == 0) c.reduce = rng.between(30, 3000) * 1e9;
  c.launch = Seconds{rng.between(0, 6) * 1e-6}, c.per_message = Seconds{rng.between(0, 3) * 1e-7};
  c.name = std::string{algorithm} + ", seed " + std::to_string(seed) + ": " + std::string{name_of(c.kind)} + " of " +
           std::to_string(c.bytes.count()) + " B on " + std::to_string(c.nodes) + "x" + std::to_string(c.gpus);
  return c;
}

Schedule schedule_of(const RailCase& c) {
  const auto mesh = Mesh::make({{"row", c.nodes, true}, {"col", c.gpus, true}});
  const auto whole = collective_schedule(*mesh, c.kind, testing::axes_of(*mesh, {"row", "col"}), c.bytes, DType::f32);
  EXPECT_TRUE(whole) << c.name;
  const auto lowered = lower(*whole, *always(c.algorithm, in_chunks(3)));
  EXPECT_TRUE(lowered) << c.name << ": " << to_text(lowered.error());
  return *lowered;
}

/// Every time multiplied by `times`.
testing::World world_of(const RailCase& c, double times) {
  const auto slow = [&](const LinkParameters& link) { return LinkParameters{BytesPerSecond{link.bandwidth.count() / times}, times * link.latency}; };
  testing::World world{testing::ideal_machine(), nullptr, {}, 2};
  Machine& machine = world.machine;
  machine.link[0] = slow(c.to_rail), machine.link[1] = slow(c.to_node);
  if (c.hbm > 0) machine.chip.memory_shared = true, machine.chip.hbm_bandwidth = BytesPerSecond{c.hbm / times};
  if (c.reduce > 0) machine.chip.reduce_bandwidth = BytesPerSecond{c.reduce / times};
  machine.software.launch.fill(times * c.launch);
  machine.software.per_message = times * c.per_message;
  world.topology = std::make_shared<Network>(*rail(c.nodes, c.gpus, machine.link[0], machine.link[1]));
  for (int d = 0; d < c.nodes * c.gpus; ++d) world.placement.chip_of.push_back(ChipId{d});
  return world;
}

class OnRails : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, OnRails, ::testing::Values("channels", "hierarchical", "tree"),
                         [](const auto& algorithm) { return algorithm.param; });

constexpr std::uint64_t machines = test::cases(120, 20);

TEST_P(OnRails, DesAgreesWithSimgrid) {
  testing::Agreement seen;
  for (std::uint64_t seed = 0; seed < machines; ++seed) {
    const RailCase c = random_case(seed, GetParam(), 4);
    const Schedule schedule = schedule_of(c);
    const testing::World world = world_of(c, 1);
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    ASSERT_TRUE(model) << c.name;
    ASSERT_TRUE(testing::engines_agree(*model, 1e-6, seen)) << c.name;
  }
  RecordProperty("worst", std::to_string(seen.worst));
  EXPECT_EQ(seen.compared, static_cast<int>(machines));
  EXPECT_GE(seen.contended, seen.compared / 10);
}

/// Where many flows share links, a picosecond grows (sim/engine/des/README.md). On a machine whose every time is 2^20 times as long, the roundings
/// of des are still picoseconds, and stay below the tolerance however they grow: des on that machine must be simgrid on the machine itself, in every
/// task, without an allowance for roundings. So roundings alone set the engines apart, and simgrid is the one that has none.
TEST_P(OnRails, DesWithAFinerClockIsSimgrid) {
  constexpr double slower = 0x1p20;  // a power of two: no value of the machine is rounded
  int grown = 0;
  for (std::uint64_t seed = 0; seed < machines; ++seed) {
    const RailCase c = random_case(seed, GetParam(), 7);
    const Schedule schedule = schedule_of(c);
    const testing::World world = world_of(c, 1), slow = world_of(c, slower);
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    const auto slow_model = make_model(schedule, slow.machine, *slow.topology, slow.placement);
    ASSERT_TRUE(model && slow_model) << c.name;
    const auto simgrid = (*timing_engine("simgrid"))->run(*model, {}), des = (*timing_engine("des"))->run(*model, {});
    const auto finer = (*timing_engine("des"))->run(*slow_model, {});
    ASSERT_TRUE(simgrid && des && finer) << c.name;
    double most = 0;
    for (std::size_t a = 0; a < des->size(); ++a) {
      const ActivityTimes x = finer->at(a), y = simgrid->at(a);
      for (const auto& [one, other] : {std::pair{x.start, y.start}, {x.sent, y.sent}, {x.received, y.received}}) {
        const auto time = static_cast<double>(other.count());
        ASSERT_NEAR(static_cast<double>(one.count()) / slower, time, 1e-6 * time + 1) << c.name << ", activity " << a;
      }
      most = std::max(most, std::abs(static_cast<double>((des->at(a).received - y.received).count())) / static_cast<double>(y.received.count()));
    }
    grown += most > 1e-5;
  }
  RecordProperty("grown", std::to_string(grown));
  EXPECT_TRUE(grown > 0 || GetParam() != "channels" || test::sanitized) << "no case where a picosecond grows";
}

}  // namespace
}  // namespace podsim
