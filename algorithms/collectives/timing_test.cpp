// Every collective algorithm on every kind that it does: des agrees with simgrid, and folded is unfolded.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "algorithms/collectives/testing.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/table/test_agreement.hpp"

namespace podsim {
namespace {

using testing::small_system;
using testing::SmallSystem;
using testing::World;

struct TimingCase {
  std::string name;
  CollectiveKind kind = CollectiveKind::all_gather;
  World world;
  Schedule schedule;
};

/// Along every axis and along all of them; on tori, open grids, rings that an axis folds, grids with a cut cable and around a switch.
std::vector<TimingCase> cases_of(std::string_view algorithm) {
  std::vector<TimingCase> cases;
  Rng rng{stream_of(algorithm)};
  const bool in_switch = collective_algorithm_named(algorithm)->needs.in_switch;
  const auto add = [&](const SmallSystem& pod, const std::vector<std::string>& axes, std::int64_t elements) {
    int group = 1;
    for (const std::string& axis : axes) group *= pod.mesh.axis(axis)->size;
    for (int k = 0; k < collective_kind_count; ++k) {
      const auto kind = static_cast<CollectiveKind>(k);
      CollectiveDetails details;
      details.root = rng.between(0, group - 1);
      if (rng.below(2) == 0) details.pairs = shift_pairs(group, rng.between(-group / 2, group / 2));
      const auto schedule = testing::try_collective(pod, kind, axes, Bytes{elements * group * 4}, algorithm, details, in_chunks(3));
      if (!schedule) continue;  // does not apply
      LinkParameters link = pod.machine.link[0];
      link.in_switch_efficiency = 0.8;
      const World around_switch{pod.machine, std::make_shared<testing::Switch>(pod.mesh.devices(), link), pod.placement};
      const std::string name = std::string{algorithm} + " " + std::string{name_of(kind)} + " on " + to_text(pod.mesh) + " along " + axes.front() + ", " +
                               std::to_string(axes.size()) + " axes, " + std::to_string(elements) + " elements";
      if (in_switch) {
        cases.push_back({name, kind, around_switch, *schedule});
        continue;
      }
      cases.push_back({name, kind, testing::world_of(pod), *schedule});
      Damage damage;
      testing::cut(damage, pod.grid, ChipId{rng.between(0, pod.grid.chips() - 1)}, 0, 1);
      cases.push_back({name + ", a cable cut", kind, {pod.machine, testing::damaged(pod.grid, damage), pod.placement}, *schedule});
      if (algorithm == "direct" || algorithm == "halving-doubling" || algorithm == "pairwise" || algorithm == "folded-ring")
        cases.push_back({name + ", switch", kind, around_switch, *schedule});
    }
  };
  for (const bool wraps : {true, false})
    for (const std::vector<int>& extents : {std::vector<int>{8}, {5}, {2}, {4, 3}, {1, 4}, {2, 2, 2}}) {
      Machine machine = rng.below(2) == 0 ? testing::overhead_machine() : testing::costly_machine(rng);
      const SmallSystem pod = small_system(machine, extents, wraps);
      std::vector<std::string> all;
      for (const MeshAxis& axis : pod.mesh.axes()) {
        add(pod, {axis.name}, rng.between(1, 500));
        all.push_back(axis.name);
      }
      if (all.size() > 1) add(pod, all, rng.between(1, 50));
    }
  add(small_system(testing::overhead_machine(), {2, 4, 2}, true, {{"row", 8}, {"col", 2}}), {"row"}, 100);
  const AxisNeeds& needs = collective_algorithm_named(algorithm)->needs;
  if (needs.axes > 1 && (needs.power_of_two || needs.in_switch))  // few of the above
    for (const bool wraps : {true, false})
      for (const std::vector<int>& extents : {std::vector<int>{2, 4}, {4, 4}, {8, 2}}) {
        const SmallSystem pod = small_system(testing::overhead_machine(), extents, wraps);
        add(pod, {"row", "col"}, rng.between(1, 50));
        add(pod, {"col", "row"}, rng.between(1, 50));
      }
  return cases;
}

class CollectiveTiming : public ::testing::TestWithParam<std::string> {};
std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const CollectiveAlgorithmEntry& entry : collective_algorithms()) result.emplace_back(entry.name);
  return result;
}
INSTANTIATE_TEST_SUITE_P(Algorithms, CollectiveTiming, ::testing::ValuesIn(names()), [](const auto& algorithm) {
  std::string name = algorithm.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(CollectiveTiming, DesAgreesWithSimgrid) {
  testing::Agreement seen;
  const std::vector<TimingCase> cases = cases_of(GetParam());
  const std::size_t step = 1 + cases.size() / test::cases(100U, 25U);  // some of them, of all kinds: a run of simgrid is a process
  for (std::size_t i = 0; i < cases.size(); i += step) {
    const TimingCase& c = cases[i];
    const auto model = make_model(c.schedule, c.world.machine, *c.world.topology, c.world.placement);
    if (!model) continue;  // cut apart
    ASSERT_TRUE(testing::engines_agree(*model, 1e-6, seen)) << c.name;
  }
  RecordProperty("worst", std::to_string(seen.worst));
  EXPECT_GE(seen.compared, 10);
}

TEST_P(CollectiveTiming, FoldedIsUnfolded) {
  testing::Folds seen;
  for (const TimingCase& c : cases_of(GetParam())) ASSERT_TRUE(testing::folding_changes_nothing(c.schedule, c.world, seen)) << c.name;
  const bool in_switch = collective_algorithm_named(GetParam())->needs.in_switch;
  EXPECT_GE(seen.compared, GetParam() == "channels" ? 12 : in_switch ? 9 : 24);
  EXPECT_GE(seen.into_one, GetParam() == "channels" || GetParam() == "hamiltonian-ring" ? 0 : in_switch ? 6 : 10);  // a channel begins at one of the devices
  EXPECT_GE(seen.partly, in_switch ? 0 : 2);  // around a switch all devices are alike
}

}  // namespace
}  // namespace podsim
