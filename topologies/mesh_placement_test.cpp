#include "topologies/mesh_placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "sim/base/rng.hpp"
#include "topologies/jax/test_device_mesh.hpp"

namespace podsim {
namespace {

using testing::assigned;
using testing::devices;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::error_of;
using ::testing::HasSubstr;
using testing::Ints;
using Sizes = std::vector<std::pair<std::string, int>>;
using Matrix = std::vector<Ints>;

constexpr DeviceMeshOptions may_split{false, true};

Grid grid(const Ints& extents, const std::vector<bool>& wraps) {
  std::vector<GridDimension> dimensions;
  for (std::size_t d = 0; d < extents.size(); ++d) dimensions.push_back({extents[d], wraps[d], {BytesPerSecond{45e9}, Seconds{1e-6}}});
  return *Grid::make(std::move(dimensions));
}
Grid torus(const Ints& extents) { return grid(extents, std::vector<bool>(extents.size(), true)); }
Grid open_mesh(const Ints& extents) { return grid(extents, std::vector<bool>(extents.size(), false)); }

std::vector<bool> wraps_of(const Mesh& mesh) {
  std::vector<bool> wraps;
  for (const MeshAxis& axis : mesh.axes()) wraps.push_back(axis.wraps);
  return wraps;
}
Ints chips_of(const PlacedMesh& placed) {
  Ints chips;
  for (const ChipId chip : placed.placement.chip_of) chips.push_back(chip.value);
  return chips;
}
std::vector<ChipId> order_of(const Ints& chips) { return {chips.begin(), chips.end()}; }

// ---- On a grid ------------------------------------------------------------------------------------------------------------------------

PlacedMesh placed(const DeviceMesh& mesh, const std::vector<std::string>& names, const Grid& on) {
  const Expected<PlacedMesh> result = place_device_mesh(mesh, names, on);
  EXPECT_TRUE(result) << to_text(result.error());
  return *result;
}

TEST(PlaceDeviceMesh, PutsEveryDeviceOnTheChipAtItsCoordinates) {
  const DeviceMesh mesh = assigned(DeviceKind::tpu_v4, {4, 4, 8}, {16, 8});
  const Grid on = torus({4, 4, 8});
  const PlacedMesh result = placed(mesh, {"data", "model"}, on);
  EXPECT_EQ(to_text(result.mesh), "data=16,model=8");
  for (std::size_t i = 0; i < mesh.devices.size(); ++i)
    EXPECT_THAT(on.coordinates(result.placement.chip_of[i]), ElementsAreArray(mesh.devices[i].coords));
  EXPECT_TRUE(result.placement.core_of.empty());
  EXPECT_EQ(chips_of(placed(assigned(DeviceKind::tpu_v4, {4, 2}, {2, 4}), {"a", "b"}, open_mesh({4, 2}))), (Ints{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST(PlaceDeviceMesh, PutsTwoDevicesOnAChipOfTwoCores) {
  const DeviceMesh mesh = assigned(DeviceKind::tpu_v7, {2, 2, 8}, {32, 2});
  const PlacedMesh result = placed(mesh, {"a", "b"}, torus({2, 2, 8}));
  ASSERT_EQ(result.placement.core_of.size(), 64U);
  std::set<std::pair<int, int>> places;
  for (std::size_t i = 0; i < 64; ++i) {
    places.emplace(result.placement.chip_of[i].value, result.placement.core_of[i]);
    EXPECT_EQ(result.placement.core_of[i], mesh.devices[i].core_on_chip);
  }
  EXPECT_EQ(places.size(), 64U);
}

TEST(PlaceDeviceMesh, AnAxisOfWholeDimensionsWrapsIfAllOfThemDo) {
  const DeviceMesh mesh = assigned(DeviceKind::tpu_v4, {4, 4, 8}, {16, 8});  // 16 on x and y, 8 on z
  const auto wraps = [&](bool x, bool y, bool z) { return wraps_of(placed(mesh, {"a", "b"}, grid({4, 4, 8}, {x, y, z})).mesh); };
  EXPECT_THAT(wraps(true, true, true), ElementsAre(true, true));
  EXPECT_THAT(wraps(true, true, false), ElementsAre(true, false));
  EXPECT_THAT(wraps(false, true, true), ElementsAre(false, true));
  EXPECT_THAT(wraps(true, false, true), ElementsAre(false, true));
}

TEST(PlaceDeviceMesh, ExtentsOfOneAndTwoAndTheCoresOfAChipCountAsWrapped) {
  EXPECT_THAT(wraps_of(placed(assigned(DeviceKind::tpu_v4, {2, 2, 4}, {4, 4}), {"a", "b"}, open_mesh({2, 2, 4})).mesh), ElementsAre(false, true));
  EXPECT_THAT(wraps_of(placed(assigned(DeviceKind::tpu_v4, {4, 4, 1}, {4, 4}), {"a", "b"}, grid({4, 4, 1}, {true, true, false})).mesh),
              ElementsAre(true, true));
  const DeviceMesh cores = assigned(DeviceKind::tpu_v7, {2, 2, 8}, {32, 2});
  EXPECT_EQ(cores.assignment, (Matrix{{1, 2}, {2, 1}, {8, 1}, {2, 1}}));
  EXPECT_THAT(wraps_of(placed(cores, {"a", "b"}, torus({2, 2, 8})).mesh), ElementsAre(true, true));
  EXPECT_THAT(wraps_of(placed(cores, {"a", "b"}, open_mesh({2, 2, 8})).mesh), ElementsAre(false, true));
}

TEST(PlaceDeviceMesh, AnAxisWithAPartOfADimensionDoesNotWrap) {
  const DeviceMesh mesh = assigned(DeviceKind::tpu_v4, {4, 4, 8}, {4, 2, 16}, may_split);  // z: 4 and 2
  EXPECT_EQ(mesh.assignment, (Matrix{{1, 1, 4}, {1, 1, 4}, {4, 2, 1}}));
  EXPECT_THAT(wraps_of(placed(mesh, {"a", "b", "c"}, torus({4, 4, 8})).mesh), ElementsAre(false, true, true));  // a size of 2 counts as wrapped
}

TEST(PlaceDeviceMesh, RingsOfAKindWrapWhereTheirEndsMeet) {
  const auto wraps = [](const Ints& extents, const Ints& shape) {
    const DeviceMesh mesh = assigned(DeviceKind::tpu_v5e, extents, shape);
    EXPECT_EQ(mesh.origin, MeshOrigin::kind_order);
    return wraps_of(placed(mesh, {"a", "b"}, open_mesh(extents)).mesh);
  };
  EXPECT_THAT(wraps({4, 4}, {1, 16}), ElementsAre(true, true));
  EXPECT_THAT(wraps({4, 2}, {1, 8}), ElementsAre(true, true));
  EXPECT_THAT(wraps({4, 2}, {2, 4}), ElementsAre(true, false));  // 0,1,2,3 is an open line
  EXPECT_THAT(wraps({2, 2}, {4, 1}), ElementsAre(true, true));
}

TEST(PlaceDeviceMesh, RefusesWhatIsNotOnTheGrid) {
  const DeviceMesh mesh = assigned(DeviceKind::tpu_v4, {4, 4, 1}, {4, 4});
  const auto error = [](const DeviceMesh& of, const Ints& extents, const std::vector<std::string>& names) {
    return error_of(place_device_mesh(of, names, torus(extents)));
  };
  EXPECT_EQ(error(mesh, {4, 4}, {"a"}), "expected 2 axis names for the mesh (4,4), got 1");
  EXPECT_EQ(error(mesh, {4, 4}, {"a", "a"}), error_of(Mesh::make({{"a", 4, false}, {"a", 4, false}})));
  EXPECT_EQ(error(mesh, {4, 8}, {"a", "b"}), "expected devices for every chip of the slice 4x8, 32 chips, got 16 for the mesh (4,4)");
  EXPECT_EQ(error(mesh, {4, 3}, {"a", "b"}), "expected devices for every chip of the slice 4x3, 12 chips, got 16 for the mesh (4,4)");
  EXPECT_EQ(error(mesh, {2, 8}, {"a", "b"}), "expected devices of the slice 2x8, 1 per chip, got device 2 at (2,0,0), core 0");
  EXPECT_EQ(error(mesh, {16}, {"a", "b"}), "expected devices of the slice 16, 1 per chip, got device 4 at (0,1,0), core 0");
  EXPECT_EQ(error(assigned(DeviceKind::tpu_v7, {2, 2, 4}, {32}), {2, 4, 4}, {"a"}),
            "expected devices of the slice 2x4x4, 1 per chip, got device 1 at (0,0,0), core 1");
  DeviceMesh twice = mesh;
  twice.devices[1] = twice.devices[0];
  EXPECT_EQ(error(twice, {4, 4}, {"a", "b"}), "expected every device once, got two at (0,0,0), core 0");
  const DeviceMesh hybrid = *assign_hybrid_device_mesh(DeviceKind::tpu_v4, devices(DeviceKind::tpu_v4, {2, 2, 1}, 4), {2, 2}, {2, 2});
  EXPECT_EQ(error(hybrid, {4, 4}, {"a", "b"}), "expected devices of one slice, got slices 0 and 1");
}

TEST(PlaceDeviceMesh, GpusByIdAreTheRowMajorMesh) {
  const DeviceMesh mesh = assigned(DeviceKind::gpu, {4, 8}, {4, 8});
  const Grid on = grid({4, 8}, {false, true});
  EXPECT_EQ(placed(mesh, {"a", "b"}, on).mesh, *mesh_over(on, {{"a", 4}, {"b", 8}}));
  EXPECT_EQ(placed(mesh, {"a", "b"}, on).placement.chip_of, row_major_order(on));
}

// ---- Other orders ---------------------------------------------------------------------------------------------------------------------

bool adjacent(const Grid& grid, ChipId a, ChipId b) {
  const Ints at_a = grid.coordinates(a), at_b = grid.coordinates(b);
  int distance = 0;
  for (std::size_t d = 0; d < at_a.size(); ++d) distance += std::abs(at_a[d] - at_b[d]);
  return distance == 1;
}

TEST(SnakeOrder, VisitsEveryChipAndOnlyStepsToNeighbours) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng{seed, stream_of("snake")};
    Ints extents(static_cast<std::size_t>(seed % 4 + 1));
    for (int& extent : extents) extent = rng.between(1, 5);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, fmt::join(extents, "x")));
    const Grid on = open_mesh(extents);
    const std::vector<ChipId> order = snake_order(on);
    EXPECT_EQ(std::set<ChipId>(order.begin(), order.end()).size(), static_cast<std::size_t>(on.chips()));
    for (std::size_t i = 1; i < order.size(); ++i) EXPECT_TRUE(adjacent(on, order[i - 1], order[i]));
  }
  EXPECT_EQ(snake_order(open_mesh({3, 3})), order_of({0, 1, 2, 5, 4, 3, 6, 7, 8}));
  EXPECT_EQ(snake_order(open_mesh({2, 2, 2})), order_of({0, 1, 3, 2, 6, 7, 5, 4}));
}

TEST(PlaceInOrder, RowMajorIsTheRowMajorMesh) {
  for (const Grid& on : {torus({4, 4, 8}), grid({4, 4, 8}, {true, false, true}), open_mesh({4, 4, 8}), grid({4, 4, 8}, {true, false, false})})
    for (const Sizes& sizes : {Sizes{{"a", 128}}, Sizes{{"a", 16}, {"b", 8}}, Sizes{{"a", 2}, {"b", 64}}, Sizes{{"a", 4}, {"b", 8}, {"c", 4}}}) {
      const Expected<PlacedMesh> result = place_in_order(on, sizes, row_major_order(on));
      ASSERT_TRUE(result);
      EXPECT_EQ(result->mesh, *mesh_over(on, sizes));
      EXPECT_EQ(result->placement, *place_row_major(result->mesh, on));
    }
}

TEST(PlaceInOrder, ASnakeWrapsWhereItsEndsMeet) {
  const auto wraps = [](const Grid& on, const Sizes& sizes) { return wraps_of(place_in_order(on, sizes, snake_order(on))->mesh); };
  EXPECT_THAT(wraps(open_mesh({2, 4}), {{"ring", 8}}), ElementsAre(true));    // it comes back beside its start
  EXPECT_THAT(wraps(open_mesh({4, 4}), {{"ring", 16}}), ElementsAre(false));  // it ends in another corner
  EXPECT_THAT(wraps(grid({4, 4}, {true, false}), {{"ring", 16}}), ElementsAre(true));
  EXPECT_THAT(wraps(grid({3, 4}, {true, false}), {{"ring", 12}}), ElementsAre(false));
  EXPECT_THAT(wraps(grid({4, 4}, {true, false}), {{"a", 4}, {"b", 4}}), ElementsAre(true, false));  // a: columns, b: rows
  EXPECT_THAT(wraps(grid({4, 4}, {false, true}), {{"a", 4}, {"b", 4}}), ElementsAre(false, true));
}

TEST(PlaceInOrder, KeepsTheOrderAndRefusesMeshesOfOtherSizes) {
  const Grid on = open_mesh({2, 2});
  EXPECT_EQ(place_in_order(on, {{"a", 2}, {"b", 2}}, order_of({3, 1, 2, 0}))->placement.chip_of, order_of({3, 1, 2, 0}));
  const auto cores = place_in_order(on, {{"a", 8}}, snake_order(on), 2);
  ASSERT_TRUE(cores);
  EXPECT_EQ(cores->placement.chip_of, order_of({0, 0, 1, 1, 3, 3, 2, 2}));
  EXPECT_EQ(cores->placement.core_of, (std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(error_of(place_in_order(on, {{"a", 8}}, row_major_order(on))), "expected a mesh of 4 devices for the slice 2x2, got a=8 with 8");
  EXPECT_EQ(error_of(place_in_order(on, {{"a", 0}}, row_major_order(on))), error_of(Mesh::make({{"a", 0, false}})));
}

TEST(ParseDeviceOrder, ReadsWhiteSpaceAndComments) {
  const Grid on = open_mesh({2, 3});
  for (const char* text : {"5 4 3 2 1 0", "5\n4\n3\n2\n1\n0\n", "# a comment 7\r\n5\t4 3 # 9\n\n  2 1#x\n0"})
    EXPECT_EQ(*parse_device_order(text, "f", on), order_of({5, 4, 3, 2, 1, 0})) << text;
  EXPECT_EQ(*parse_device_order("0", "f", open_mesh({1})), order_of({0}));
}

TEST(ParseDeviceOrder, SaysWhereAndWhatIsWrong) {
  const Grid on = open_mesh({2, 3});
  const auto error = [&](std::string_view text) { return error_of(parse_device_order(text, "o.txt", on)); };
  EXPECT_EQ(error("0 1\n 6"), "o.txt:2:2: expected a device from 0 to 5 of the slice 2x3, got \"6\"");
  EXPECT_EQ(error("0 1 # 2\n\t-1"), "o.txt:2:2: expected a device from 0 to 5 of the slice 2x3, got \"-1\"");
  EXPECT_EQ(error("0,1"), "o.txt:1:1: expected a device from 0 to 5 of the slice 2x3, got \"0,1\"");
  for (const char* text : {"x", "1.0", "1e0", "99999999999999999999", "\x01"})
    EXPECT_THAT(error(text), HasSubstr("o.txt:1:1: expected a device")) << text;
  EXPECT_EQ(error("0 1\n2 1"), "o.txt:2:3: expected every device once, got 1 again, which is listed at 1:3");
  EXPECT_EQ(error("0 1 2\n3\n"), "o.txt:3:1: expected all 6 devices of the slice 2x3, got 4; missing: 4, 5");
  EXPECT_EQ(error(""), "o.txt:1:1: expected all 6 devices of the slice 2x3, got 0; missing: 0, 1, 2, 3, 4, ...");
  EXPECT_EQ(error("0 # 1"), "o.txt:1:6: expected all 6 devices of the slice 2x3, got 1; missing: 1, 2, 3, 4, 5");
}

// ---- On listed devices --------------------------------------------------------------------------------------------------------------

TEST(PlaceOnDevices, AxesWrapByTheHopsOfRoutes) {
  const auto wraps = [](const Topology& on, int cores, const Sizes& sizes, const Ints& listed) {
    const Expected<PlacedMesh> placed = place_on_devices(on, cores, sizes, listed);
    EXPECT_TRUE(placed) << to_text(placed.error());
    for (const MeshAxis& axis : placed->mesh.axes()) EXPECT_TRUE(axis.factors.empty());
    return wraps_of(placed->mesh);
  };
  const std::vector<bool> yes{true}, no{false};
  EXPECT_EQ(wraps(torus({8}), 1, {{"a", 4}}, {0, 2, 4, 6}), yes);
  EXPECT_EQ(wraps(torus({8}), 1, {{"a", 4}}, {0, 1, 2, 3}), no);
  EXPECT_EQ(wraps(torus({8}), 1, {{"a", 4}}, {0, 1, 3, 2}), yes) << "2 hops back to the first, as between 1 and 3";
  EXPECT_EQ(wraps(open_mesh({8}), 1, {{"a", 4}}, {0, 2, 4, 6}), no);
  EXPECT_EQ(wraps(open_mesh({2, 2}), 1, {{"a", 4}}, {0, 1, 3, 2}), yes);
  EXPECT_EQ(wraps(open_mesh({4}), 2, {{"a", 4}}, {0, 1, 2, 3}), yes) << "the devices of two neighbouring chips";
  EXPECT_EQ(wraps(open_mesh({4}), 2, {{"a", 3}}, {0, 2, 4}), no);
  EXPECT_EQ(wraps(torus({4, 4}), 1, {{"a", 2}, {"b", 4}}, {0, 1, 2, 3, 4, 5, 6, 10}), (std::vector<bool>{true, false})) << "one line of two is no ring";
}

TEST(PlaceOnDevices, PlacesRowMajor) {
  const auto placed = place_on_devices(torus({2, 2}), 2, {{"a", 2}, {"b", 2}}, {7, 0, 2, 5});
  ASSERT_TRUE(placed) << to_text(placed.error());
  EXPECT_THAT(chips_of(*placed), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(placed->placement.core_of, ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(error_of(place_on_devices(torus({4}), 1, {{"a", 2}, {"b", 2}}, {1, 2, 3})), "expected 4 devices, as many as the mesh a=2,b=2 has, found 3");
  EXPECT_EQ(error_of(place_on_devices(torus({4}), 1, {{"a", 0}}, {})), error_of(Mesh::make({{"a", 0, false}})));
}

TEST(PlaceOnDevices, AllDevicesInSomeOrderArePlacedAsAnOrderIs) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng{seed, 7};
    const Ints extents{rng.between(1, 4), rng.between(1, 4)};
    const Grid on = grid(extents, {rng.below(2) == 0, rng.below(2) == 0});
    Ints order(static_cast<std::size_t>(on.chips()));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) std::swap(order[i], order[i + rng.below(order.size() - i)]);
    if (std::is_sorted(order.begin(), order.end())) continue;  // has the stricter rule of mesh_over()
    const Sizes sizes{{"a", extents[1]}, {"b", extents[0]}};
    const auto listed = place_on_devices(on, 1, sizes, order), ordered = place_in_order(on, sizes, order_of(order));
    ASSERT_TRUE(listed && ordered) << seed;
    EXPECT_EQ(*listed, *ordered) << seed;
  }
}

}  // namespace
}  // namespace podsim
