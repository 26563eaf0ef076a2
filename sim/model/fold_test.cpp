// Folded is unfolded: each task on each device at the same picosecond, the same metrics; and what folds into how many classes.
#include "sim/model/fold.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "sim/engine/table/test_agreement.hpp"
#include "sim/model/test_shifts.hpp"
#include "sim/model/translations.hpp"
#include "sim/schedule/text.hpp"
#include "sim/topology/twisted_torus.hpp"

namespace podsim {
namespace {

using testing::after;
using testing::between;
using testing::folding_changes_nothing;
using testing::Folds;
using testing::part;
using testing::RandomScheduleOptions;
using testing::shift;
using testing::small_system;
using testing::SmallSystem;
using testing::World;
using testing::world_of;
using testing::Writer;

Expected<Model> folded(const SmallSystem& pod, const Schedule& schedule) { return make_folded_model(schedule, pod.machine, pod.grid, pod.placement); }

std::size_t classes(const SmallSystem& pod, const Schedule& schedule) {
  const auto model = folded(pod, schedule);
  EXPECT_TRUE(model) << to_text(model.error());
  return model ? model->nodes() : 0;
}

// ---- Random schedules -----------------------------------------------------------------------------------------------------------------

class FoldingRandomSchedules : public ::testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, FoldingRandomSchedules, ::testing::Values(0, 500));

TEST_P(FoldingRandomSchedules, OfNeighboursOnTheirOwnTorus) {
  Folds seen;
  for (std::uint64_t seed = GetParam(); seed < GetParam() + 500; ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.exchanges = seed % 2 == 0, .careless = false});
    Rng rng{seed, stream_of("machine")};
    std::vector<int> extents;
    std::vector<std::pair<std::string, int>> sizes;
    for (const MeshAxis& axis : schedule.mesh.axes()) extents.push_back(axis.size), sizes.emplace_back(axis.name, axis.size);
    const SmallSystem pod = small_system(testing::costly_machine(rng), extents, true, sizes);
    ASSERT_TRUE(folding_changes_nothing(schedule, world_of(pod), seen)) << "seed " << seed << "\n" << to_text(schedule);
  }
  EXPECT_GE(seen.compared, 250);
  EXPECT_GE(seen.partly, 50);
}

TEST_P(FoldingRandomSchedules, OfFarFlowsOnAnyTopology) {
  Folds seen;
  for (std::uint64_t seed = GetParam(); seed < GetParam() + 500; ++seed) {
    Rng rng{seed, stream_of("fold")};
    RandomScheduleOptions options;
    options.exchanges = seed % 3 == 0;
    options.careless = false;
    options.guards = seed % 5 == 0;
    options.edge_chance = seed % 4 * 0.15;
    options.axes = testing::random_axes(rng);
    for (MeshAxis& axis : options.axes) axis.wraps |= seed % 5 > 0;
    options.far = true;
    Schedule schedule = testing::random_schedule(seed, options);
    const World world = testing::random_world(schedule.mesh, testing::costly_machine(rng), rng, {.symmetric = seed % 4 > 0});
    testing::turn_routes(schedule, world.dimensions, rng);
    if (seed % 7 == 0) testing::split_program(schedule, !options.exchanges, rng);
    ASSERT_TRUE(folding_changes_nothing(schedule, world, seen)) << "seed " << seed << "\n" << to_text(schedule);
  }
  EXPECT_GE(seen.compared, 400);
  EXPECT_GE(seen.partly, 100);
  EXPECT_GE(seen.into_one, 150);
}

// ---- Tori, without writing them out ---------------------------------------------------------------------------------------------------

