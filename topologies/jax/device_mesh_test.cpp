#include "topologies/jax/device_mesh.hpp"

#include <bit>
#include <cstdlib>
#include <fstream>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "sim/base/rng.hpp"
#include "topologies/jax/test_device_mesh.hpp"

namespace podsim {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using testing::assigned;
using testing::devices;
using testing::error_of;
using testing::Ints;
using Matrix = std::vector<Ints>;

constexpr DeviceMeshOptions splitting{false, true};
constexpr DeviceMeshOptions contiguous{true, false};
constexpr std::array all_kinds = {DeviceKind::cpu,    DeviceKind::gpu,     DeviceKind::tpu_v2,  DeviceKind::tpu_v3,  DeviceKind::tpu_v4_lite,
                                  DeviceKind::tpu_v4, DeviceKind::tpu_v5e, DeviceKind::tpu_v5p, DeviceKind::tpu_v6e, DeviceKind::tpu_v7};

Ints ids_of(const std::vector<JaxDevice>& list) {
  Ints ids;
  for (const JaxDevice& device : list) ids.push_back(device.id);
  return ids;
}

Ints ids(DeviceKind kind, const Ints& extents, const Ints& shape, const DeviceMeshOptions& options = {}) {
  return device_ids(assigned(kind, extents, shape, options));
}
Matrix assignment(const Ints& extents, const Ints& shape, const DeviceMeshOptions& options = {}) {
  return assigned(DeviceKind::tpu_v4, extents, shape, options).assignment;
}

std::string error(DeviceKind kind, const Ints& extents, const Ints& shape, const DeviceMeshOptions& options = {}) {
  return error_of(assign_device_mesh(kind, devices(kind, extents), shape, options));
}

int product(const Ints& sizes) { return std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>{}); }
int column_product(const Matrix& matrix, std::size_t column) {
  int result = 1;
  for (const Ints& row : matrix) result *= row[column];
  return result;
}



/// FIPS 180-4, for the golden file's checksums.
std::string sha256(std::string text) {
  static constexpr std::array<std::uint32_t, 64> k = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
      0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
      0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
      0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
      0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
      0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  std::array<std::uint32_t, 8> h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const std::uint64_t bits = text.size() * 8;
  text += '\x80';
  while (text.size() % 64 != 56) text += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(bits >> shift & 0xff);
  for (std::size_t block = 0; block < text.size(); block += 64) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | static_cast<unsigned char>(text[block + i]);
    for (std::size_t i = 16; i < 64; ++i)
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3) +
             (std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10);
    auto [a, b, c, d, e, f, g, last] = h;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t t1 = last + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
      const std::uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      last = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<std::uint32_t, 8> sum = {a, b, c, d, e, f, g, last};
    for (std::size_t i = 0; i < 8; ++i) h[i] += sum[i];
  }
  return fmt::format("{:08x}", fmt::join(h, ""));
}

Json golden() {
  std::ifstream stream(std::string(PODSIM_SOURCE_DIR) + "/topologies/testdata/device_mesh_golden.json");
  return Json::parse(stream);
}

// ---- What JAX itself answered ---------------------------------------------------------------------------------------------------------

