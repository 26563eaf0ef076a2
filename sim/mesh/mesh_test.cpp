#include "sim/mesh/mesh.hpp"

#include <gmock/gmock.h>

#include <set>

#include "sim/base/invariant.hpp"
#include "sim/base/rng.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;

Mesh make(std::vector<MeshAxis> axes) {
  Expected<Mesh> mesh = Mesh::make(std::move(axes));
  EXPECT_TRUE(mesh) << (mesh ? "" : mesh.error().message);
  return *mesh;
}

std::string error(std::vector<MeshAxis> axes) { return to_text(Mesh::make(std::move(axes)).error()); }

Mesh random_mesh(Rng& rng) {
  std::vector<MeshAxis> axes;
  for (int i = 0, count = rng.between(0, 4); i < count; ++i) axes.push_back({std::string(1, static_cast<char>('a' + i)), rng.between(1, 6), false});
  return make(axes);
}

TEST(Mesh, IsRowMajorWithTheFirstAxisMostSignificant) {
  const Mesh mesh = make({{"row", 2}, {"col", 3}});
  EXPECT_EQ(mesh.devices(), 6);
  EXPECT_THAT(mesh.coordinates(DeviceId{4}), ElementsAre(1, 1));
  EXPECT_EQ(mesh.device({1, 2}), DeviceId{5});
  EXPECT_EQ(mesh.name(DeviceId{5}), "row=1,col=2");
  EXPECT_EQ(to_text(mesh), "row=2,col=3");
}

TEST(Mesh, WithoutAxesIsOneDevice) {
  const Mesh mesh;
  EXPECT_EQ(mesh.devices(), 1);
  EXPECT_THAT(mesh.coordinates(DeviceId{0}), ElementsAre());
  EXPECT_EQ(mesh.device({}), DeviceId{0});
  EXPECT_EQ(to_text(mesh), "");
  EXPECT_EQ(make({}), mesh);
}

TEST(Mesh, CoordinatesAndDeviceAreInverse) {
  Rng rng{1};
  for (int i = 0; i < 50; ++i) {
    const Mesh mesh = random_mesh(rng);
    for (int device = 0; device < mesh.devices(); ++device) {
      const Coordinates at = mesh.coordinates(DeviceId{device});
      ASSERT_EQ(mesh.device(at), DeviceId{device});
      for (std::size_t axis = 0; axis < at.size(); ++axis) ASSERT_EQ(mesh.coordinate(DeviceId{device}, mesh.whole(static_cast<int>(axis))), at[axis]);
    }
  }
}

TEST(Mesh, ShiftingMovesOneCoordinateModuloItsAxis) {
  Rng rng{2};
  for (int i = 0; i < 2000; ++i) {
    const Mesh mesh = random_mesh(rng);
    if (mesh.axes().empty()) continue;
    const int axis = static_cast<int>(rng.below(mesh.axes().size())), size = mesh.axes()[static_cast<std::size_t>(axis)].size;
    const DeviceId device{static_cast<int>(rng.below(static_cast<std::uint64_t>(mesh.devices())))};
    const int by = rng.between(-40, 40);
    Coordinates expected = mesh.coordinates(device);
    int& moved = expected[static_cast<std::size_t>(axis)];
    moved = ((moved + by) % size + size) % size;
    ASSERT_EQ(mesh.shifted(device, mesh.whole(axis), by), mesh.device(expected)) << to_text(mesh) << " by " << by;
  }
  const Mesh mesh = make({{"row", 5}});
  // 2^63 - 1 is 2 modulo 5, and -2^63 is 2 as well.
  EXPECT_EQ(mesh.shifted(DeviceId{1}, mesh.whole(0), INT64_MAX), DeviceId{3});
  EXPECT_EQ(mesh.shifted(DeviceId{1}, mesh.whole(0), INT64_MIN), DeviceId{3});
}

TEST(MeshFactors, EachGoesRoundByItsOwnDigitWithoutACarry) {
  const Mesh mesh = *Mesh::make({{"row", 3}, {"x", 16, true, {{4, true}, {4, false}}}, {"col", 2}});
  const auto at = [&](int row, int x, int col) { return mesh.device({row, x, col}); };
  EXPECT_EQ(mesh.shifted_by_dimension(at(2, 3, 1), 1, 6), at(2, 5, 1)) << "(0,3) + (1,2) is (1,1), where 3 + 6 carries to 9";
  EXPECT_EQ(mesh.shifted_by_dimension(at(0, 5, 0), 1, -6), at(0, 3, 0));
  for (int from = 0; from < mesh.devices(); ++from) {
    std::set<DeviceId> reached;
    for (int by = 0; by < 16; ++by) {
      const DeviceId to = mesh.shifted_by_dimension(DeviceId{from}, 1, by);
      EXPECT_EQ(mesh.shifted_by_dimension(to, 1, -by), DeviceId{from}) << "back by " << by;
      reached.insert(to);
    }
    EXPECT_EQ(reached.size(), 16U) << "every device along the axis once";
  }
}