/// Whole shifts by constants without guards: the same from every device.
TEST(FoldByTranslations, IsTheFoldedModelOfRandomShifts) {
  Folds seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed, stream_of("torus")};
    std::vector<int> extents;
    for (int d = 0, count = rng.between(1, 3); d < count; ++d) extents.push_back(rng.between(1, 5));
    if (extents == std::vector<int>{1}) extents = {4};
    Machine machine = testing::costly_machine(rng);
    std::vector<std::pair<std::string, int>> sizes;  // every third mesh folds the first two dimensions
    if (seed % 3 == 0 && extents.size() >= 2) {
      sizes = {{"folded", extents[0] * extents[1]}};
      if (extents.size() == 3) sizes.emplace_back("last", extents[2]);
    }
    const SmallSystem pod = small_system(machine, extents, true, sizes);
    if (pod.mesh.devices() == 1) continue;
    std::vector<AxisView> dimensions;
    for (int axis = 0; axis < static_cast<int>(pod.mesh.axes().size()); ++axis)
      for (const AxisView& factor : pod.mesh.factors(axis)) dimensions.push_back(factor);
    Writer w{pod.mesh};
    const BufferId a = w.scratch("a", {1000});
    for (int t = 0, count = rng.between(1, 8); t < count; ++t) {
      const AxisView axis = dimensions[rng.below(dimensions.size())];
      const TaskId task =
          w.add("t" + std::to_string(t), shift(axis, rng.between(-2 * axis.size, 2 * axis.size), part(a, 0, rng.between(1, 500)), part(a, 500, 1)));
      auto& target = std::get<Shift>(w.task(task).op);
      target.target = part(a, 500, elements_of(target.source));
      for (int before = 0; before < t; ++before)
        if (rng.below(4) == 0) w.task(task).after.push_back(after(TaskId{before}));
    }
    const auto torus = fold_by_translations(w.schedule, machine, pod.grid, pod.placement);
    ASSERT_TRUE(torus && *torus) << to_text(w.schedule);
    const auto model = make_model(w.schedule, machine, pod.grid, pod.placement);
    ASSERT_TRUE(model);
    const Model graph = fold(*model);
    EXPECT_EQ((*torus)->nodes(), 1U);
    EXPECT_EQ(graph.nodes(), 1U);
    ASSERT_TRUE(testing::folded_is_unfolded(*model, **torus, seen)) << "without the graph\n" << to_text(w.schedule);
    ASSERT_TRUE(testing::folded_is_unfolded(*model, graph, seen)) << "by the graph\n" << to_text(w.schedule);
  }
  EXPECT_GE(seen.into_one, 300);
}

TEST(FoldByTranslations, SendsAntipodalShiftsTheWayOfTheirSign) {
  // By +2 and by -2 on a ring of four reach the same device, on different links.
  const SmallSystem pod = small_system(testing::plain_machine(), {4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  w.add("plus", shift(w.axis(0), 2, part(a, 0, 100), part(a, 100, 100)));
  w.add("minus", shift(w.axis(0), -2, part(a, 0, 100), part(a, 200, 100)));
  Folds seen;
  EXPECT_TRUE(folding_changes_nothing(w.schedule, world_of(pod), seen));
  EXPECT_EQ((*timing_engine("des"))->run(*folded(pod, w.schedule), {})->makespan, Picoseconds{200000})
      << "two flows per link, of 100 ns each if uncontended";
}

/// Shifts along axes and factors of axes that lie anyhow on a torus with open dimensions among others; some guarded, some by coordinates.
TEST(FoldByTranslations, ByTranslationsIsTheFoldedModel) {
  Folds seen;
  int translated = 0;
  testing::ShiftKinds kinds;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed, stream_of("translations")};
    const int devices = std::vector{8, 12, 16, 16, 18, 24, 32, 36}[rng.below(8)];
    std::vector<int> extents = testing::random_factors(devices, rng);
    while (extents.size() > 3) extents[0] *= extents.back(), extents.pop_back();
    Machine machine = testing::costly_machine(rng);
    std::vector<GridDimension> dimensions;
    for (std::size_t d = 0; d < extents.size(); ++d) dimensions.push_back({extents[d], rng.below(5) > 0, machine.link[d]});
    const World world{machine,
                      std::make_shared<Grid>(*Grid::make(dimensions, machine.chip.injection_bandwidth, machine.chip.ejection_bandwidth)),
                      *place_row_major(*Mesh::make({{"x", devices, true}}), *Grid::make(dimensions))};
    Schedule schedule = testing::random_shifts(testing::random_axes_of(devices, seed % 2 == 0, rng), kinds, rng);
    testing::turn_routes(schedule, static_cast<int>(extents.size()), rng);
    const auto torus = fold_by_translations(schedule, machine, *world.topology, world.placement);
    const auto model = make_model(schedule, machine, *world.topology, world.placement);
    if (!torus || !*torus || !model) continue;
    ++translated;
    EXPECT_EQ((*torus)->nodes(), fold(*model).nodes()) << "no class is missed\n" << to_text(schedule);
    ASSERT_TRUE(testing::folded_is_unfolded(*model, **torus, seen)) << to_text(schedule);
  }
  EXPECT_GE(translated, 500);
  EXPECT_GE(seen.partly, 200);
  EXPECT_GE(kinds.guarded, 100);
  EXPECT_GE(kinds.skewed, 50);
  EXPECT_GE(kinds.by_dimension, 500);
}