TEST(DeviceMeshGolden, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(DeviceMeshGolden, EveryCaseIsReproduced) {
  const Json cases = golden().at("cases");
  ASSERT_EQ(cases.size(), 34U);
  for (const Json& expected : cases) {
    const auto extents = expected.at("physical").get<Ints>(), shape = expected.at("logical").get<Ints>();
    SCOPED_TRACE(fmt::format("{} on {}", fmt::join(shape, ","), fmt::join(extents, "x")));
    const bool whole = expected.at("mode") == "whole_axes";
    EXPECT_THAT(error(DeviceKind::tpu_v4, extents, shape), HasSubstr(whole ? "accepted" : "physical axes are split only where that is allowed"));
    const DeviceMesh mesh = assigned(DeviceKind::tpu_v4, extents, shape, whole ? DeviceMeshOptions{} : splitting);
    EXPECT_EQ(mesh.origin, whole ? MeshOrigin::whole_axes : MeshOrigin::split_axes);
    EXPECT_EQ(mesh.shape, shape);
    EXPECT_EQ(mesh.assignment, expected.at("assignment").get<Matrix>());
    const Ints ids = device_ids(mesh);
    if (expected.contains("device_ids_row_major")) {
      EXPECT_EQ(ids, expected.at("device_ids_row_major").get<Ints>());
    } else {
      EXPECT_EQ(Ints(ids.begin(), ids.begin() + 16), expected.at("first16").get<Ints>());
      EXPECT_EQ(sha256(fmt::format("{}", fmt::join(ids, ","))), expected.at("sha256_of_comma_joined_ids"));
    }
  }
}

TEST(DeviceMeshGolden, DevicesAreListedInTheSameOrder) {
  const Json orders = golden().at("devices_order");
  ASSERT_EQ(orders.size(), 5U);
  for (const auto& [slice, expected] : orders.items()) {
    Ints extents(3);
    ASSERT_EQ(std::sscanf(slice.c_str(), "%dx%dx%d", &extents[0], &extents[1], &extents[2]), 3) << slice;
    EXPECT_EQ(ids_of(devices(DeviceKind::tpu_v4, extents)), expected.get<Ints>()) << slice;
  }
}

// ---- The list of devices --------------------------------------------------------------------------------------------------------------

TEST(JaxDevices, AreListedHostByHost) {
  const std::vector<JaxDevice> list = devices(DeviceKind::tpu_v4, {4, 4, 1});
  EXPECT_THAT(ids_of(list), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  for (std::size_t i = 0; i < list.size(); ++i) EXPECT_EQ(list[i].process_index, static_cast<int>(i / 4));
  EXPECT_EQ(list[4], (JaxDevice{2, 1, {2, 0, 0}, 0, 0}));
}

TEST(JaxDevices, HaveIdsWithXFastestAndTheCoreInsideTheChip) {
  for (const DeviceKind kind : {DeviceKind::tpu_v4, DeviceKind::tpu_v7})
    for (const JaxDevice& device : devices(kind, {4, 6, 3})) {
      const int cores = devices_per_chip(kind);
      EXPECT_EQ(device.id, device.core_on_chip + cores * (device.coords[0] + 4 * (device.coords[1] + 6 * device.coords[2])));
    }
  EXPECT_THAT(ids_of(devices(DeviceKind::tpu_v7, {4, 2, 1})), ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15));
}

TEST(JaxDevices, KeepInOrderOfIdsWhereASliceIsNoWiderThanAHost) {
  for (const Ints& extents : {Ints{1}, Ints{2, 1, 1}, Ints{2, 2}, Ints{2, 2, 8}, Ints{1, 8, 2}}) {
    const Ints list = ids_of(devices(DeviceKind::tpu_v5p, extents));
    EXPECT_TRUE(std::is_sorted(list.begin(), list.end())) << fmt::format("{}", fmt::join(extents, "x"));
  }
}

TEST(JaxDevices, HostsAreAsWideAsSaidAndSmallerAtTheEnds) {
  const auto wide = *jax_devices({DeviceKind::tpu_v5e, {8, 4}, 1, {4, 2, 1}});
  for (const JaxDevice& device : wide) EXPECT_EQ(device.process_index, device.coords[0] / 4 + 2 * (device.coords[1] / 2));
  const auto ends = *jax_devices({DeviceKind::tpu_v5e, {3, 3}, 1, {2, 2, 1}});
  EXPECT_THAT(ids_of(ends), ElementsAre(0, 1, 3, 4, 2, 5, 6, 7, 8));
  EXPECT_EQ(ends.back().process_index, 3);
  const auto huge = *jax_devices({DeviceKind::tpu_v5e, {3, 3}, 1, {std::numeric_limits<int>::max(), 1, 1}});
  EXPECT_EQ(huge.back().process_index, 2);
}

TEST(JaxDevices, OfOneSliceFollowThoseOfTheSliceBefore) {
  const std::vector<JaxDevice> one = devices(DeviceKind::tpu_v4, {4, 4, 1}), three = devices(DeviceKind::tpu_v4, {4, 4, 1}, 3);
  ASSERT_EQ(three.size(), 48U);
  for (std::size_t i = 0; i < three.size(); ++i) {
    const JaxDevice& like = one[i % 16];
    const int slice = static_cast<int>(i / 16);
    EXPECT_EQ(three[i], (JaxDevice{like.id + 16 * slice, like.process_index + 4 * slice, like.coords, 0, slice}));
  }
}

TEST(JaxDevices, OfGpusAreInOrderOfIdsWithTheLastDimensionFastest) {
  const auto list = *jax_devices({DeviceKind::gpu, {4, 8}, 1, {1, 8, 1}});
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].id, static_cast<int>(i));
    EXPECT_EQ(list[i].coords, (std::array{static_cast<int>(i / 8), static_cast<int>(i % 8), 0}));
    EXPECT_EQ(list[i].process_index, static_cast<int>(i / 8));
  }
}

