#include "sim/mesh/sharding.hpp"

#include <algorithm>

#include <gmock/gmock.h>

#include "sim/base/rng.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Mesh mesh_of(std::vector<MeshAxis> axes) { return *Mesh::make(std::move(axes)); }
Mesh x4y2() { return mesh_of({{"x", 4}, {"y", 2}}); }
Mesh cube() { return mesh_of({{"x", 2}, {"y", 2}, {"z", 2}}); }

Sharding parsed(std::string_view text, const Mesh& mesh, std::size_t rank = 2) {
  const Expected<Sharding> sharding = parse_sharding(text, mesh, rank, {"spec", 1, 1}, true);
  EXPECT_TRUE(sharding) << to_text(sharding.error());
  return *sharding;
}

std::string sharding_error(std::string_view text, const Mesh& mesh, std::size_t rank = 2, bool allow_unreduced = true) {
  const Expected<Sharding> sharding = parse_sharding(text, mesh, rank, {"spec", 3, 10}, allow_unreduced);
  return sharding ? "no error" : to_text(sharding.error());
}

/// Every axis goes to a dimension, to the unreduced ones, or nowhere, in random order.
Sharding random_sharding(Rng& rng, const Mesh& mesh, std::size_t rank) {
  Sharding sharding;
  sharding.dims.resize(rank);
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    const int place = rng.between(-2, static_cast<int>(rank) - 1);
    if (place == -1) sharding.unreduced.push_back(axis);
    if (place < 0) continue;
    std::vector<int>& axes = sharding.dims[static_cast<std::size_t>(place)];
    axes.insert(axes.begin() + rng.between(0, static_cast<int>(axes.size())), axis);
  }
  return sharding;
}

TEST(ShardingText, NamesTheAxesOfEachDimension) {
  EXPECT_EQ(parsed("x,y", x4y2()), (Sharding{{{0}, {1}}}));
  EXPECT_EQ(parsed("(y+x),-", x4y2()), (Sharding{{{1, 0}}}));
  EXPECT_EQ(parsed("-,(x)", x4y2()), (Sharding{{{}, {0}}}));
  EXPECT_EQ(parsed("unreduced(x):-,y", x4y2()), (Sharding{{{}, {1}}, {0}}));
  EXPECT_EQ(parsed("unreduced(y+x):", x4y2()), (Sharding{{}, {0, 1}}));
  EXPECT_EQ(parsed(" ( x + y ) , - ", x4y2()), (Sharding{{{0, 1}}}));
  EXPECT_EQ(parsed("", x4y2()), Sharding{});
  EXPECT_EQ(parsed("-", x4y2(), 0), Sharding{});
  EXPECT_EQ(parsed("x", x4y2()), parsed("x,-", x4y2())) << "dimensions at the end may be left out";
}

TEST(ShardingText, IsReadAsItIsWritten) {
  Rng rng{3};
  const Mesh mesh = mesh_of({{"data", 2}, {"row", 3}, {"col", 4}, {"one", 1}});
  for (int i = 0; i < 500; ++i) {
    const std::size_t rank = rng.below(5);
    const Sharding sharding = random_sharding(rng, mesh, rank);
    const std::string text = to_text(sharding, mesh, rank);
    ASSERT_EQ(parsed(text, mesh, rank), sharding.canonical()) << text;
  }
}

TEST(ShardingText, IsPrintedAsJaxPrintsIt) {
  EXPECT_EQ(jax_text(parsed("x", x4y2()), x4y2(), 2), "P('x', None)");
  EXPECT_EQ(jax_text(parsed("(x+y),-", x4y2()), x4y2(), 2), "P(('x', 'y'), None)");
  EXPECT_EQ(jax_text(parsed("unreduced(x):-,y", x4y2()), x4y2(), 2), "P(None, 'y', unreduced={'x'})");
  EXPECT_EQ(jax_text(parsed("unreduced(x+y):-", x4y2(), 0), x4y2(), 0), "P(unreduced={'x', 'y'})");
  EXPECT_EQ(jax_text({}, x4y2(), 0), "P()");
}

