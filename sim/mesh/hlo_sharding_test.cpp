#include "sim/mesh/hlo_sharding.hpp"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>

#include "sim/base/rng.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;
using Kind = HloSharding::Kind;

Mesh hlo_mesh(const std::vector<int>& sizes) {
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < sizes.size(); ++i) axes.push_back({std::string(1, "xyzw"[i]), sizes[i]});
  return *Mesh::make(std::move(axes));
}

HloSharding hlo_of(std::string_view text) {
  const Expected<HloSharding> hlo = parse_hlo_sharding(text, {"t", 1, 1});
  EXPECT_TRUE(hlo) << text << ": " << to_text(hlo.error());
  return *hlo;
}

std::string hlo_error(std::string_view text) {
  const Expected<HloSharding> hlo = parse_hlo_sharding(text, {"t", 1, 1});
  return hlo ? "no error" : to_text(hlo.error());
}

std::string hlo_text(std::string_view spec, const Mesh& mesh, std::size_t rank = 2) {
  const Expected<Sharding> sharding = parse_sharding(spec, mesh, rank, {}, true);
  EXPECT_TRUE(sharding) << spec;
  return to_text(to_hlo(*sharding, mesh, rank));
}

std::string spec_text(std::string_view hlo, const Mesh& mesh, std::size_t rank = 2) {
  const Expected<Sharding> sharding = from_hlo(hlo_of(hlo), mesh, rank, {});
  return sharding ? to_text(*sharding, mesh, rank) : sharding.error().message;
}

TEST(HloShardingText, EveryFormIsWrittenAsItWasRead) {
  for (const std::string text :
       {"{replicated}", "{manual}", "{unknown}", "{unreduced}", "{maximal device=3}", "{devices=[4,2]<=[8]}", "{devices=[2,4]<=[4,2]T(1,0)}",
        "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "{devices=[2,2]0,2,1,3}", "{devices=[1,2,2]3,1,2,0 last_tile_dim_replicate}",
        "{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}", "{devices=[2,4]<=[8] last_tile_dims={unreduced}}",
        "{{replicated}, {devices=[8]<=[8]}}", "{{maximal device=0}}", "{}"})
    EXPECT_EQ(to_text(hlo_of(text)), text);
}