/// The same all-to-all by dimension: all devices send the same ways. Half round a dimension of even size they take turns by parity.
TEST(FoldByTranslations, AnAllToAllByDimensionIsOneClassPerParity) {
  for (const auto& [extents, expected] : {std::pair{std::vector{5, 3}, 1U}, {std::vector{6, 3}, 2U}, {std::vector{6, 4}, 4U}, {std::vector{4, 2, 4}, 4U}}) {
    int devices = 1;
    for (const int extent : extents) devices *= extent;
    const SmallSystem pod = small_system(testing::plain_machine(), extents, true, {{"x", devices}});
    Writer w{pod.mesh};
    const BufferId a = w.scratch("a", {1000});
    for (int by = 1; by < devices; ++by) {
      const TaskId task = w.add("by", shift(w.axis(0), by, part(a, 0, 100), part(a, 100, 100)));
      std::get<Shift>(w.task(task).op).by_dimension = true;
    }
    Folds seen;
    EXPECT_TRUE(folding_changes_nothing(w.schedule, world_of(pod), seen));
    EXPECT_EQ(classes(pod, w.schedule), expected) << devices;
  }
}

/// Device c of row r goes k further in all ranks: on the torus, rows are equivalent; where both ways round are equally long, those of one parity.
TEST(FoldByTranslations, AnAllToAllOfAllRanksFoldsByRows) {
  const SmallSystem pod = small_system(testing::plain_machine(), {6, 4}, true, {{"x", 24}});
  for (const int most : {2, 23}) {
    Writer w{pod.mesh};
    const BufferId a = w.scratch("a", {1000});
    for (int by = 1; by <= most; ++by) w.add("by", shift(w.axis(0), by, part(a, 0, 100), part(a, 100, 100)));
    Folds seen;
    EXPECT_TRUE(folding_changes_nothing(w.schedule, world_of(pod), seen));
    EXPECT_EQ(classes(pod, w.schedule), most == 2 ? 4U : 8U);
    const auto within = [&](double instances) { return fold_by_translations(w.schedule, pod.machine, pod.grid, pod.placement, {}, {}, instances)->has_value(); };
    EXPECT_TRUE(within(8 * most));
    EXPECT_FALSE(within(4 * most - 1)) << "left to whoever refuses what is too large";
  }
}

TEST(Translations, TakeRoutesToRoutes) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng{seed, stream_of("routes")};
    std::vector<GridDimension> dimensions;
    std::vector<int> extents, steps;
    for (int d = 0, count = rng.between(1, 3); d < count; ++d) {
      const int extent = rng.between(1, 8);
      dimensions.push_back({extent, true, {}});
      extents.push_back(extent);
      steps.push_back(extent > 2 && extent % 2 == 0 && rng.below(2) == 0 ? 2 : extent <= 2 || extent % 2 != 0 ? 1 : extent);
    }
    const auto limit = [&] { return rng.below(2) == 0 ? unlimited<BytesPerSecond> : BytesPerSecond{1e9}; };
    const Grid grid = *Grid::make(dimensions, limit(), limit());
    const Translations translations{grid, extents, steps};
    const ChipId from{rng.between(0, grid.chips() - 1)}, to{rng.between(0, grid.chips() - 1)};
    // Where the translation of `from` to the lowest takes `to`.
    std::vector<int> there = grid.coordinates(to);
    const std::vector<int> here = grid.coordinates(from), lowest = grid.coordinates(translations.lowest(from));
    for (std::size_t d = 0; d < there.size(); ++d) there[d] = (there[d] - here[d] + lowest[d] + dimensions[d].extent) % dimensions[d].extent;
    std::vector<LinkId> route, image;
    ASSERT_TRUE(grid.route(from, to, {}, route));
    ASSERT_TRUE(grid.route(translations.lowest(from), grid.chip(there), {}, image));
    for (LinkId& link : route) {
      const LinkId own = link;
      link = translations.taken_along(own, from);
      EXPECT_EQ(translations.lowest(own), translations.lowest(link));
      moved += own == link ? 0 : 1;
    }
    EXPECT_EQ(route, image) << "seed " << seed;
  }
  EXPECT_GE(moved, 300);
}