TEST(ShardingErrors, PointAtTheEntryThatIsWrong) {
  const Mesh mesh = mesh_of({{"row", 4}, {"col", 2}});
  EXPECT_EQ(sharding_error("row,cal", mesh), "spec:3:14: no mesh axis \"cal\" in row=4,col=2, did you mean \"col\"?");
  EXPECT_EQ(sharding_error("(row+row)", mesh), "spec:3:15: expected each axis at most once, got \"row\" again");
  EXPECT_EQ(sharding_error("row,row", mesh), "spec:3:14: expected each axis at most once, got \"row\" again");
  EXPECT_EQ(sharding_error("unreduced(row):-,row", mesh), "spec:3:27: expected each axis at most once, got \"row\" again");
  EXPECT_EQ(sharding_error("((row", mesh), "spec:3:11: expected an axis, got \"(row\"");
  EXPECT_EQ(sharding_error("(row", mesh), "spec:3:14: expected \"+\" and an axis, or \")\", got the end");
  EXPECT_EQ(sharding_error("()", mesh), "spec:3:11: expected an axis, got \")\"");
  EXPECT_EQ(sharding_error("(-)", mesh), "spec:3:11: expected an axis, got \"-)\"");
  EXPECT_EQ(sharding_error("row,", mesh), "spec:3:14: expected an axis, \"-\" for none, or several axes as in (x+y), got the end");
  EXPECT_EQ(sharding_error(",row", mesh), "spec:3:10: expected an axis, \"-\" for none, or several axes as in (x+y), got \",row\"");
  EXPECT_EQ(sharding_error("row+col", mesh), "spec:3:13: several axes of one dimension need parentheses, as in (x+y); got \"+col\"");
  EXPECT_EQ(sharding_error("(row)col", mesh), "spec:3:15: expected \",\" before the entry of the next dimension, got \"col\"");
  EXPECT_EQ(sharding_error("-,-,col", mesh), "spec:3:14: expected at most 2 entries, one per dimension of the array, got \"col\"");
  EXPECT_EQ(sharding_error("row", mesh, 0), "spec:3:10: expected at most 0 entries, one per dimension of the array, got \"row\"");
  EXPECT_EQ(sharding_error("unreduced(row),-", mesh), "spec:3:24: expected \":\" after the unreduced axes, got \",-\"");
  EXPECT_THAT(sharding_error("unreduced(row):-,col", mesh, 2, false), StartsWith("spec:3:10: expected a sharding without unreduced axes"));
  EXPECT_EQ(sharding_error("x", Mesh{}), "spec:3:10: no mesh axis \"x\": the mesh has no axes");
  EXPECT_EQ(to_text(parse_sharding("x", Mesh{}, 2, of_field("spec")).error()), "spec: no mesh axis \"x\": the mesh has no axes");
}

TEST(ShardingErrors, AnyTextIsReadOrRefused) {
  Rng rng{4};
  const std::string_view letters = "xyz-,+():unreduced( \t\0\xff";
  int read = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string text;
    for (int n = rng.between(0, 12); n > 0; --n) text += rng.below(8) == 0 ? "unreduced(" : std::string(1, letters[rng.below(letters.size())]);
    const std::size_t rank = rng.below(4);
    const Expected<Sharding> sharding = parse_sharding(text, cube(), rank, {"t", 1, 1}, true);
    if (!sharding) {
      ASSERT_GE(sharding.error().where.column, 1) << text;
      ASSERT_LE(sharding.error().where.column, static_cast<int>(text.size()) + 1) << text;
      continue;
    }
    ++read;
    ASSERT_EQ(parsed(to_text(*sharding, cube(), rank), cube(), rank), *sharding) << text;
  }
  EXPECT_GT(read, 1000);
  EXPECT_THAT(sharding_error(std::string(1 << 20, '('), cube()), HasSubstr("expected an axis"));
}

