// A recosted model is the model that make_model() makes, and shares with the one it came from what does not depend on the machine's values.
#include "sim/model/recost.hpp"

#include <gtest/gtest.h>

#include "sim/engine/table/test_agreement.hpp"
#include "sim/model/fold.hpp"
#include "sim/schedule/testing.hpp"
#include "sim/topology/network.hpp"

namespace podsim {
namespace {

using testing::RandomScheduleOptions;
using testing::World;

/// The same but for some values; now and then one that changes which links there are, or how memories are crossed.
Machine varied(Machine machine, Rng& rng) {
  const auto scale = [&](auto& value) {
    if (rng.below(2) == 0) value = (0.5 + rng.uniform()) * value;
  };
  for (LinkParameters& link : machine.link) scale(link.bandwidth), scale(link.latency);
  scale(machine.chip.hbm_bandwidth), scale(machine.chip.injection_bandwidth), scale(machine.chip.ejection_bandwidth), scale(machine.chip.reduce_bandwidth);
  for (FlopsPerSecond& peak : machine.chip.peak) scale(peak);
  scale(machine.software.per_message);
  for (Seconds& launch : machine.software.launch) scale(launch);
  if (rng.below(8) == 0) machine.software.core_share.fill(rng.uniform());
  if (rng.below(8) == 0) machine.chip.injection_bandwidth = unlimited<BytesPerSecond>;
  if (rng.below(8) == 0) machine.chip.memory_shared = !machine.chip.memory_shared;
  if (rng.below(8) == 0) machine.chip.transfer_memory_passes = rng.between(0, 10) * 0.25;
  return machine;
}

void expect_equal(const TaskCost& a, const TaskCost& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.on_core, b.on_core);
  for (const auto member : {&TaskCost::work, &TaskCost::launch, &TaskCost::rest, &TaskCost::delay, &TaskCost::reduction}) EXPECT_EQ(a.*member, b.*member);
  EXPECT_EQ(a.memory_bytes, b.memory_bytes);
  EXPECT_EQ(a.payload, b.payload);
  EXPECT_EQ(a.flow_bytes, b.flow_bytes);
  EXPECT_EQ(a.routing, b.routing);
}

void expect_equal(const Model& a, const Model& b) {
  EXPECT_EQ(a.machine, b.machine);
  EXPECT_EQ(a.device_of.all(), b.device_of.all());
  EXPECT_EQ(a.devices_in.all(), b.devices_in.all());
  EXPECT_EQ(a.node_of.all(), b.node_of.all());
  EXPECT_EQ(a.speed, b.speed);
  EXPECT_EQ(a.routings.all(), b.routings.all());
  EXPECT_EQ(a.path_links.all(), b.path_links.all());
  EXPECT_EQ(a.memory_paths, b.memory_paths);
  EXPECT_EQ(a.first_memory, b.first_memory);
  ASSERT_EQ(a.costs.size(), b.costs.size());
  for (std::size_t p = 0; p < a.costs.size(); ++p)
    for (std::size_t t = 0; t < a.costs[p].size(); ++t) expect_equal(a.costs[p][t], b.costs[p][t]);
  ASSERT_EQ(a.paths.size(), b.paths.size());
  for (std::size_t p = 0; p < a.paths.size(); ++p) {
    EXPECT_EQ(a.paths[p].first, b.paths[p].first);
    EXPECT_EQ(a.paths[p].last, b.paths[p].last);
    EXPECT_EQ(a.paths[p].hops, b.paths[p].hops);
    EXPECT_EQ(a.paths[p].latency, b.paths[p].latency);
    EXPECT_EQ(a.paths[p].bottleneck, b.paths[p].bottleneck);
  }
  ASSERT_EQ(a.links.size(), b.links.size());
  for (std::size_t l = 0; l < a.links.size(); ++l) {
    EXPECT_EQ(a.links[l].bandwidth, b.links[l].bandwidth);
    EXPECT_EQ(a.links[l].representative, b.links[l].representative);
    EXPECT_EQ(a.links[l].is_memory, b.links[l].is_memory);
  }
  ASSERT_EQ(a.core_shares.size(), b.core_shares.size());
  for (std::size_t p = 0; p < a.core_shares.size(); ++p) {
    EXPECT_EQ(a.core_shares[p].first, b.core_shares[p].first);
    EXPECT_EQ(a.core_shares[p].behind, b.core_shares[p].behind);
    EXPECT_EQ(a.core_shares[p].pieces.size(), b.core_shares[p].pieces.size());
  }
}

TEST(Recost, IsTheModelOfTheOtherMachine) {
  int shared = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng{seed, stream_of("recost")};
    RandomScheduleOptions options;
    options.exchanges = seed % 3 > 0;
    options.careless = false;
    options.guards = seed % 2 == 0;
    options.axes = testing::random_axes(rng);
    options.far = seed % 5 == 0;
    Schedule schedule = testing::random_schedule(seed, options);
    const Machine machine = testing::costly_machine(rng);
    // Two pods that differ in the values of their machines only: their shapes are drawn alike.
    Rng one_pod{seed, stream_of("pod")}, same_pod{seed, stream_of("pod")};
    const World before = testing::random_world(schedule.mesh, machine, one_pod);
    World after = testing::random_world(schedule.mesh, varied(machine, rng), same_pod);
    if (seed % 7 == 3) after.placement.speed.assign(after.placement.chip_of.size(), 0.5);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto model = make_model(schedule, before.machine, *before.topology, before.placement);
    const auto expected = make_model(schedule, after.machine, *after.topology, after.placement);
    if (!model || !expected) continue;
    const auto found = recost(*model, after.machine, *after.topology, after.placement);
    ASSERT_TRUE(found) << to_text(found.error());
    if (!*found) {
      ++refused;
      continue;
    }
    ++shared;
    expect_equal(**found, *expected);
    EXPECT_TRUE(differ_in_costs_only(*model, **found));
    EXPECT_FALSE(differ_in_costs_only(*model, *expected)) << "made apart";
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GE(shared, 100);
  EXPECT_GE(refused, 10);
}

TEST(Recost, RefusesWhatIsFolded) {
  const testing::SmallSystem pod = testing::small_system(testing::overhead_machine(), {4, 4});
  testing::Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {100});
  w.add("shift", testing::shift(w.axis(0), 1, testing::part(a, 0, 1), testing::part(a, 50, 1)));
  const auto folded = make_folded_model(w.schedule, pod.machine, pod.grid, pod.placement);
  ASSERT_TRUE(folded);
  ASSERT_TRUE(folded->folded());
  const auto found = recost(*folded, pod.machine, pod.grid, pod.placement);
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
}

