#include "sim/topology/placement.hpp"

#include <gmock/gmock.h>

#include "sim/topology/test_grids.hpp"

namespace podsim {
namespace {

using test::grid;
using test::open_mesh;
using test::random_grid;
using test::torus;
using ::testing::ElementsAre;

using Sizes = std::vector<std::pair<std::string, int>>;

/// Whether each axis of the mesh over the grid wraps.
std::vector<bool> wraps(const Grid& grid, const Sizes& sizes) {
  const Expected<Mesh> mesh = mesh_over(grid, sizes);
  EXPECT_TRUE(mesh) << (mesh ? "" : mesh.error().message);
  std::vector<bool> result;
  for (const MeshAxis& axis : mesh->axes()) result.push_back(axis.wraps);
  return result;
}

TEST(PlaceRowMajor, PutsDeviceIOnChipI) {
  const Grid slice = torus({2, 3});
  const Expected<Placement> placement = place_row_major(*mesh_over(slice, {{"x", 3}, {"y", 2}}), slice);
  ASSERT_TRUE(placement);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(placement->chip_of[ChipId{i}.index()], ChipId{i});
  EXPECT_EQ(placement->chip_of.size(), 6u);
}

TEST(PlaceRowMajor, NamesBothNumbersAndAMeshThatFits) {
  const Mesh mesh = *Mesh::make({{"row", 32}, {"col", 8}});
  const std::string message = "the mesh row=32,col=8 has 256 devices, but the slice 4x4x8 has 128 chips; row=4,col=4,depth=8 fits";
  EXPECT_EQ(place_row_major(mesh, torus({4, 4, 8})).error().message, message);
  EXPECT_EQ(mesh_over(torus({4, 4, 8}), {{"row", 32}, {"col", 8}}).error().message, message);
}

TEST(MeshOver, TakesOneAxisPerDimension) {
  EXPECT_THAT(wraps(grid({4, 8}, {true, false}), {{"row", 4}, {"col", 8}}), ElementsAre(true, false));
  EXPECT_THAT(wraps(grid({4, 8}, {false, true}), {{"row", 4}, {"col", 8}}), ElementsAre(false, true));
}

TEST(MeshOver, AFoldedAxisWrapsIfAllItsDimensionsDo) {
  EXPECT_THAT(wraps(torus({4, 4, 8}), {{"x", 16}, {"y", 8}}), ElementsAre(true, true));
  EXPECT_THAT(wraps(torus({4, 4, 8}), {{"x", 4}, {"y", 32}}), ElementsAre(true, true));
  EXPECT_THAT(wraps(torus({4, 4, 8}), {{"all", 128}}), ElementsAre(true));
  EXPECT_THAT(wraps(grid({4, 4, 8}, {true, false, true}), {{"x", 16}, {"y", 8}}), ElementsAre(false, true));
  EXPECT_THAT(wraps(grid({4, 4, 8}, {true, true, false}), {{"x", 16}, {"y", 8}}), ElementsAre(true, false));
}

TEST(MeshOver, ExtentsOneAndTwoWrapOpenOrNot) {
  EXPECT_THAT(wraps(grid({2, 4}, {false, true}), {{"all", 8}}), ElementsAre(true));
  EXPECT_THAT(wraps(grid({4, 1}, {true, false}), {{"x", 4}, {"y", 1}}), ElementsAre(true, true));
  EXPECT_THAT(wraps(grid({1, 4, 1}, {false, true, false}), {{"x", 4}}), ElementsAre(true));
  EXPECT_THAT(wraps(grid({1, 4, 1}, {false, false, false}), {{"x", 4}}), ElementsAre(false));
}

TEST(MeshOver, AnAxisOverPartOfADimensionDoesNotWrap) {
  EXPECT_THAT(wraps(torus({16}), {{"x", 4}, {"y", 4}}), ElementsAre(false, false));
  EXPECT_THAT(wraps(torus({4, 8}), {{"x", 8}, {"y", 4}}), ElementsAre(false, false));
  EXPECT_THAT(wraps(torus({8, 4}), {{"x", 4}, {"y", 8}}), ElementsAre(false, false));
  EXPECT_THAT(wraps(torus({4, 6, 4}), {{"x", 12}, {"y", 8}}), ElementsAre(false, false));
}

TEST(MeshOver, OverSwitchesPartsWrapAndAreFactors) {
  // 16 nodes of 8 on switches: half of the nodes are as good a ring as all of them.
  const Grid nodes = *Grid::make({{16, true, {}, true}, {8, true, {}, true}});
  const auto factors_of = [](const Grid& grid, const Sizes& sizes, std::size_t axis) { return mesh_over(grid, sizes)->axes()[axis].factors; };
  EXPECT_THAT(wraps(nodes, {{"data", 2}, {"fsdp", 64}}), ElementsAre(true, true));
  EXPECT_THAT(factors_of(nodes, {{"data", 2}, {"fsdp", 64}}, 1), ElementsAre(MeshFactor{8, true}, MeshFactor{8, true}));
  EXPECT_THAT(wraps(nodes, {{"x", 4}, {"y", 8}, {"z", 4}}), ElementsAre(true, true, true));
  EXPECT_THAT(factors_of(nodes, {{"x", 4}, {"y", 8}, {"z", 4}}, 1), ElementsAre(MeshFactor{4, true}, MeshFactor{2, true}));
  EXPECT_THAT(wraps(nodes, {{"x", 32}, {"y", 4}}), ElementsAre(true, true));
  // Part of a ring of cables is a line, so the axis does not wrap; an axis that mixes coordinates has no parts.
  const Grid mixed = *Grid::make({{16, true, {}}, {8, true, {}, true}});
  EXPECT_THAT(wraps(mixed, {{"data", 4}, {"fsdp", 32}}), ElementsAre(false, false));
  EXPECT_THAT(factors_of(mixed, {{"data", 4}, {"fsdp", 32}}, 1), ElementsAre(MeshFactor{4, false}, MeshFactor{8, true}));
  EXPECT_TRUE(factors_of(torus({4, 6}), {{"x", 6}, {"y", 4}}, 0).empty());
  EXPECT_THAT(wraps(*Grid::make({{4, true, {}, true}, {6, true, {}, true}}), {{"x", 6}, {"y", 4}}), ElementsAre(false, false));
}

TEST(MeshOver, AnAxisOfSizeTwoCountsAsWrapped) {
  EXPECT_THAT(wraps(open_mesh({8}), {{"x", 2}, {"y", 4}}), ElementsAre(true, false));
  EXPECT_THAT(wraps(open_mesh({4, 4}), {{"x", 4}, {"y", 1}, {"z", 4}}), ElementsAre(false, true, false));
}

TEST(MeshOver, PassesOnWhatIsWrongWithTheAxes) {
  EXPECT_EQ(mesh_over(torus({4}), {{"x", 2}, {"x", 2}}).error().message, "mesh axis \"x\" is named twice");
  EXPECT_EQ(mesh_over(torus({4}), {{"x", 0}}).error().message, "mesh axis \"x\" needs a size of at least 1, got 0");
}

TEST(DefaultMesh, HasOneAxisPerDimension) {
  const Expected<Mesh> mesh = default_mesh(grid({4, 3, 5, 6}, {true, false, true, false}));
  ASSERT_TRUE(mesh);
  EXPECT_THAT(mesh->axes(),
              ElementsAre(MeshAxis{"row", 4, true}, MeshAxis{"col", 3, false}, MeshAxis{"depth", 5, true}, MeshAxis{"axis3", 6, false}));
}

// The rule in words: the axis wraps if the chips that differ in it alone can be cut into whole dimensions, all of which wrap.
TEST(DefaultMesh, WrapsWhereTheGridDoes) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Grid slice = random_grid(seed);
    const Expected<Mesh> mesh = default_mesh(slice);
    ASSERT_TRUE(mesh);
    for (std::size_t d = 0; d < slice.dimensions().size(); ++d) {
      const GridDimension& dimension = slice.dimensions()[d];
      ASSERT_EQ(mesh->wraps(mesh->whole(static_cast<int>(d))), dimension.wraps || dimension.extent <= 2);
    }
  }
}

}  // namespace
}  // namespace podsim