TEST(JaxDevices, RefuseWhatIsNoSlice) {
  const auto error = [](const DeviceList& list) { return error_of(jax_devices(list)); };
  EXPECT_EQ(error({DeviceKind::tpu_v4, {}, 1}), "expected a slice of 1 to 3 dimensions, got 0: ");
  EXPECT_EQ(error({DeviceKind::tpu_v4, {2, 2, 2, 2}, 1}), "expected a slice of 1 to 3 dimensions, got 4: 2x2x2x2");
  EXPECT_EQ(error({DeviceKind::tpu_v4, {4, 0}, 1}),
            "expected extents, devices per chip, host and slices of 1 or more, got slices 1 x 4x0, 1 per chip, hosts 2x2x1");
  for (const DeviceList& list : {DeviceList{DeviceKind::tpu_v4, {4, 4}, 0}, DeviceList{DeviceKind::tpu_v4, {4, 4}, 1, {2, -2, 1}},
                                 DeviceList{DeviceKind::tpu_v4, {4, 4}, 1, {2, 2, 1}, 0}})
    EXPECT_THAT(error(list), HasSubstr("of 1 or more"));
  EXPECT_EQ(error({DeviceKind::tpu_v4, {4096, 4096}, 2}), "expected at most 16777216 devices, got more: 4096x4096x2x1");
  const int most = std::numeric_limits<int>::max();
  EXPECT_THAT(error({DeviceKind::tpu_v4, {most, most, most}, most, {most, most, most}, most}), HasSubstr("expected at most 16777216 devices"));
}

TEST(DeviceKinds, AreWrittenAsTheyAreRead) {
  for (const DeviceKind kind : all_kinds) EXPECT_EQ(*parse_device_kind(to_text(kind), {}), kind);
  EXPECT_EQ(
      to_text(parse_device_kind("tpu_v5", {"--kind", 0, 0}).error()),
      "--kind: expected a kind of device (cpu, gpu, tpu_v2, tpu_v3, tpu_v4_lite, tpu_v4, tpu_v5e, tpu_v5p, tpu_v6e, tpu_v7), got \"tpu_v5\", did you "
      "mean \"tpu_v5e\", \"tpu_v5p\" or \"tpu_v2\"?");
}

// ---- Orders of a kind -----------------------------------------------------------------------------------------------------------------

TEST(KindOrder, TpuV2AndV3RearrangeTraysOfEight) {
  for (const DeviceKind kind : {DeviceKind::tpu_v2, DeviceKind::tpu_v3}) {
    EXPECT_THAT(ids(kind, {2, 2}, {8}), ElementsAre(0, 1, 2, 3, 6, 7, 4, 5));
    EXPECT_THAT(ids(kind, {2, 2}, {2, 4}), ElementsAre(0, 1, 2, 3, 6, 7, 4, 5));
    // 4x2 chips of two cores: hosts of eight devices are listed one after the other.
    EXPECT_THAT(ids(kind, {4, 2}, {2, 8}), ElementsAre(0, 1, 2, 3, 10, 11, 8, 9, 4, 5, 6, 7, 14, 15, 12, 13));
    EXPECT_THAT(ids(kind, {4, 2}, {4, 4}), ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15));
    EXPECT_EQ(assigned(kind, {4, 2}, {4, 4}).origin, MeshOrigin::kind_order);
  }
}