TEST(HloShardingText, SaysTheSameWithOtherSeparators) {
  EXPECT_EQ(hlo_of("{devices=[1,2,2]<=[4] last_tile_dims={manual,replicated}}"),
            hlo_of("{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}"));
  EXPECT_EQ(hlo_of("{devices=[4,2]<=[8] last_tile_dims={replicated}}"), hlo_of("{devices=[4,2]<=[8] last_tile_dim_replicate}"));
  EXPECT_EQ(hlo_of(" { {replicated},{ manual } } "), hlo_of("{{replicated}, {manual}}"));
  const HloSharding tiled = hlo_of("{devices=[2,4]<=[4,2]T(1,0)}");
  EXPECT_EQ(tiled.kind, Kind::tiled);
  EXPECT_THAT(tiled.tiles, ElementsAre(2, 4));
  EXPECT_THAT(tile_devices(tiled), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7)) << "iota reshaped to 4x2, transposed";
  EXPECT_THAT(tile_devices(hlo_of("{devices=[6]<=[2,3]}")), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(HloShardingText, IsReadInTheMidstOfALine) {
  const std::string line = "p = f32[8]{0} parameter(0), sharding={devices=[8]<=[8]}, metadata={}";
  std::size_t at = line.find("={") + 1;
  const auto hlo = parse_hlo_sharding(line, at, {"m.hlo", 7, static_cast<int>(at) + 1});
  ASSERT_TRUE(hlo);
  EXPECT_EQ(line.substr(at), ", metadata={}");
  const std::string wrong = "sharding={devices=[8]<=[4]}";
  at = 9;
  EXPECT_EQ(to_text(parse_hlo_sharding(wrong, at, {"m.hlo", 7, 10}).error()), "m.hlo:7:24: expected the 8 devices of the tiles, got 4");
}

TEST(HloShardingErrors, PointAtWhatIsWrong) {
  EXPECT_EQ(hlo_error(""), "t:1:1: expected \"{\" of a sharding, got the end");
  EXPECT_EQ(hlo_error("{replicatd}"), "t:1:2: expected replicated, maximal, manual, unknown, unreduced or devices=[...], got \"replicatd}\"");
  EXPECT_EQ(hlo_error("{replicated"), "t:1:12: expected \"}\" at the end of the sharding, got the end");
  EXPECT_EQ(hlo_error("{replicated} x"), "t:1:14: expected nothing behind the sharding, got \"x\"");
  EXPECT_EQ(hlo_error("{maximal device=}"), "t:1:17: expected a device, got \"}\"");
  EXPECT_EQ(hlo_error("{maximal device=-1}"), "t:1:17: expected a device, got \"-1}\"");
  EXPECT_EQ(hlo_error("{maximal device=99999999999999999999}"), "t:1:17: expected a device from 0 to 2147483647, got 99999999999999999999");
  EXPECT_EQ(hlo_error("{devices=[0]<=[0]}"), "t:1:11: expected a size from 1 to 16777216, got 0");
  EXPECT_EQ(hlo_error("{devices=[]<=[1]}"), "t:1:11: expected a size, got \"]<=[1]}\"");
  EXPECT_EQ(hlo_error("{devices=[4096,8192]<=[8]}"), "t:1:10: expected at most 16777216 devices");
  EXPECT_EQ(hlo_error("{devices=[8]<=[4,3]}"), "t:1:15: expected the 8 devices of the tiles, got 12");
  EXPECT_EQ(hlo_error("{devices=[8]<=[4,2]T(1,1)}"), "t:1:21: expected every dimension once, got 1 again");
  EXPECT_EQ(hlo_error("{devices=[8]<=[4,2]T(1)}"), "t:1:21: expected 2 dimensions, got 1");
  EXPECT_EQ(hlo_error("{devices=[8]<=[4,2]T(2,0)}"), "t:1:22: expected a dimension from 0 to 1, got 2");
  EXPECT_EQ(hlo_error("{devices=[3]0,1}"), "t:1:13: expected the 3 devices of the tiles, got 2");
  EXPECT_EQ(hlo_error("{devices=[3]0,1,1}"), "t:1:13: expected every device once, got 1 again");
  EXPECT_EQ(hlo_error("{devices=[3]}"), "t:1:13: expected \"<=\" or a list of devices, got \"}\"");
  EXPECT_EQ(hlo_error("{devices=[2]<=[2] last_tile_dims={manual, maximal}}"),
            "t:1:43: expected replicated, manual, unknown or unreduced, got \"maximal}}\"");
  EXPECT_EQ(hlo_error("{devices=[2]<=[2] last_tile_dims={manual, manual}}"), "t:1:10: expected a tile dimension for each of the 2 kinds, got 1");
  EXPECT_THAT(hlo_error("{devices=[2]<=[2] first}"), StartsWith("t:1:19: expected last_tile_dim_replicate"));
  EXPECT_THAT(hlo_error("{{{replicated}}}"), StartsWith("t:1:3: expected replicated, maximal")) << "tuples are lists of leaves";
}

TEST(HloShardingErrors, AnyTextIsReadOrRefused) {
  Rng rng{6};
  const std::vector<std::string_view> pieces = {"{",
                                                "}",
                                                "devices=",
                                                "[2,2]",
                                                "[4]",
                                                "<=",
                                                "T(1,0)",
                                                "0,1,2,3",
                                                " ",
                                                "replicated",
                                                "manual",
                                                "maximal",
                                                " device=1",
                                                ", ",
                                                "last_tile_dims=",
                                                "last_tile_dim_replicate",
                                                "[",
                                                "]",
                                                "1",
                                                "99999999999",
                                                "(",
                                                ")",
                                                "\xff",
                                                "="};
  int read = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string text = "{";
    for (int n = rng.between(0, 7); n > 0; --n) text += pieces[rng.below(pieces.size())];
    if (rng.below(2) == 0) text += '}';
    const auto hlo = parse_hlo_sharding(text, {"t", 1, 1});
    if (!hlo) {
      ASSERT_LE(hlo.error().where.column, static_cast<int>(text.size()) + 1) << text;
      continue;
    }
    ++read;
    ASSERT_EQ(hlo_of(to_text(*hlo)), *hlo) << text;
  }
  EXPECT_GT(read, 500);
}