/// A link that is unlimited on one machine alone: what it lets through there is no matter of its bandwidth.
TEST(Recost, RefusesOtherLimitedLinks) {
  Machine limited = testing::overhead_machine();
  limited.chip.injection_bandwidth = BytesPerSecond{80e9};
  limited.chip.ejection_bandwidth = unlimited<BytesPerSecond>;
  Machine of_links = limited, moved = limited;
  of_links.link[0].bandwidth = unlimited<BytesPerSecond>;
  std::swap(moved.chip.injection_bandwidth, moved.chip.ejection_bandwidth);  // as many links, but others
  const testing::SmallSystem pod = testing::small_system(limited, {4, 4});
  testing::Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {100});
  w.add("shift", testing::shift(w.axis(0), 1, testing::part(a, 0, 1), testing::part(a, 50, 1)));
  for (const Machine& other : {of_links, moved}) {
    const testing::SmallSystem changed = testing::small_system(other, {4, 4});
    for (const bool back : {false, true}) {
      const testing::SmallSystem &from = back ? changed : pod, &to = back ? pod : changed;
      const auto before = testing::model_of(from, w.schedule);
      ASSERT_TRUE(before) << to_text(before.error());
      const auto found = recost(*before, to.machine, to.grid, to.placement);
      ASSERT_TRUE(found) << to_text(found.error());
      EXPECT_FALSE(*found);
    }
  }
}

/// What a switch adds up flows at a share of the links' bandwidth, which is in its cost.
TEST(Recost, RefusesSwitchesThatAdd) {
  const Machine machine = testing::overhead_machine();
  const LinkParameters link{BytesPerSecond{50e9}, Seconds{}, 0.5};
  const auto network = Network::make(2, {"a", "b", "switch"}, {{0, 2, link, {}}, {1, 2, link, {}}});
  ASSERT_TRUE(network);
  const auto mesh = Mesh::make({{"x", 2, true}});
  const Placement placement{{ChipId{0}, ChipId{1}}};
  for (const InSwitch role : {InSwitch::none, InSwitch::carrier}) {
    testing::Writer w{*mesh};
    const BufferId a = w.scratch("a", {100});
    Shift added = testing::shift(w.axis(0), 1, testing::part(a, 0, 1), testing::part(a, 50, 1));
    added.in_switch = role;
    w.add("shift", added);
    const auto model = make_model(w.schedule, machine, *network, placement);
    ASSERT_TRUE(model) << to_text(model.error());
    const auto found = recost(*model, machine, *network, placement);
    ASSERT_TRUE(found) << to_text(found.error());
    EXPECT_EQ(found->has_value(), role == InSwitch::none);
  }
}

}  // namespace
}  // namespace podsim
