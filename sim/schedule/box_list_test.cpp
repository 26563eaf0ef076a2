#include "sim/schedule/box_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/rng.hpp"

namespace podsim {
namespace {

struct Item {
  int name;
  Box box;
};

/// Adds and removes boxes of many sizes, and asks a plain vector beside it.
void compare_with_a_vector(std::uint64_t seed, int adds, std::int64_t extent, int longest, int remove_one_in) {
  Rng rng{seed, stream_of("boxes")};
  BoxList<Item> list;
  std::vector<Item> plain;
  const auto side = [&](Box& box) {
    const std::int64_t length = rng.below(10) == 0 ? extent : rng.between(1, longest);
    box.begin.push_back(rng.between(0, static_cast<int>(extent - length)));
    box.length.push_back(length);
  };
  for (int i = 0; i < adds; ++i) {
    Box box{BufferId{0}, {}, {}};
    side(box), side(box);
    std::vector<int> found, expected;
    const int removed = rng.between(0, remove_one_in - 1);
    list.remove_overlapping(box, [&](const Item& item) {
      found.push_back(item.name);
      return item.name % remove_one_in == removed;
    });
    std::erase_if(plain, [&](const Item& item) {
      if (!overlap(item.box, box)) return false;
      expected.push_back(item.name);
      return item.name % remove_one_in == removed;
    });
    ASSERT_EQ(found, expected) << "add " << i;
    list.add({i, box});
    plain.push_back({i, box});
  }
}

TEST(BoxList, FindsWhatAPlainListFindsInTheSameOrder) {
  for (std::uint64_t seed = 0; seed < 12; ++seed)
    for (const int longest : {1, 5, 60})
      for (const int remove_one_in : {1, 2, 50}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", longest " << longest << ", removes one in " << remove_one_in);
        compare_with_a_vector(seed, 400, 64, longest, remove_one_in);
      }
}

TEST(BoxList, TakesBoxesOutsideItsCells) {
  BoxList<Item> list;
  const auto row = [](std::int64_t begin) { return Box{BufferId{0}, {begin}, {1}}; };
  for (int i = 0; i < 100; ++i) list.add({i, row(i)});
  list.add({100, row(-1000)});
  list.add({101, row(1000)});
  for (const auto& [at, name] : {std::pair{-1000, 100}, {1000, 101}, {40, 40}}) {
    std::vector<int> found;
    list.remove_overlapping(row(at), [&](const Item& item) { return found.push_back(item.name), false; });
    EXPECT_THAT(found, ::testing::ElementsAre(name));
  }
}

}  // namespace
}  // namespace podsim
