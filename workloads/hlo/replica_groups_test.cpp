#include "workloads/hlo/replica_groups.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"

namespace podsim {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

ReplicaGroups groups_of(const std::string& text) {
  std::size_t at = 0;
  const auto groups = parse_replica_groups(text, at, {});
  EXPECT_TRUE(groups) << text << ": " << to_text(groups.error());
  EXPECT_EQ(at, text.size()) << text;
  return groups ? *groups : ReplicaGroups{};
}
Groups listed(const ReplicaGroups& groups) {
  Groups all;
  for (std::int64_t group = 0; group < groups.count(); ++group) all.push_back(groups.devices(group));
  return all;
}
std::string groups_error(const std::string& text) {
  std::size_t at = 0;
  const auto groups = parse_replica_groups(text, at, {"g", 1, 1});
  return groups ? "" : to_text(groups.error());
}
Mesh mesh_of(std::vector<MeshAxis> axes) { return *Mesh::make(std::move(axes)); }

TEST(ReplicaGroups, ReadsTheThreeSpellings) {
  EXPECT_EQ(listed(groups_of("{{0,1},{2,3}}")), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(listed(groups_of("[4,2]<=[8]")), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(listed(groups_of("[2,4]<=[4,2]T(1,0)")), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(listed(groups_of("mesh['data'=2,'model'=4] {'model'}")), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(listed(groups_of("mesh[data=2,model=4] {data}")), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(listed(groups_of("mesh['a'=1,'b'=1,'c'=4] {'c'}")), (Groups{{0, 1, 2, 3}}));
  EXPECT_EQ(listed(groups_of("mesh['a'=8] {'a':(2)2}")), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(listed(groups_of("mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}")), (Groups{{3, 2}, {1, 0}}));
  EXPECT_EQ(listed(groups_of("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}")), (Groups{{0, 2}, {1, 3}}));
  EXPECT_TRUE(groups_of("{}").is_all());
  EXPECT_EQ(groups_of("{{0,1},{2}}").uniform_size(), std::nullopt);
}

TEST(ReplicaGroups, PrintsWhatItReads) {
  for (const char* text : {"{}", "{{0,1},{2,3}}", "[2,4]<=[4,2]T(1,0)", "[4,2]<=[8]", "mesh['a'=2,'b'=4] {'b','a'}", "mesh['a'=8] {'a':(2)2}",
                           "mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}"})
    EXPECT_EQ(to_text(groups_of(text)), text);
}

/// Element `at` of the row-major reshape of ids to `dims`, transposed by `order`: by indices, not by strides.
std::vector<std::int64_t> transposed(const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& dims, const std::vector<int>& order) {
  std::vector<std::int64_t> result;
  std::vector<std::int64_t> index(dims.size());  // of the transpose
  for (std::size_t n = 0; n < ids.size(); ++n) {
    std::vector<std::int64_t> source(dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d) source[static_cast<std::size_t>(order[d])] = index[d];
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) flat = flat * dims[d] + source[d];
    result.push_back(ids[static_cast<std::size_t>(flat)]);
    for (std::size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[static_cast<std::size_t>(order[d])]) break;
      index[d] = 0;
    }
  }
  return result;
}
Groups rows_of(const std::vector<std::int64_t>& ids, std::int64_t size) {
  Groups rows;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (static_cast<std::int64_t>(i) % size == 0) rows.emplace_back();
    rows.back().push_back(ids[i]);
  }
  return rows;
}
std::vector<std::int64_t> some_extents(Rng& random, std::int64_t most) {
  std::vector<std::int64_t> dims;
  std::int64_t product = 1;
  for (std::uint64_t d = 1 + random.below(4); d > 0; --d) {
    dims.push_back(1 + static_cast<std::int64_t>(random.below(6)));
    if (product * dims.back() > most) dims.back() = 1;
    product *= dims.back();
  }
  return dims;
}
template <class T>
void shuffle(std::vector<T>& values, Rng& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

// 1000 seeded iota forms and 1000 mesh forms against their definition.
TEST(ReplicaGroups, IotaFormsAreTheirDefinition) {
  Rng random{19};
  for (int round = 0; round < 1000; ++round) {
    const std::vector<std::int64_t> dims = some_extents(random, 256);
    std::vector<int> order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    shuffle(order, random);
    std::vector<std::int64_t> ids(static_cast<std::size_t>(std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>{})));
    std::iota(ids.begin(), ids.end(), 0);
    std::vector<std::int64_t> sizes;
    for (std::int64_t size = 1; size <= static_cast<std::int64_t>(ids.size()); ++size)
      if (static_cast<std::int64_t>(ids.size()) % size == 0) sizes.push_back(size);
    const std::int64_t size = sizes[random.below(sizes.size())];
    const std::string text =
        fmt::format("[{},{}]<=[{}]T({})", static_cast<std::int64_t>(ids.size()) / size, size, fmt::join(dims, ","), fmt::join(order, ","));
    ASSERT_EQ(listed(groups_of(text)), rows_of(transposed(ids, dims, order), size)) << text;
  }
}

TEST(ReplicaGroups, MeshFormsAreTheirDefinition) {
  Rng random{20};
  for (int round = 0; round < 1000; ++round) {
    const std::vector<std::int64_t> sizes = some_extents(random, 256);
    // Each axis as it is, or in three parts of which the middle one may be listed.
    std::vector<std::int64_t> dims;
    std::vector<std::pair<int, std::string>> candidates;  // dimension, how it is listed
    std::string mesh;
    for (std::size_t a = 0; a < sizes.size(); ++a) {
      mesh += fmt::format("{}'a{}'={}", a > 0 ? "," : "", a, sizes[a]);
      std::vector<std::int64_t> divisors;
      for (std::int64_t p = 1; p <= sizes[a]; ++p)
        if (sizes[a] % p == 0) divisors.push_back(p);
      const std::int64_t before = divisors[random.below(divisors.size())];
      std::vector<std::int64_t> inner;
      for (std::int64_t p = 1; p <= sizes[a] / before; ++p)
        if (sizes[a] / before % p == 0) inner.push_back(p);
      const std::int64_t part = inner[random.below(inner.size())];
      if (random.below(2) == 0) {
        candidates.emplace_back(static_cast<int>(dims.size()), fmt::format("'a{}'", a));
        dims.push_back(sizes[a]);
      } else {
        candidates.emplace_back(static_cast<int>(dims.size()) + 1, fmt::format("'a{}':({}){}", a, before, part));
        dims.insert(dims.end(), {before, part, sizes[a] / before / part});
      }
    }
    shuffle(candidates, random);
    candidates.resize(random.below(candidates.size() + 1));
    std::vector<std::int64_t> ids(static_cast<std::size_t>(std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>{})));
    std::iota(ids.begin(), ids.end(), 0);
    std::string device_ids, names;
    if (random.below(3) == 0) {
      shuffle(ids, random);
      device_ids = fmt::format(", device_ids=({})", fmt::join(ids, ","));
    }
    std::vector<int> order;
    std::int64_t size = 1;
    for (int d = 0; d < static_cast<int>(dims.size()); ++d)
      if (std::none_of(candidates.begin(), candidates.end(), [&](const auto& c) { return c.first == d; })) order.push_back(d);
    for (const auto& [dimension, name] : candidates) {
      order.push_back(dimension);
      size *= dims[static_cast<std::size_t>(dimension)];
      names += (names.empty() ? "" : ",") + name;
    }
    const std::string text = fmt::format("mesh[{}]{} {{{}}}", mesh, device_ids, names);
    ASSERT_EQ(listed(groups_of(text)), rows_of(transposed(ids, dims, order), size)) << text;
  }
}

// Every choice of axes in every order on seeded meshes is found again, listed or not; groups that are no axes are not.
TEST(ReplicaGroups, AxesOfAMeshAreFoundInTheirOrder) {
  Rng random{21};
  for (int round = 0; round < 300; ++round) {
    std::vector<MeshAxis> axes;
    std::string text;
    std::vector<int> chosen;
    for (int a = 0; a < 4; ++a) {
      axes.push_back({std::string(1, static_cast<char>('p' + a)), random.between(1, 4)});
      text += fmt::format("{}'{}'={}", a > 0 ? "," : "", axes.back().name, axes.back().size);
      if (axes.back().size > 1) chosen.push_back(a);
    }
    shuffle(chosen, random);
    chosen.resize(random.below(chosen.size() + 1));
    std::vector<std::string> names;
    for (const int a : chosen) names.push_back(fmt::format("'{}'", axes[static_cast<std::size_t>(a)].name));
    const ReplicaGroups groups = groups_of(fmt::format("mesh[{}] {{{}}}", text, fmt::join(names, ",")));
    const Mesh mesh = mesh_of(axes);
    ASSERT_EQ(axes_of(groups, mesh), chosen) << to_text(groups);
    ASSERT_EQ(axes_of(ReplicaGroups::of_list(listed(groups)), mesh), chosen) << to_text(groups);
  }
  const Mesh mesh = mesh_of({{"x", 4}, {"y", 2}});
  EXPECT_EQ(axes_of(groups_of("{{0,1,2,3},{4,5,6,7}}"), mesh), std::nullopt);
  EXPECT_EQ(axes_of(groups_of("{{0,1},{2,3},{4,5}}"), mesh), std::nullopt);
  EXPECT_EQ(axes_of(groups_of("{{1,0},{3,2},{5,4},{7,6}}"), mesh), std::nullopt);
  EXPECT_EQ(axes_of(groups_of("{}"), mesh), (std::vector<int>{0, 1}));
}

TEST(ReplicaGroups, APermuteIsAShiftOfAllOrOfSomeDevices) {
  const Mesh mesh = mesh_of({{"x", 4}, {"y", 2}});
  EXPECT_EQ(shift_of({{0, 2}, {2, 4}, {4, 6}, {6, 0}}, mesh), (PermuteShift{0, 1, true, {{1, 0}}}));
  EXPECT_EQ(shift_of({{0, 6}, {2, 0}, {4, 2}, {6, 4}, {1, 7}, {3, 1}, {5, 3}, {7, 5}}, mesh), (PermuteShift{0, -1, true, {}}));
  EXPECT_EQ(shift_of({{0, 2}, {2, 4}, {4, 6}}, mesh), (PermuteShift{0, 1, false, {{1, 0}}}));
  EXPECT_EQ(shift_of({{0, 1}, {1, 0}, {2, 3}, {3, 2}, {4, 5}, {5, 4}, {6, 7}, {7, 6}}, mesh), (PermuteShift{1, 1, true, {}}));
  EXPECT_EQ(shift_of({{0, 6}}, mesh), (PermuteShift{0, 3, false, {{1, 0}}}));
  EXPECT_EQ(shift_of({{0, 3}, {3, 0}}, mesh), std::nullopt);
  EXPECT_EQ(shift_of({{0, 2}, {4, 6}}, mesh), std::nullopt);
  EXPECT_EQ(shift_of({{0, 2}, {2, 6}}, mesh), std::nullopt);
  EXPECT_EQ(shift_of({{0, 99}}, mesh), std::nullopt);
  EXPECT_EQ(shift_of({}, mesh), std::nullopt);
}

TEST(ReplicaGroups, IdsOfEveryModeAreFlattened) {
  const auto flat = [](const std::string& text, HloGroupMode mode, std::int64_t replicas, std::int64_t partitions) {
    const auto groups = flattened_groups(groups_of(text), mode, replicas, partitions, {});
    EXPECT_TRUE(groups) << to_text(groups.error());
    return groups ? listed(*groups) : Groups{};
  };
  EXPECT_EQ(flat("{{0,1}}", HloGroupMode::replicas, 2, 3), (Groups{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ(flat("{{0,2}}", HloGroupMode::partitions, 2, 3), (Groups{{0, 2}, {3, 5}}));
  EXPECT_EQ(flat("{{0,1}}", HloGroupMode::replicas_everywhere, 2, 2), (Groups{{0, 1, 2, 3}}));
  EXPECT_EQ(flat("{{0,3},{1,2}}", HloGroupMode::flattened, 2, 2), (Groups{{0, 3}, {1, 2}}));
  EXPECT_EQ(flat("{}", HloGroupMode::flattened, 1, 3), (Groups{{0, 1, 2}}));
  EXPECT_EQ(flat("{{0,1}}", HloGroupMode::replicas, 1, 2), (Groups{{0, 1}}));
  const auto beyond = flattened_groups(groups_of("{{0,9}}"), HloGroupMode::flattened, 1, 8, {"g", 3, 4});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(to_text(beyond.error()), "g:3:4: expected ids below 8, got 9");
}

TEST(ReplicaGroups, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(groups_error("{{0,1},{1}}"), "g:1:1: expected every device at most once, got 1 again");
  EXPECT_EQ(groups_error("{{0},{}}"), "g:1:8: expected a group of devices, not an empty one, before this, got \"}\"");
  EXPECT_EQ(groups_error("[3,2]<=[8]"), "g:1:1: expected 3 groups of 2 devices, got the 8 of [8]");
  EXPECT_EQ(groups_error("[4,2]<=[2,4]T(0,0)"), "g:1:1: expected a permutation of the 2 dimensions, got T(0,0)");
  EXPECT_EQ(groups_error("mesh['a'=4] {'b'}"), "g:1:14: expected an axis of the mesh, got \"'b'}\"");
  EXPECT_EQ(groups_error("mesh['a'=4] {'a':(3)2}"), "g:1:1: expected a part of the axis of size 4, got (3)2");
  EXPECT_EQ(groups_error("mesh['a'=4] {'a','a'}"), "g:1:1: expected every axis at most once, got \"a\" again");
  EXPECT_EQ(groups_error("mesh['a'=2], device_ids=(0,0) {'a'}"), "g:1:14: expected every device at most once, got 0 again");
  EXPECT_EQ(groups_error("[4294967296,2]<=[8589934592]"), "g:1:2: expected the number of groups, got \"4294967296,2]<=[8589934592]\"");
}

}  // namespace
}  // namespace podsim