TEST(Shards, AreNumberedWithTheFirstAxisMostSignificant) {
  // As jax.sharding.NamedSharding: the device at (x, y) holds block 4 y + x.
  const auto shards = shards_of({16, 4}, parsed("(y+x),-", x4y2()), x4y2(), {});
  ASSERT_TRUE(shards);
  ASSERT_EQ(shards->size(), 8u);
  EXPECT_EQ((*shards)[0], (Shard{{DeviceId{0}}, {{0, 2}, {0, 4}}}));
  EXPECT_EQ((*shards)[1], (Shard{{DeviceId{2}}, {{2, 4}, {0, 4}}})) << "y is most significant, so that x moves first";
  EXPECT_EQ((*shards)[4], (Shard{{DeviceId{1}}, {{8, 10}, {0, 4}}}));
  const auto replicated = shards_of({8, 8}, parsed("-,y", x4y2()), x4y2(), {});
  ASSERT_TRUE(replicated);
  ASSERT_EQ(replicated->size(), 2u);
  EXPECT_THAT((*replicated)[1].devices, ElementsAre(DeviceId{1}, DeviceId{3}, DeviceId{5}, DeviceId{7}));
}

TEST(Shards, CoverTheArrayOnceAndEveryDeviceHoldsOne) {
  Rng rng{5};
  for (int i = 0; i < 300; ++i) {
    const Mesh mesh = mesh_of({{"a", rng.between(1, 3)}, {"b", rng.between(1, 3)}, {"c", rng.between(1, 4)}});
    const std::size_t rank = rng.below(4);
    const Sharding sharding = random_sharding(rng, mesh, rank);
    Extents extents;
    for (std::size_t d = 0; d < rank; ++d) extents.push_back(rng.between(1, 7));
    extents = padded_extents(extents, sharding, mesh);
    const auto shards = shards_of(extents, sharding, mesh, {});
    ASSERT_TRUE(shards);
    std::int64_t elements = 0, all = 1;
    std::size_t devices = 0;
    for (const Shard& shard : *shards) {
      std::int64_t block = 1;
      for (const auto& [first, last] : shard.ranges) block *= last - first;
      elements += block;
      devices += shard.devices.size();
      for (const DeviceId device : shard.devices)
        for (std::size_t d = 0; d < rank; ++d)
          ASSERT_EQ(block_of(mesh, sharding.axes_of(d), device) * (shard.ranges[d].second - shard.ranges[d].first), shard.ranges[d].first);
      ASSERT_TRUE(std::is_sorted(shard.devices.begin(), shard.devices.end()));
    }
    for (const std::int64_t extent : extents) all *= extent;
    ASSERT_EQ(elements, all) << to_text(sharding, mesh, rank) << " on " << to_text(mesh);
    ASSERT_EQ(devices, static_cast<std::size_t>(mesh.devices()));
    ASSERT_TRUE(std::is_sorted(shards->begin(), shards->end(), [](const Shard& a, const Shard& b) { return a.ranges < b.ranges; }));
  }
}

TEST(Shards, OfADimensionThatTheAxesDoNotDivideAreAnError) {
  const auto shard = shard_extents({16, 15}, parsed("-,(x+y)", x4y2()), x4y2(), "A", {"p", 1, 2});
  ASSERT_FALSE(shard);
  EXPECT_EQ(to_text(shard.error()), "p:1:2: dimension 1 of A, divided along x=4,y=2, must be a multiple of 8, got 15");
  EXPECT_FALSE(shards_of({16, 15}, parsed("-,(x+y)", x4y2()), x4y2(), {}));
  EXPECT_THAT(padded_extents({16, 15}, parsed("-,(x+y)", x4y2()), x4y2()), ElementsAre(16, 16));
  EXPECT_THAT(padded_extents({2}, parsed("x", x4y2(), 1), x4y2()), ElementsAre(4)) << "a microbatch of 2 over 4 devices is 4";
  EXPECT_THAT(*shard_extents({16, 16}, parsed("x,y", x4y2()), x4y2(), "A", {}), ElementsAre(4, 8));
  EXPECT_THAT(*shard_extents({0, 16}, parsed("x,y", x4y2()), x4y2(), "A", {}), ElementsAre(0, 8)) << "an empty array has empty blocks";
}

}  // namespace
}  // namespace podsim