// ---- By hand --------------------------------------------------------------------------------------------------------------------------

TEST(Fold, ATranslationInvariantProgramIsOneClassOnATorusAndNotOnAnOpenGrid) {
  for (const bool wraps : {true, false}) {
    const SmallSystem pod = small_system(testing::ideal_machine(), {4, 6}, wraps, {{"row", 4}, {"col", 6}});
    const Mesh mesh = *Mesh::make({{"row", 4, true}, {"col", 6, true}});  // shifts go round whatever the links do
    Writer w{mesh};
    const BufferId a = w.scratch("a", {1000});
    const TaskId first = w.add("row", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)));
    w.add("col", shift(w.axis(1), 2, part(a, 0, 100), part(a, 200, 100)), {after(first)});
    Folds seen;
    EXPECT_TRUE(folding_changes_nothing(w.schedule, world_of(pod), seen));
    EXPECT_EQ(classes(pod, w.schedule), wraps ? 1U : 24U);
  }
}

TEST(Fold, DevicesThatLookEquivalentAreToldApartByTheFlowsTheyMeet) {
  // Every device sends one flow and receives one over equivalent links; but row y goes y ahead, so flows share links from y = 2 on.
  const SmallSystem pod = small_system(testing::plain_machine(), {7, 5});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  w.add("skew", shift(w.axis(0), Affine{{AxisTerm{w.axis(1), 1}}}, part(a, 0, 100), part(a, 100, 100)));
  Folds seen;
  EXPECT_TRUE(folding_changes_nothing(w.schedule, world_of(pod), seen));
  EXPECT_EQ(classes(pod, w.schedule), 4U) << "columns, of which the last two are each other's mirror image";
  const auto timeline = (*timing_engine("des"))->run(*folded(pod, w.schedule), {});
  EXPECT_EQ(timeline->makespan, Picoseconds{300'000}) << "three flows a link";
}

TEST(Fold, TwoHalvesOfARingAreEquivalent) {
  // Two rows of six on a ring of twelve: the end of a row is five hops from its start.
  const SmallSystem pod = small_system(testing::plain_machine(), {12}, true, {{"a", 2}, {"b", 6}});
  Writer w{*Mesh::make({{"a", 2, true}, {"b", 6, true}})};
  const BufferId a = w.scratch("a", {1000});
  w.add("ring", shift(w.axis(1), 1, part(a, 0, 100), part(a, 100, 100)));
  w.add("back", shift(w.axis(1), -2, part(a, 0, 50), part(a, 200, 50)));
  Folds seen;
  EXPECT_TRUE(folding_changes_nothing(w.schedule, world_of(pod), seen));
  EXPECT_EQ(classes(pod, w.schedule), 6U);
}

TEST(Fold, AMeshAxisOverTwoDimensions) {
  // row=32,col=8 on 4x8x8, scaled down: a step along row crosses the first dimension at every fourth device.
  const SmallSystem pod = small_system(testing::overhead_machine(), {2, 4, 4}, true, {{"row", 8}, {"col", 4}});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  for (int by = -2; by <= 2; ++by) w.add("row", shift(w.axis(0), by, part(a, 0, 100), part(a, 100, 100)));
  w.add("col", shift(w.axis(1), 1, part(a, 0, 100), part(a, 300, 100)), {after(TaskId{0})});
  Folds seen;
  EXPECT_TRUE(folding_changes_nothing(w.schedule, world_of(pod), seen));
  EXPECT_EQ(classes(pod, w.schedule), 4U) << "all columns are equivalent, and both planes";
}

TEST(Fold, ADamagedTorusIsNoTorus) {
  const SmallSystem pod = small_system(testing::plain_machine(), {4, 4});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  const TaskId row = w.add("row", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)));
  w.add("col", shift(w.axis(1), 1, part(a, 0, 100), part(a, 200, 100)), {after(row)});
  Damage cut, slow;
  testing::cut(cut, pod.grid, ChipId{5}, 1, 1);
  slow.slowed[*pod.grid.link_from(ChipId{5}, 1, 1)] = 0.5;
  std::vector<Picoseconds> makespans;
  for (const Damage& damage : {Damage{}, cut, slow}) {
    Folds seen;
    const World world{pod.machine, testing::damaged(pod.grid, damage), pod.placement};
    EXPECT_TRUE(folding_changes_nothing(w.schedule, world, seen));
    EXPECT_EQ(seen.compared, 1);
    EXPECT_EQ(seen.into_one, damage.none() ? 1 : 0);
    makespans.push_back((*timing_engine("des"))->run(*make_folded_model(w.schedule, pod.machine, *world.topology, pod.placement), {})->makespan);
  }
  EXPECT_THAT(makespans, ::testing::ElementsAre(Picoseconds{200'000}, Picoseconds{300'000}, Picoseconds{300'000}));
}

TEST(Fold, ATwistedTorusFoldsByItsRoutes) {
  Folds seen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng{seed, stream_of("twisted")};
    const Machine machine = testing::costly_machine(rng);
    const SmallSystem pod = small_system(machine, {2, 2, 4});
    const auto topology = TwistedTorus::make(pod.grid.dimensions(), machine.chip.injection_bandwidth, machine.chip.ejection_bandwidth);
    ASSERT_TRUE(topology) << to_text(topology.error());
    const Schedule schedule =
        testing::random_schedule(seed, {.exchanges = false, .careless = false, .guards = seed % 3 == 0, .axes = pod.mesh.axes(), .far = true});
    const World world{machine, std::make_shared<TwistedTorus>(*topology), pod.placement};
    ASSERT_TRUE(folding_changes_nothing(schedule, world, seen)) << "seed " << seed << "\n" << to_text(schedule);
  }
  EXPECT_GE(seen.compared, 50);
}

TEST(Fold, AFlowTakesAShareForEachEquivalentOne) {
  const SmallSystem pod = small_system(testing::plain_machine(), {8});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  w.add("three", shift(w.axis(0), 3, part(a, 0, 100), part(a, 100, 100)));
  w.add("back", shift(w.axis(0), -2, part(a, 0, 100), part(a, 100, 100)));
  const Model graph = fold(*testing::model_of(pod, w.schedule));
  const Model torus = *folded(pod, w.schedule);
  for (const Model* model : {&graph, &torus}) {
    ASSERT_EQ(model->nodes(), 1U);
    EXPECT_THAT(model->devices_in, ::testing::ElementsAre(8));
    ASSERT_EQ(model->links.size(), 2U);
    std::vector<std::uint32_t> weights;
    for (const TaskCost& cost : model->costs[0])
      for (const PathLink& link : model->links_of(model->path(cost, 0))) weights.push_back(link.weight);
    EXPECT_THAT(weights, ::testing::ElementsAre(3, 2));
    for (const ModelLink& link : model->links) EXPECT_EQ(link.links, 8U);
  }
}

TEST(Fold, WhatDoesNotFoldComesBackAsItIs) {
  const SmallSystem pod = small_system(testing::plain_machine(), {5}, false);
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  w.add("line", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)), {}, between(w.axis(0), 0, 4));
  const Model model = fold(*testing::model_of(pod, w.schedule));
  EXPECT_FALSE(model.folded());
  EXPECT_EQ(model.nodes(), 5U);
}