TEST(MeshFactors, AreTheDigitsOfTheCoordinateInMixedRadix) {
  const Mesh mesh = make({{"row", 12}, {"col", 5}});
  const std::vector<int> factors = {2, 3, 2};
  for (int device = 0; device < mesh.devices(); ++device) {
    int rebuilt = 0;
    for (int i = 0; i < 3; ++i)
      rebuilt = rebuilt * factors[static_cast<std::size_t>(i)] + mesh.coordinate(DeviceId{device}, mesh.factor(0, factors, i));
    ASSERT_EQ(rebuilt, device / 5);
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(mesh.coordinate(DeviceId{device}, mesh.factor(0, factors, i)),
                coordinate_on(mesh.coordinates(DeviceId{device}), mesh.factor(0, factors, i)));
  }
}

TEST(MeshFactors, HalvingIsAShiftByOneOnAFactorOfTwo) {
  const Mesh mesh = make({{"row", 8}, {"col", 3}});
  for (int device = 0; device < mesh.devices(); ++device)
    for (int bit = 0; bit < 3; ++bit)
      ASSERT_EQ(mesh.shifted(DeviceId{device}, mesh.factor(0, {2, 2, 2}, 2 - bit), 1), DeviceId{((device / 3) ^ (1 << bit)) * 3 + device % 3});
}

TEST(MeshFactors, MustMultiplyToTheAxis) {
  const Mesh mesh = make({{"row", 8}});
  EXPECT_THAT([&] { static_cast<void>(mesh.factor(0, {2, 2}, 0)); }, ::testing::ThrowsMessage<InternalError>(::testing::HasSubstr("multiply to its size")));
}

TEST(Mesh, ViewsAreNamedByStrideAndSize) {
  const Mesh mesh = make({{"row", 8}});
  EXPECT_EQ(mesh.name(mesh.whole(0)), "row");
  EXPECT_EQ(mesh.name(mesh.factor(0, {2, 4}, 0)), "row/4:2");
  EXPECT_EQ(mesh.name(mesh.factor(0, {1, 4, 2}, 1)), "row/2:4");
}

TEST(Mesh, WrapsWhereTheEndsAreNeighbours) {
  const Mesh mesh = make({{"ring", 8, true}, {"line", 8, false}, {"pair", 2, false}, {"one", 1, false}});
  EXPECT_TRUE(mesh.wraps(mesh.whole(0)));
  EXPECT_FALSE(mesh.wraps(mesh.whole(1)));
  EXPECT_TRUE(mesh.wraps(mesh.whole(2)));
  EXPECT_TRUE(mesh.wraps(mesh.whole(3)));
  EXPECT_FALSE(mesh.wraps(mesh.factor(0, {2, 4}, 1))) << "a ring of four is not part of a ring of eight";
  EXPECT_TRUE(mesh.wraps(mesh.factor(1, {2, 4}, 0)));
}

TEST(Mesh, FindsAxesByName) {
  const Mesh mesh = make({{"row", 2}, {"col", 3}});
  EXPECT_EQ(*mesh.axis("col"), (AxisView{1, 1, 3}));
  EXPECT_EQ(mesh.axis("cal").error().message, "no mesh axis \"cal\" in row=2,col=3, did you mean \"col\"?");
  EXPECT_EQ(Mesh{}.axis("x").error().message, "no mesh axis \"x\": the mesh has no axes");
}

TEST(MeshErrors, NameTheAxisAndTheNumber) {
  EXPECT_EQ(error({{"row", 4}, {"", 3}}), "mesh axis 1 (of size 3) needs a name");
  EXPECT_EQ(error({{"row", 4}, {"row", 3}}), "mesh axis \"row\" is named twice");
  EXPECT_EQ(error({{"row", 0}}), "mesh axis \"row\" needs a size of at least 1, got 0");
  EXPECT_EQ(error({{"row", -4}}), "mesh axis \"row\" needs a size of at least 1, got -4");
  EXPECT_TRUE(Mesh::make({{"row", 4096}, {"col", 4096}}));
  EXPECT_EQ(error({{"row", 4096}, {"col", 4097}}), "a mesh has at most 16777216 devices, got 16781312 or more");
  EXPECT_FALSE(Mesh::make({{"a", INT32_MAX}, {"b", INT32_MAX}, {"c", INT32_MAX}}));
}

}  // namespace
}  // namespace podsim