TEST(KindOrder, SmallSlicesOfV4LiteV5eAndV6eAreRings) {
  for (const DeviceKind kind : {DeviceKind::tpu_v4_lite, DeviceKind::tpu_v5e, DeviceKind::tpu_v6e})
    for (const Ints& shape : {Ints{4}, Ints{2, 2}, Ints{1, 4}}) EXPECT_THAT(ids(kind, {2, 2}, shape), ElementsAre(0, 1, 3, 2));
  for (const DeviceKind kind : {DeviceKind::tpu_v5e, DeviceKind::tpu_v6e}) {
    for (const Ints& shape : {Ints{8}, Ints{2, 4}, Ints{4, 2}}) {
      EXPECT_THAT(ids(kind, {4, 2}, shape), ElementsAre(0, 1, 2, 3, 7, 6, 5, 4));
      EXPECT_THAT(ids(kind, {2, 4}, shape), ElementsAre(0, 1, 2, 3, 7, 6, 5, 4));
      EXPECT_THAT(ids(kind, {2, 2, 2}, shape), ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
    }
    for (const Ints& shape : {Ints{16}, Ints{1, 16}, Ints{16, 1}}) {
      EXPECT_THAT(ids(kind, {4, 4}, shape), ElementsAre(0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4));
      EXPECT_EQ(assigned(kind, {4, 4}, shape).origin, MeshOrigin::kind_order);
    }
  }
}

TEST(KindOrder, OtherShapesOfThoseKindsAreAssigned) {
  for (const DeviceKind kind : {DeviceKind::tpu_v5e, DeviceKind::tpu_v6e}) {
    EXPECT_EQ(assigned(kind, {4, 4}, {4, 4}).origin, MeshOrigin::whole_axes);  // not one axis of 16
    EXPECT_EQ(assigned(kind, {8, 2}, {16}).origin, MeshOrigin::whole_axes);    // not 4x4
    EXPECT_EQ(assigned(kind, {4, 1}, {4}).origin, MeshOrigin::whole_axes);     // not 2x2
  }
  EXPECT_EQ(assigned(DeviceKind::tpu_v4_lite, {2, 4}, {8}).origin, MeshOrigin::whole_axes);
  EXPECT_EQ(assigned(DeviceKind::tpu_v5p, {2, 4, 1}, {8}).origin, MeshOrigin::whole_axes);
  for (const Ints& extents : {Ints{2, 2, 1}, Ints{2, 2, 2}, Ints{4, 4, 4}})
    EXPECT_EQ(assigned(DeviceKind::tpu_v4, extents, {product(extents)}).origin, MeshOrigin::whole_axes);
}

// create_device_mesh of JAX 0.10.2 on get_topology_desc(platform="tpu", topology_name="v5p:2x2x2").devices, whose device_kind is "TPU v5".
TEST(KindOrder, TpuV5pCubeHasNone) {
  EXPECT_THAT(ids(DeviceKind::tpu_v5p, {2, 2, 2}, {8}), ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
  EXPECT_THAT(ids(DeviceKind::tpu_v5p, {2, 2, 2}, {2, 4}), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(ids(DeviceKind::tpu_v5p, {2, 2, 2}, {2, 2, 2}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  // With two devices per chip it is not the same eight devices.
  const auto cores = *jax_devices({DeviceKind::tpu_v5p, {2, 2, 2}, 2});
  const Expected<DeviceMesh> mesh = assign_device_mesh(DeviceKind::tpu_v5p, cores, {4, 4});
  ASSERT_TRUE(mesh);
  EXPECT_EQ(mesh->origin, MeshOrigin::whole_axes);
  EXPECT_EQ(mesh->assignment, (Matrix{{1, 2}, {1, 2}, {2, 1}, {2, 1}}));
}

TEST(KindOrder, TpuV7RearrangesEightsOfUpTo32Devices) {
  EXPECT_THAT(ids(DeviceKind::tpu_v7, {2, 2}, {8}), ElementsAre(0, 1, 2, 3, 6, 7, 4, 5));
  EXPECT_THAT(ids(DeviceKind::tpu_v7, {2, 2, 2}, {4, 4}), ElementsAre(0, 1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 11, 14, 15, 12, 13));
  EXPECT_EQ(assigned(DeviceKind::tpu_v7, {2, 2, 4}, {32}).origin, MeshOrigin::kind_order);
  EXPECT_EQ(assigned(DeviceKind::tpu_v7, {2, 2, 8}, {64}).origin, MeshOrigin::whole_axes);    // 64 devices
  EXPECT_EQ(assigned(DeviceKind::tpu_v7, {4, 2, 1}, {16}).origin, MeshOrigin::whole_axes);    // x of 4
  EXPECT_EQ(assigned(DeviceKind::tpu_v7, {1, 4, 1}, {8}).origin, MeshOrigin::whole_axes);     // y of 4
  EXPECT_EQ(assigned(DeviceKind::tpu_v7, {2, 1, 1}, {2, 2}).origin, MeshOrigin::whole_axes);  // four devices
}

TEST(KindOrder, GpusAreSortedByIdAndCpusKeepTheirList) {
  std::vector<JaxDevice> list = devices(DeviceKind::gpu, {2, 4});
  std::rotate(list.begin(), list.begin() + 3, list.end());
  EXPECT_THAT(device_ids(*assign_device_mesh(DeviceKind::gpu, list, {4, 2})), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(device_ids(*assign_device_mesh(DeviceKind::cpu, list, {4, 2})), ElementsAre(3, 4, 5, 6, 7, 0, 1, 2));
  EXPECT_EQ(assign_device_mesh(DeviceKind::gpu, list, {4, 2})->origin, MeshOrigin::listed);
}

// ---- Whole and split axes -------------------------------------------------------------------------------------------------------------

TEST(WholeAxes, TheLastMeshAxisChoosesFirstAndTakesMoreAxesRatherThanFewer) {
  EXPECT_EQ(assignment({4, 4, 4}, {16, 4}), (Matrix{{1, 4}, {4, 1}, {4, 1}}));
  EXPECT_EQ(assignment({2, 2, 4}, {4, 4}), (Matrix{{1, 2}, {1, 2}, {4, 1}}));
  EXPECT_EQ(assignment({4, 4, 8}, {16, 8}), (Matrix{{4, 1}, {4, 1}, {1, 8}}));
}

TEST(WholeAxes, AxesOfOneChangeNothing) {
  const Ints plain = ids(DeviceKind::tpu_v4, {4, 4, 8}, {16, 8});
  for (const Ints& shape : {Ints{1, 16, 8}, Ints{16, 1, 8}, Ints{16, 8, 1}, Ints{1, 16, 1, 1, 8, 1}})
    EXPECT_EQ(ids(DeviceKind::tpu_v4, {4, 4, 8}, shape), plain);
  EXPECT_THAT(ids(DeviceKind::tpu_v4, {1, 1, 1}, {1, 1, 1}), ElementsAre(0));
}

TEST(WholeAxes, AFreeSetIsNotSoughtAgain) {
  // (2,2,4) would fit 2x2x4 whole, but the last axis takes x and y.
  EXPECT_EQ(error(DeviceKind::tpu_v4, {2, 2, 4}, {2, 2, 4}),
            "expected axis 1 of the mesh (2,2,4) to be a product of whole physical axes that are left (z=4), got 2; physical axes are split only "
            "where that "
            "is allowed");
}

TEST(WholeAxes, DevicesAwayFromTheOriginAreLaidTheSameWay) {
  std::vector<JaxDevice> moved = devices(DeviceKind::tpu_v4, {4, 4, 4});
  for (JaxDevice& device : moved) device.coords = {device.coords[0] + 4, device.coords[1] + 8, device.coords[2] + 1};
  EXPECT_EQ(device_ids(*assign_device_mesh(DeviceKind::tpu_v4, moved, {16, 4})), ids(DeviceKind::tpu_v4, {4, 4, 4}, {16, 4}));
}

TEST(WholeAxes, TheOrderOfTheListDoesNotMatter) {
  std::vector<JaxDevice> list = devices(DeviceKind::tpu_v4, {4, 4, 4});
  std::reverse(list.begin(), list.end());
  EXPECT_EQ(device_ids(*assign_device_mesh(DeviceKind::tpu_v4, list, {16, 4})), ids(DeviceKind::tpu_v4, {4, 4, 4}, {16, 4}));
}

TEST(SplitAxes, FollowTheFourRules) {
  EXPECT_EQ(assignment({4, 4, 4}, {8, 8}, splitting), (Matrix{{1, 4}, {2, 2}, {4, 1}}));
  EXPECT_EQ(assignment({4, 4, 8}, {2, 4, 16}, splitting), (Matrix{{1, 1, 4}, {1, 1, 4}, {2, 4, 1}}));
  EXPECT_EQ(assignment({2, 2, 8}, {8, 4}, splitting), (Matrix{{1, 2}, {1, 2}, {8, 1}}));                          // whole axes suffice
  EXPECT_EQ(assignment({4, 8, 2}, {4, 2, 8}, splitting), (Matrix{{1, 1, 4}, {4, 2, 1}, {1, 1, 2}}));              // (a): both of x and z before y
  EXPECT_EQ(assignment({4, 2, 2}, {2, 2, 4}, splitting), (Matrix{{2, 2, 1}, {1, 1, 2}, {1, 1, 2}}));              // (b): two axes before one
  EXPECT_EQ(assignment({4, 4, 4}, {2, 2, 2, 8}, splitting), (Matrix{{1, 1, 1, 4}, {1, 1, 2, 2}, {2, 2, 1, 1}}));  // (c): what is left of y before z
  EXPECT_EQ(assignment({8, 8}, {32, 2}, splitting), (Matrix{{4, 2}, {8, 1}, {1, 1}}));                            // (d): x before y
}

TEST(SplitAxes, TheEarlierMeshAxisIsTheMajorPartOfAPhysicalAxis) {
  const Ints laid = ids(DeviceKind::tpu_v4, {8, 1, 1}, {2, 4}, splitting);
  EXPECT_THAT(laid, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Assignment, IsAlwaysAPermutationThatItsMatrixDescribes) {
  int whole = 0, split = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng{seed, stream_of("device_mesh")};
    static constexpr std::array kinds = {DeviceKind::tpu_v4, DeviceKind::tpu_v7};
    const DeviceKind kind = kinds[rng.below(2)];
    const Ints extents = {rng.between(1, 6), rng.between(1, 6), rng.between(1, 6)};
    const std::vector<JaxDevice> list = devices(kind, extents);
    Ints shape(static_cast<std::size_t>(rng.between(1, 4)), 1);  // every prime factor goes to some axis
    int rest = static_cast<int>(list.size());
    for (int prime = 2; rest > 1; ++prime)
      for (; rest % prime == 0; rest /= prime) shape[rng.below(shape.size())] *= prime;

    const Expected<DeviceMesh> mesh = assign_device_mesh(kind, list, shape, splitting);
    ASSERT_TRUE(mesh) << to_text(mesh.error());
    Ints sorted = device_ids(*mesh);
    std::sort(sorted.begin(), sorted.end());
    Ints all(list.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all);
    if (mesh->origin == MeshOrigin::kind_order) continue;

    Ints physical = extents;
    if (kind == DeviceKind::tpu_v7) physical.push_back(2);
    ASSERT_EQ(mesh->assignment.size(), physical.size());
    for (std::size_t p = 0; p < physical.size(); ++p) EXPECT_EQ(product(mesh->assignment[p]), physical[p]);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) EXPECT_EQ(column_product(mesh->assignment, axis), shape[axis]);
    (mesh->origin == MeshOrigin::whole_axes ? whole : split) += 1;
    const Expected<DeviceMesh> strict = assign_device_mesh(kind, list, shape);
    EXPECT_EQ(strict.has_value(), mesh->origin == MeshOrigin::whole_axes);
    if (strict) {
      EXPECT_EQ(*strict, *mesh);
      for (std::size_t p = 0; p < physical.size(); ++p) EXPECT_THAT(mesh->assignment[p], Each(::testing::AnyOf(1, physical[p])));
    }
    // A step along a mesh axis moves by the strides that the matrix says, in coordinates of the chip and the core.
    for (std::size_t i = 0; i < mesh->devices.size(); ++i) {
      std::size_t index = i;
      Ints at(shape.size());
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        at[axis] = static_cast<int>(index) % shape[axis];
        index /= static_cast<std::size_t>(shape[axis]);
      }
      Ints where(physical.size(), 0);
      Ints left = at;
      for (std::size_t p = physical.size(); p-- > 0;) {
        int scale = 1;
        for (std::size_t axis = shape.size(); axis-- > 0;) {
          const int factor = mesh->assignment[p][axis];
          where[p] += left[axis] % factor * scale;
          left[axis] /= factor;
          scale *= factor;
        }
      }
      const JaxDevice& device = mesh->devices[i];
      where.resize(4, 0);
      ASSERT_EQ(where, (Ints{device.coords[0], device.coords[1], device.coords[2], device.core_on_chip}));
    }
  }
  EXPECT_GT(whole, 50);
  EXPECT_GT(split, 50);
}

// ---- Contiguous submeshes -------------------------------------------------------------------------------------------------------------

/// Whether every host's devices are a box of the mesh.
bool hosts_are_boxes(const DeviceMesh& mesh) {
  std::map<int, std::pair<Ints, Ints>> boxes;  // lowest and highest coordinates
  std::map<int, int> sizes;
  for (std::size_t i = 0; i < mesh.devices.size(); ++i) {
    Ints at(mesh.shape.size());
    std::size_t rest = i;
    for (std::size_t axis = mesh.shape.size(); axis-- > 0; rest /= static_cast<std::size_t>(mesh.shape[axis]))
      at[axis] = static_cast<int>(rest % static_cast<std::size_t>(mesh.shape[axis]));
    auto& [low, high] = boxes.try_emplace(mesh.devices[i].process_index, at, at).first->second;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      low[axis] = std::min(low[axis], at[axis]);
      high[axis] = std::max(high[axis], at[axis]);
    }
    ++sizes[mesh.devices[i].process_index];
  }
  return std::all_of(boxes.begin(), boxes.end(), [&](const auto& entry) {
    int volume = 1;
    for (std::size_t axis = 0; axis < mesh.shape.size(); ++axis) volume *= entry.second.second[axis] - entry.second.first[axis] + 1;
    return volume == sizes[entry.first];
  });
}

TEST(ContiguousSubmeshes, HostsAreBoxesForEveryShapeOfTheTable) {
  struct Row {
    Ints extents, shape;
    bool anyway;  // contiguous without asking
  };
  for (const Row& row : {Row{{2, 2, 1}, {2, 2}, true}, Row{{2, 2, 4}, {4, 4}, true}, Row{{4, 4, 4}, {16, 4}, false}, Row{{4, 8, 8}, {64, 4}, false},
                         Row{{4, 8, 8}, {4, 64}, false}, Row{{8, 8, 8}, {64, 8}, false}, Row{{8, 16, 16}, {256, 8}, false},
                         Row{{8, 16, 16}, {8, 256}, false}, Row{{4, 4, 4}, {1, 16, 1, 4}, false}}) {
    SCOPED_TRACE(fmt::format("{} on {}", fmt::join(row.shape, ","), fmt::join(row.extents, "x")));
    const DeviceMesh mesh = assigned(DeviceKind::tpu_v4, row.extents, row.shape, contiguous),
                     plain = assigned(DeviceKind::tpu_v4, row.extents, row.shape);
    EXPECT_TRUE(hosts_are_boxes(mesh));
    EXPECT_EQ(hosts_are_boxes(plain), row.anyway);
    EXPECT_EQ(mesh == plain, row.anyway);
    EXPECT_EQ(mesh.assignment, plain.assignment);  // the same axes, in another order
  }
}

TEST(ContiguousSubmeshes, SwapYAndZ) {
  const DeviceMesh mesh = assigned(DeviceKind::tpu_v4, {4, 4, 4}, {16, 4}, contiguous);
  for (std::size_t i = 0; i < mesh.devices.size(); ++i)
    EXPECT_EQ(mesh.devices[i].coords, (std::array{static_cast<int>(i % 4), static_cast<int>(i / 4 % 4), static_cast<int>(i / 16)}));
}

TEST(ContiguousSubmeshes, AreRefusedOutsideTheTable) {
  EXPECT_EQ(error(DeviceKind::tpu_v4, {4, 4, 8}, {16, 8}, contiguous),
            "expected one of the slices 2x2x1, 2x2x4, 4x4x4, 4x8x8, 8x8x8, 8x16x16 for contiguous submeshes, got 4x4x8");
  EXPECT_EQ(error(DeviceKind::tpu_v4, {4, 8, 8}, {16, 16}, contiguous),
            "expected the mesh (64,4) or (4,64) for contiguous submeshes of the slice 4x8x8, got (16,16)");
  EXPECT_EQ(ids(DeviceKind::tpu_v5e, {2, 2}, {4}, contiguous), ids(DeviceKind::tpu_v5e, {2, 2}, {4}));  // an order of the kind goes first
}

// ---- make_mesh and several slices -----------------------------------------------------------------------------------------------------

TEST(MakeDeviceMesh, SplitsPhysicalAxesOnV5eOnly) {
  for (const DeviceKind kind : {DeviceKind::tpu_v4, DeviceKind::tpu_v5e, DeviceKind::tpu_v5p, DeviceKind::tpu_v6e}) {
    const Expected<DeviceMesh> mesh = make_device_mesh(kind, devices(kind, {4, 8}), {2, 16});
    EXPECT_EQ(mesh.has_value(), kind == DeviceKind::tpu_v5e) << to_text(kind);
    EXPECT_EQ(*make_device_mesh(kind, devices(kind, {4, 8}), {8, 4}), assigned(kind, {4, 8}, {8, 4}));
  }
  EXPECT_EQ(*make_device_mesh(DeviceKind::tpu_v5e, devices(DeviceKind::tpu_v5e, {4, 8}), {2, 16}),
            assigned(DeviceKind::tpu_v5e, {4, 8}, {2, 16}, splitting));
}

TEST(MakeDeviceMesh, TakesTheFirstDevicesOfTheList) {
  const std::vector<JaxDevice> list = devices(DeviceKind::tpu_v4, {4, 4, 1});
  const Expected<DeviceMesh> half = make_device_mesh(DeviceKind::tpu_v4, list, {2, 4});
  ASSERT_TRUE(half) << to_text(half.error());
  EXPECT_THAT(device_ids(*half), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(half->assignment, (Matrix{{1, 4}, {2, 1}, {1, 1}}));
  EXPECT_EQ(error_of(make_device_mesh(DeviceKind::tpu_v4, list, {3, 4})),
            "expected the devices of a cuboid without holes, got 12 devices within 4x4x1 chips of 1");
  EXPECT_EQ(error_of(make_device_mesh(DeviceKind::tpu_v4, list, {32})), "expected a mesh of at most 16 devices, got (32)");
  EXPECT_EQ(error_of(make_device_mesh(DeviceKind::tpu_v4, {}, {1})), "expected a mesh of at most 0 devices, got (1)");
}

TEST(MakeDeviceMesh, RefusesSeveralSlices) {
  EXPECT_EQ(error_of(make_device_mesh(DeviceKind::tpu_v4, devices(DeviceKind::tpu_v4, {2, 2, 1}, 2), {8})),
            "expected devices of one slice, got slices 0 and 1: a mesh over several is laid slice by slice");
}

TEST(HybridDeviceMesh, TilesTheMeshesOfTheSlices) {
  const std::vector<JaxDevice> list = devices(DeviceKind::tpu_v4, {4, 4, 4}, 6);
  const Expected<DeviceMesh> mesh = assign_hybrid_device_mesh(DeviceKind::tpu_v4, list, {16, 4}, {2, 3});
  ASSERT_TRUE(mesh) << to_text(mesh.error());
  EXPECT_THAT(mesh->shape, ElementsAre(32, 12));
  EXPECT_EQ(mesh->origin, MeshOrigin::whole_axes);
  EXPECT_EQ(mesh->assignment, assignment({4, 4, 4}, {16, 4}));
  const Ints inside = ids(DeviceKind::tpu_v4, {4, 4, 4}, {16, 4});
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 12; ++column) {
      const int slice = row / 16 * 3 + column / 4;
      EXPECT_EQ(mesh->devices[static_cast<std::size_t>(row * 12 + column)].id,
                slice * 64 + inside[static_cast<std::size_t>(row % 16 * 4 + column % 4)]);
    }
}

TEST(HybridDeviceMesh, OfOneSliceIsTheMeshOfTheSlice) {
  EXPECT_EQ(*assign_hybrid_device_mesh(DeviceKind::tpu_v5e, devices(DeviceKind::tpu_v5e, {4, 4}), {2, 8}, {1, 1}, splitting),
            assigned(DeviceKind::tpu_v5e, {4, 4}, {2, 8}, splitting));
}

TEST(HybridDeviceMesh, OfUnlikeSlicesHasNoOneAssignment) {
  std::vector<JaxDevice> list = devices(DeviceKind::tpu_v4, {4, 4, 1});
  for (JaxDevice device : devices(DeviceKind::tpu_v4, {2, 8, 1})) {
    device.id += 16;
    device.slice_index = 1;
    list.push_back(device);
  }
  const Expected<DeviceMesh> mesh = assign_hybrid_device_mesh(DeviceKind::tpu_v4, list, {16}, {2});
  ASSERT_TRUE(mesh) << to_text(mesh.error());
  EXPECT_TRUE(mesh->assignment.empty());
  Ints expected = ids(DeviceKind::tpu_v4, {4, 4, 1}, {16});
  for (const int id : ids(DeviceKind::tpu_v4, {2, 8, 1}, {16})) expected.push_back(id + 16);
  EXPECT_EQ(device_ids(*mesh), expected);
}

TEST(HybridDeviceMesh, RefusesShapesThatDoNotFit) {
  const auto error = [](const Ints& shape, const Ints& slices) {
    return error_of(assign_hybrid_device_mesh(DeviceKind::tpu_v4, devices(DeviceKind::tpu_v4, {2, 2, 1}, 2), shape, slices));
  };
  EXPECT_EQ(error({2, 2}, {2}), "expected as many axes over the slices as inside them, 2 for (2,2), got 1: (2)");
  EXPECT_EQ(error({2, 2}, {4, 1}), "expected a shape of 2 slices, got (4,1)");
  EXPECT_EQ(error({2, 4}, {2, 1}), "slice 0: expected a mesh of 4 devices, got (2,4) with 8");
  EXPECT_EQ(error({2, 2}, {2, 0}), "expected axes of size 1 or more, got 0 for axis 1 of the mesh (2,0)");
}

// ---- Bad input ------------------------------------------------------------------------------------------------------------------------

TEST(AssignDeviceMesh, RefusesShapesThatDoNotFit) {
  EXPECT_EQ(error(DeviceKind::tpu_v4, {4, 4, 1}, {}), "expected a mesh of at least one axis, got none");
  EXPECT_EQ(error(DeviceKind::tpu_v4, {4, 4, 1}, {4, -4}), "expected axes of size 1 or more, got -4 for axis 1 of the mesh (4,-4)");
  for (const DeviceKind kind : {DeviceKind::tpu_v4, DeviceKind::gpu})
    EXPECT_EQ(error(kind, {4, 4, 1}, {4, 8}), "expected a mesh of 16 devices, got (4,8) with 32");
  EXPECT_EQ(error(DeviceKind::tpu_v4, {4, 4, 1}, {65536, 65536, 65536, 65536}),
            "expected a mesh of 16 devices, got (65536,65536,65536,65536) with more");
  EXPECT_EQ(
      error(DeviceKind::tpu_v4, {4, 4, 4}, {8, 8}),
      "expected axis 1 of the mesh (8,8) to be a product of whole physical axes that are left (x=4,y=4,z=4), got 8; physical axes are split only "
      "where that is allowed");
}

TEST(AssignDeviceMesh, RefusesDevicesThatAreNoCuboid) {
  std::vector<JaxDevice> list = devices(DeviceKind::tpu_v4, {2, 2, 1});
  list[3].coords = {5, 0, 0};
  EXPECT_EQ(error_of(assign_device_mesh(DeviceKind::tpu_v4, list, {4})),
            "expected the devices of a cuboid without holes, got 4 devices within 6x2x1 chips of 1");
  list[3].coords = list[2].coords;  // a hole, and two devices in one place
  EXPECT_THAT(error_of(assign_device_mesh(DeviceKind::tpu_v4, list, {4})), HasSubstr("without holes, got 4 devices within 2x2x1"));
  list[3].coords = {std::numeric_limits<int>::max(), std::numeric_limits<int>::min(), 0};
  EXPECT_THAT(error_of(assign_device_mesh(DeviceKind::tpu_v4, list, {4})), HasSubstr("without holes"));
}

TEST(AssignDeviceMesh, RefusesTwoDevicesPerChipOfAKindThatHasOne) {
  for (const DeviceKind kind : {DeviceKind::tpu_v4, DeviceKind::tpu_v5e, DeviceKind::tpu_v6e})
    EXPECT_EQ(error_of(assign_device_mesh(kind, *jax_devices({kind, {4, 4}, 2}), {32})),
              fmt::format("expected one device per chip of {}, got 2", to_text(kind)));
}

}  // namespace
}  // namespace podsim