// ---- Estimates before the model is made -----------------------------------------------------------------------------------------------

constexpr double no_end = 1e18;

TEST(LeastFoldedSize, IsNeverMoreThanTheFoldedModelHas) {
  int compared = 0, exact = 0, by_guards = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed, stream_of("estimate")};
    RandomScheduleOptions options;
    options.exchanges = seed % 3 == 0;
    options.careless = false;
    options.guards = seed % 2 == 0;
    options.axes = testing::random_axes(rng);
    options.far = true;
    const Schedule schedule = testing::random_schedule(seed, options);
    const World world = testing::random_world(schedule.mesh, testing::costly_machine(rng), rng, {.symmetric = seed % 4 > 0});
    const Deployed deployed = deploy(schedule);
    const auto model = make_model(schedule, world.machine, *world.topology, world.placement);
    if (!deployed.problems.empty() || !model) continue;
    const auto least = least_folded_size(deployed.deployment, world.placement.speed, no_end);
    const Model folded = fold(*model);
    ASSERT_TRUE(least);
    ASSERT_LE(least->classes, folded.nodes());
    ASSERT_LE(least->instances, folded.deployment.activities());
    const FoldedSize guarded = least_guarded_size(schedule, true), each = least_guarded_size(schedule, false);
    ASSERT_LE(guarded.classes, folded.nodes());
    ASSERT_LE(guarded.instances, folded.deployment.activities());
    ASSERT_LE(each.instances, model->deployment.activities());
    by_guards += guarded.classes > 1 && guarded.classes == folded.nodes() ? 1 : 0;
    ++compared;
    exact += least->classes == folded.nodes() && least->instances == folded.deployment.activities();
  }
  EXPECT_GE(compared, 300);
  EXPECT_GE(exact, 100);
  EXPECT_GE(by_guards, 10);
}

