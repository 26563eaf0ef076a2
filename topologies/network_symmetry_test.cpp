// What permutes chips of a network of switches keeps its routes; schedules fold by it as they do without.
#include <gtest/gtest.h>

#include <numeric>

#include "sim/engine/table/test_agreement.hpp"
#include "sim/model/test_shifts.hpp"
#include "sim/model/translations.hpp"
#include "sim/schedule/text.hpp"
#include "topologies/networks.hpp"

namespace podsim {
namespace {

using Dimensions = std::vector<Symmetry::Dimension>;

constexpr LinkParameters outer{BytesPerSecond{1e9}, Seconds{1e-6}}, inner{BytesPerSecond{7e9}, Seconds{2e-6}};

std::shared_ptr<const Network> shared(Expected<Network> network) {
  EXPECT_TRUE(network) << to_text(network.error());
  return std::make_shared<const Network>(*std::move(network));
}

/// A permutation of the coordinates along each dimension that permits it.
std::vector<std::vector<int>> random_permutations(const Dimensions& dimensions, Rng& rng) {
  std::vector<std::vector<int>> permutations;
  for (const Symmetry::Dimension& dimension : dimensions) {
    auto& permutation = permutations.emplace_back(static_cast<std::size_t>(dimension.extent));
    std::iota(permutation.begin(), permutation.end(), 0);
    if (dimension.permutes)
      for (std::size_t i = permutation.size(); i > 1; --i) std::swap(permutation[i - 1], permutation[rng.below(i)]);
  }
  return permutations;
}

ChipId permuted(ChipId chip, const Dimensions& dimensions, const std::vector<std::vector<int>>& permutations) {
  int rest = chip.value, stride = 1, result = 0;
  for (std::size_t d = dimensions.size(); d-- > 0;) {
    result += permutations[d][static_cast<std::size_t>(rest % dimensions[d].extent)] * stride;
    rest /= dimensions[d].extent;
    stride *= dimensions[d].extent;
  }
  return ChipId{result};
}

TEST(NetworkSymmetry, PermutationsTakeRoutesToRoutes) {
  for (const auto& network : {shared(crossbar(12, outer)), shared(rail(6, 4, outer, inner)), shared(rail(1, 8, outer, inner)), shared(fat_tree(24, 4, 1, outer)),
                              shared(fat_tree(24, 4, 2, outer)), shared(fat_tree(36, 6, 1.5, outer)), shared(fat_tree(22, 4, 1, outer))}) {
    const Symmetry& symmetry = *network->symmetry();
    const Dimensions dimensions = symmetry.symmetric_dimensions();
    Rng rng{1, stream_of("permutations")};
    for (int trial = 0; trial < 20; ++trial) {
      const auto permutations = random_permutations(dimensions, rng);
      for (int from = 0; from < network->chips(); ++from)
        for (int to = 0; to < network->chips(); ++to) {
          std::vector<LinkId> route, image;
          ASSERT_TRUE(network->route(ChipId{from}, ChipId{to}, {}, route));
          ASSERT_TRUE(network->route(permuted(ChipId{from}, dimensions, permutations), permuted(ChipId{to}, dimensions, permutations), {}, image));
          for (LinkId& link : route) {
            const LinkId own = link;
            link = symmetry.moved_to(own, permuted(symmetry.chip_at(own), dimensions, permutations));
            EXPECT_EQ(network->link(own), network->link(link));
          }
          ASSERT_EQ(route, image) << network->chips() << " chips, " << from << " to " << to;
        }
    }
  }
}

TEST(NetworkSymmetry, WhatTurnsADimensionMovesEveryLink) {
  for (const auto& network : {shared(crossbar(12, outer)), shared(rail(6, 4, outer, inner)), shared(fat_tree(24, 4, 2, outer)), shared(fat_tree(36, 6, 1.5, outer))}) {
    const Symmetry& symmetry = *network->symmetry();
    const Dimensions dimensions = symmetry.symmetric_dimensions();
    int stride = network->chips(), turned = 0;
    for (const Symmetry::Dimension& dimension : dimensions) {
      stride /= dimension.extent;
      for (int by = 1; by < dimension.extent && dimension.turns; ++by)
        for (int link = 0; link < network->link_slots(); ++link, ++turned) {
          const int chip = symmetry.chip_at(LinkId{link}).value, at = chip / stride % dimension.extent;
          EXPECT_NE(symmetry.moved_to(LinkId{link}, ChipId{chip + ((at + by) % dimension.extent - at) * stride}), LinkId{link});
        }
    }
    EXPECT_GT(turned, 0);
  }
}

/// Of a mesh that lies on the network anyhow.
TEST(NetworkSymmetry, ByTranslationsIsTheFoldedModel) {
  testing::Folds seen;
  testing::ShiftKinds kinds;
  int translated = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed, stream_of("networks")};
    const int devices = std::vector{8, 12, 16, 24, 36}[rng.below(5)], part = testing::random_factors(devices, rng).back();
    const Machine machine = testing::costly_machine(rng);
    const std::shared_ptr<const Network> network = seed % 3 == 0   ? shared(crossbar(devices, machine.link[0]))
                                                   : seed % 3 == 1 ? shared(rail(devices / part, part, machine.link[0], machine.link[1]))
                                                                   : shared(fat_tree(devices, part, rng.below(2) == 0 ? 1 : 2, machine.link[0]));
    const testing::World world{machine, network, *place_row_major(*Mesh::make({{"x", devices, true}}), *Grid::make({{devices, true, {}}}))};
    std::vector<MeshAxis> axes = testing::random_axes_of(devices, seed % 2 == 0, rng);
    if (seed % 3 > 0)
      for (MeshAxis& axis : axes) axis.wraps = true;
    const Schedule schedule = testing::random_shifts(axes, kinds, rng);
    const auto by_translations = fold_by_translations(schedule, machine, *network, world.placement);
    const auto model = make_model(schedule, machine, *network, world.placement);
    ASSERT_TRUE(by_translations) << to_text(by_translations.error());
    if (!*by_translations || !model) continue;
    ++translated;
    EXPECT_EQ((*by_translations)->nodes(), fold(*model).nodes()) << "no class is missed\n" << to_text(schedule);
    ASSERT_TRUE(testing::folded_is_unfolded(*model, **by_translations, seen)) << to_text(schedule);
  }
  EXPECT_GE(translated, 400);
  EXPECT_GE(kinds.by_dimension, 300);
}

/// Ranks 0 to 11 on 3 nodes of 4, each sending to all others by rank: nodes are alike. By dimension all GPUs are.
TEST(NetworkSymmetry, AnAllToAllFoldsByNodesOrToOneClass) {
  Rng rng{1, stream_of("machine")};
  const Machine machine = testing::costly_machine(rng);
  const auto network = shared(rail(3, 4, machine.link[0], machine.link[1]));
  for (const bool by_dimension : {false, true}) {
    testing::Writer w{{{"x", 12, true, {{3, true}, {4, true}}}}};
    const BufferId a = w.scratch("a", {1000});
    for (int by = 1; by < 12; ++by) {
      const TaskId task = w.add("by", testing::shift(w.axis(0), by, testing::part(a, 0, 10), testing::part(a, 100, 10)));
      std::get<Shift>(w.task(task).op).by_dimension = by_dimension;
    }
    const Placement placement = *place_row_major(w.schedule.mesh, *Grid::make({{12, true, {}}}));
    const auto translations = translations_of(w.schedule, *network, placement);
    ASSERT_TRUE(translations);
    EXPECT_EQ(translations->size(), by_dimension ? 12U : 3U);
  }
}

}  // namespace
}  // namespace podsim
