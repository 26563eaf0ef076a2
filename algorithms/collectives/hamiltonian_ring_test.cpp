// The ring of neighbours through a grid: the time of a ring of as many devices on one axis.
#include "algorithms/collectives/testing.hpp"
#include "sim/engine/table/test_agreement.hpp"

namespace podsim::hamiltonian_ring_tests {
namespace {

using testing::small_system;
using testing::SmallSystem;

TEST(HamiltonianRing, IsAsFastAsARingOfAsManyDevicesOnEveryEngine) {
  using enum CollectiveKind;
  for (const std::vector<int>& extents : {std::vector<int>{2, 2}, {2, 4}, {4, 2}, {3, 4}, {4, 3}, {3, 2}, {4, 4}, {2, 3, 2}, {3, 3, 2}})
    for (const bool wraps : {false, true}) {
      const SmallSystem grid = small_system(testing::overhead_machine(), extents, wraps);
      std::vector<std::string> axes;
      for (const MeshAxis& axis : grid.mesh.axes()) axes.push_back(axis.name);
      const int devices = grid.mesh.devices();
      const SmallSystem ring = small_system(testing::overhead_machine(), {devices}, true);
      for (const CollectiveKind kind : {all_gather, reduce_scatter, all_reduce}) {
        const Bytes bytes{4 * 64 * devices};
        const Schedule through_grid = testing::lowered_collective(grid, kind, axes, bytes, "hamiltonian-ring");
        const Schedule around = testing::lowered_collective(ring, kind, {ring.mesh.axes().front().name}, bytes, "ring");
        for (const std::string_view engine : {"des", "simgrid", "analytic"})
          EXPECT_NEAR(testing::seconds_of(grid, through_grid, engine), testing::seconds_of(ring, around, engine), 1e-10)
              << name_of(kind) << " on " << to_text(grid.mesh) << (wraps ? "" : " (open)") << ", " << engine;
      }
    }
}

TEST(HamiltonianRing, RefusesGridsThatHaveNone) {
  const auto refusal = [](const std::vector<int>& extents, const std::vector<std::string>& axes, CollectiveKind kind = CollectiveKind::all_gather) {
    const SmallSystem pod = small_system(testing::overhead_machine(), extents, true);
    const auto schedule = testing::try_collective(pod, kind, axes, Bytes{4 * 1024}, "hamiltonian-ring");
    return schedule ? std::string{} : schedule.error().message;
  };
  const std::string in_task = "task 0 \"all-gather\": ";
  EXPECT_EQ(refusal({3, 3}, {"row", "col"}), in_task + "`hamiltonian-ring` needs an even number of devices, the axes have 9");
  EXPECT_EQ(refusal({8, 16}, {"row", "col"}), in_task + "`hamiltonian-ring` is for at most 64 devices, the axes have 128");
  EXPECT_EQ(refusal({4, 4}, {"row"}), in_task + "`hamiltonian-ring` goes through two or more dimensions with more than one device");
  EXPECT_NE(refusal({4, 4}, {"row", "col"}, CollectiveKind::broadcast), "");
  EXPECT_EQ(refusal({2, 4}, {"row", "col"}), "");
}

}  // namespace
}  // namespace podsim::hamiltonian_ring_tests