TEST(LeastFoldedSize, OfALineIsToldByItsGuardsAlone) {
  // An all-gather on a line in one direction: step s is on the devices from s on, so that all of them differ.
  constexpr int devices = 9;
  const SmallSystem pod = small_system(testing::plain_machine(), {devices, 4}, false);
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  for (int step = 0; step + 1 < devices; ++step)
    w.add("step", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)), {}, between(w.axis(0), step, devices - 1));
  constexpr std::uint64_t in_a_row = devices * (devices - 1) / 2;
  EXPECT_EQ(least_guarded_size(w.schedule, true), (FoldedSize{devices, in_a_row}));
  EXPECT_EQ(least_guarded_size(w.schedule, false), (FoldedSize{4 * devices, 4 * in_a_row}));
  EXPECT_EQ(testing::model_of(pod, w.schedule)->deployment.activities(), 4 * in_a_row);
}

TEST(LeastFoldedSize, SeesStragglersThatMakeEveryDeviceAnother) {
  SmallSystem pod = small_system(testing::plain_machine(), {8, 8});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  const TaskId along = w.add("row", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)));
  w.add("col", shift(w.axis(1), 1, part(a, 0, 100), part(a, 100, 100)), {after(along)});
  const Deployment deployment = deploy(w.schedule).deployment;
  EXPECT_EQ(least_folded_size(deployment, {}, no_end)->classes, 1U);
  pod.placement.speed.assign(64, 1);
  for (const std::size_t slow : {3, 17, 42}) pod.placement.speed[slow] = 0.8;
  const auto least = least_folded_size(deployment, pod.placement.speed, no_end);
  EXPECT_EQ(least->classes, fold(*testing::model_of(pod, w.schedule)).nodes());
  EXPECT_EQ(least->instances, 2U * least->classes);
  const auto enough = least_folded_size(deployment, pod.placement.speed, 10);
  EXPECT_GT(enough->instances, 10U);
  EXPECT_LE(enough->instances, least->instances);
}

// ---- Ended early ----------------------------------------------------------------------------------------------------------------------

TEST(Fold, EndsWhenTold) {
  const SmallSystem pod = small_system(testing::plain_machine(), {6});
  Writer w{pod.mesh};
  const BufferId a = w.scratch("a", {1000});
  w.add("ring", shift(w.axis(0), 1, part(a, 0, 100), part(a, 100, 100)), {}, between(w.axis(0), 0, 6));
  const std::atomic<bool> stop{true};
  const Model model = *testing::model_of(pod, w.schedule);
  EXPECT_TRUE(fold(model).folded());
  EXPECT_FALSE(fold(model, &stop).folded()) << "it comes back as it is";
  EXPECT_EQ(least_folded_size(model.deployment, {1, 1, 1, 1, 1, 0.5}, no_end, &stop), std::nullopt);
  EXPECT_EQ(deploy(w.schedule, &stop).problems, (std::vector<Diagnostic>{cancelled_work()}));
  for (const auto& cancelled : {make_model(w.schedule, pod.machine, pod.grid, pod.placement, &stop),
                                make_folded_model(w.schedule, pod.machine, pod.grid, pod.placement, &stop),
                                cost_deployment(w.schedule, pod.machine, pod.grid, pod.placement, model.deployment, &stop)}) {
    ASSERT_FALSE(cancelled);
    EXPECT_EQ(cancelled.error().cause, Cause::cancelled);
  }
}

}  // namespace
}  // namespace podsim