// By the rule of jax.sharding.NamedSharding: used axes in the order of the dimensions, the others last.
TEST(ToHlo, IsWhatJaxWrites) {
  const Mesh mesh = hlo_mesh({4, 2});
  EXPECT_EQ(hlo_text("x,-", mesh), "{devices=[4,1,2]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(hlo_text("-,x", mesh), "{devices=[1,4,2]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(hlo_text("y,x", mesh), "{devices=[2,4]<=[4,2]T(1,0)}");
  EXPECT_EQ(hlo_text("x,y", mesh), "{devices=[4,2]<=[8]}");
  EXPECT_EQ(hlo_text("(x+y),-", mesh), "{devices=[8,1]<=[8]}");
  EXPECT_EQ(hlo_text("(y+x),-", mesh), "{devices=[8,1]<=[4,2]T(1,0)}");
  EXPECT_EQ(hlo_text("y,-", mesh), "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(hlo_text("-,-", mesh), "{replicated}");
  EXPECT_EQ(hlo_text("-", mesh, 0), "{replicated}");
  EXPECT_EQ(hlo_text("unreduced(x):-,y", mesh), "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dims={unreduced}}");
  EXPECT_EQ(hlo_text("unreduced(x):-,-", mesh), "{devices=[1,1,2,4]<=[4,2]T(1,0) last_tile_dims={replicated, unreduced}}");
  EXPECT_EQ(hlo_text("z,x", hlo_mesh({2, 2, 2})), "{devices=[2,2,2]<=[4,2]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(hlo_text("y,-", hlo_mesh({1, 4, 1})), "{devices=[4,1]<=[4]}") << "axes of size 1 are dropped";
  EXPECT_EQ(hlo_text("x,-", hlo_mesh({1, 4})), "{replicated}");
  EXPECT_EQ(hlo_text("-,-", Mesh{}), "{replicated}");
}

/// Every sharding of `rank` dimensions: each axis in turn goes to every place of every dimension, to the unreduced ones, or nowhere.
void for_each_sharding(const Mesh& mesh, std::size_t rank, const std::function<void(const Sharding&)>& visit, Sharding sharding = {}, int axis = 0) {
  sharding.dims.resize(rank);
  if (axis == static_cast<int>(mesh.axes().size())) return visit(sharding.canonical());
  for_each_sharding(mesh, rank, visit, sharding, axis + 1);
  sharding.unreduced.push_back(axis);
  for_each_sharding(mesh, rank, visit, sharding, axis + 1);
  sharding.unreduced.pop_back();
  for (std::vector<int>& axes : sharding.dims)
    for (std::size_t i = 0; i <= axes.size(); ++i) {
      axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(i), axis);
      for_each_sharding(mesh, rank, visit, sharding, axis + 1);
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

/// Without axes of one device, which HLO does not have.
Sharding without_size_one(Sharding sharding, const Mesh& mesh) {
  const auto is_one = [&](int axis) { return mesh.axes()[static_cast<std::size_t>(axis)].size == 1; };
  for (std::vector<int>& axes : sharding.dims) std::erase_if(axes, is_one);
  std::erase_if(sharding.unreduced, is_one);
  return sharding.canonical();
}

TEST(ToHlo, EveryShardingOfEveryMeshOfUpToFourAxesComesBack) {
  int tried = 0;
  std::vector<std::vector<int>> meshes{{}};
  for (std::size_t i = 0; i < meshes.size(); ++i)
    for (int size = 1; size <= 3 && meshes[i].size() < 4; ++size) {
      meshes.push_back(meshes[i]);
      meshes.back().push_back(size);
    }
  for (const std::vector<int>& sizes : meshes) {
    const Mesh mesh = hlo_mesh(sizes);
    for (std::size_t rank = 0; rank <= 2; ++rank)
      for_each_sharding(mesh, rank, [&](const Sharding& sharding) {
        ++tried;
        const HloSharding hlo = to_hlo(sharding, mesh, rank);
        const auto back = from_hlo(hlo_of(to_text(hlo)), mesh, rank, {});
        ASSERT_TRUE(back) << to_text(back.error());
        ASSERT_EQ(*back, without_size_one(sharding, mesh)) << to_text(sharding, mesh, rank) << " on " << to_text(mesh) << ": " << to_text(hlo);
        if (hlo.kind != Kind::tiled) return;
        HloSharding listed = hlo;
        listed.list = tile_devices(hlo), listed.iota_shape = {}, listed.iota_transpose = {};
        const auto again = from_hlo(listed, mesh, rank, {});
        ASSERT_TRUE(again) << to_text(again.error());
        ASSERT_EQ(*again, *back) << to_text(listed);
      });
  }
  EXPECT_GT(tried, 20000);
}

TEST(ToHlo, TilesAreTheBlocksOfTheShards) {
  const Mesh mesh = hlo_mesh({2, 3, 4});
  for_each_sharding(mesh, 2, [&](const Sharding& sharding) {
    const HloSharding hlo = to_hlo(sharding, mesh, 2);
    if (hlo.kind != Kind::tiled) return;
    const auto shards = shards_of(padded_extents({24, 24}, sharding, mesh), sharding, mesh, {});
    ASSERT_TRUE(shards);
    const std::vector<std::int64_t> devices = tile_devices(hlo);
    const std::size_t copies = devices.size() / shards->size();
    for (std::size_t s = 0; s < shards->size(); ++s) {
      std::vector<std::int64_t> holders(devices.begin() + static_cast<std::ptrdiff_t>(s * copies),
                                        devices.begin() + static_cast<std::ptrdiff_t>((s + 1) * copies));
      std::sort(holders.begin(), holders.end());
      std::vector<std::int64_t> expected;
      for (const DeviceId device : (*shards)[s].devices) expected.push_back(device.value);
      ASSERT_EQ(holders, expected) << to_text(sharding, mesh, 2) << ": " << to_text(hlo);
    }
  });
}

TEST(FromHlo, CopiesAndAddendsMayBeListedInAnyOrder) {
  const Mesh mesh = hlo_mesh({4, 2});
  EXPECT_EQ(spec_text("{devices=[4,1,2]1,0,2,3,5,4,6,7 last_tile_dim_replicate}", mesh), "x,-");
  EXPECT_EQ(spec_text("{devices=[1,2,4]2,0,4,6,7,1,5,3 last_tile_dims={unreduced}}", mesh),
            "no PartitionSpec on the mesh x=4,y=2 gives "
            "{devices=[1,2,4]2,0,4,6,7,1,5,3 last_tile_dims={unreduced}}")
      << "the addends of two blocks would be paired otherwise";
  EXPECT_EQ(spec_text("{devices=[1,2,4]2,0,4,6,3,1,5,7 last_tile_dims={unreduced}}", mesh), "unreduced(x):-,y");
  EXPECT_EQ(spec_text("{devices=[1,1,2,4]<=[4,2]T(1,0) last_tile_dims={replicated,unreduced}}", mesh), "unreduced(x):-,-");
  EXPECT_EQ(spec_text("{devices=[1,1,4,2]<=[8] last_tile_dims={unreduced, replicated}}", mesh), "unreduced(x):-,-");
  EXPECT_EQ(spec_text("{unreduced}", mesh), "unreduced(x+y):-,-");
  EXPECT_EQ(spec_text("{replicated}", mesh), "-,-");
  EXPECT_EQ(spec_text("{devices=[1,1,8]<=[8] last_tile_dim_replicate}", mesh), "-,-");
}

TEST(FromHlo, WhatNoPartitionSpecGivesIsAnError) {
  const Mesh mesh = hlo_mesh({4, 2});
  for (const std::string text :
       {"{devices=[2,4]<=[8]}", "{devices=[8,1]7,6,5,4,3,2,1,0}", "{devices=[8,1]0,1,2,3,4,5,7,6}", "{devices=[8,1]8,1,2,3,4,5,6,7}",
        "{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "{devices=[4,2]0,1,3,2,4,5,6,7}"})
    EXPECT_EQ(spec_text(text, mesh), "no PartitionSpec on the mesh x=4,y=2 gives " + text);
  EXPECT_EQ(spec_text("{devices=[4,1]<=[4]}", mesh), "expected the 8 devices of the mesh x=4,y=2, got 4");
  EXPECT_EQ(spec_text("{devices=[8]<=[8]}", mesh), "expected tiles of 2 dimensions, got 1");
  EXPECT_EQ(spec_text("{manual}", mesh), "expected a sharding that a PartitionSpec gives, got manual");
  EXPECT_EQ(spec_text("{maximal device=0}", mesh), "expected a sharding that a PartitionSpec gives, got maximal");
  EXPECT_EQ(spec_text("{{replicated}}", mesh), "expected a sharding that a PartitionSpec gives, got a tuple");
  EXPECT_EQ(spec_text("{devices=[1,4,2]<=[8] last_tile_dims={manual}}", mesh),
            "expected a sharding that a PartitionSpec gives, got one that is manual along some devices");
}

}  // namespace
}  // namespace podsim
