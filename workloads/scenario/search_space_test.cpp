// Where a tuner searches.
#include "workloads/scenario/search_space.hpp"

#include <gtest/gtest.h>

#include "topologies/machines.hpp"

namespace podsim {
namespace {

TEST(SearchSpace, SlicesThatAreOfferedAreWiredAsTheyAreSold) {
  const Machine v5e = *find_machine("tpu_v5e");
  const auto slices = slices_of(v5e, 16, true);
  ASSERT_TRUE(slices);
  ASSERT_EQ(slices->size(), 5U);
  for (const Slice& slice : *slices) EXPECT_EQ(slice, *parse_slice(to_text(slice), v5e, {})) << to_text(slice);
  const auto systems = systems_in({{.machine = v5e}, *slices, {{{"row", 4}, {"col", 4}}}});
  ASSERT_TRUE(systems) << to_text(systems.error());
  for (const System& system : *systems)
    EXPECT_EQ(system.slice.hypothetical, to_text(system.slice) != "4x4") << to_text(system.slice) << ": v5e has no other of 16 chips";
}

}  // namespace
}  // namespace podsim
