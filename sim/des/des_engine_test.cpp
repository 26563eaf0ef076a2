// The native engine against the referee, and folded runs against runs of every device.
#include "sim/des/des_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/fold.hpp"
#include "sim/engines/testing.hpp"
#include "sim/schedule/test_random.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::Pod;

Machine random_machine(Rng& rng) {
  Machine machine = testing::ideal_machine(rng.between(1, 20) * 1e8, rng.between(0, 3) * 1e-7);
  machine.chip.hbm_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  machine.chip.peak.fill(FlopsPerSecond{rng.between(1, 9) * 1e8});
  machine.chip.reduce_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  if (rng.below(2) == 0) machine.chip.injection_bandwidth = BytesPerSecond{rng.between(1, 9) * 1e8};
  machine.software.per_message = Seconds{rng.between(0, 3) * 1e-7};
  machine.software.launch.fill(Seconds{rng.between(0, 3) * 1e-7});
  return machine;
}

Pod pod_for(const Schedule& schedule, const Machine& machine) {
  std::vector<int> extents;
  std::vector<std::pair<std::string, int>> sizes;
  for (const MeshAxis& axis : schedule.mesh.axes()) extents.push_back(axis.size), sizes.emplace_back(axis.name, axis.size);
  return testing::make_pod(machine, extents, true, sizes);
}

TEST(Fold, GivesThePicosecondsOfEveryDevice) {
  int partly = 0, compared = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.exchanges = seed % 2 == 0, .careless = false});
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    Rng rng{seed, stream_of("machine")};
    const Pod pod = pod_for(schedule, random_machine(rng));
    const auto model = testing::model_of(pod, schedule);
    const auto folded = make_folded_model(schedule, pod.machine, pod.grid, pod.placement);
    ASSERT_EQ(model.has_value(), folded.has_value());
    if (!model) continue;
    const auto all = run_des(*model, {}), once = run_des(*folded, {});
    ASSERT_EQ(all.has_value(), once.has_value());
    if (!all) continue;
    ASSERT_EQ(all->makespan, once->makespan);
    for (std::uint32_t p = 0; p < model->costs.size(); ++p)
      for (std::size_t t = 0; t < model->costs[p].size(); ++t)
        for (std::size_t l = 0; l < model->deployment.programs[p].devices.size(); ++l) {
          const std::uint32_t node = folded->node_of[model->deployment.programs[p].devices[l]];
          const std::uint32_t local = folded->deployment.places[node].local;
          ASSERT_EQ(model->deployment.who(p, t).does(l), folded->deployment.who(p, t).does(local));
          if (!model->deployment.who(p, t).does(l)) continue;
          ASSERT_EQ(all->at(model->deployment.activity(p, t, l)), once->at(folded->deployment.activity(p, t, local)));
        }
    partly += folded->nodes() > 1 && folded->folded();
    ++compared;
  }
  EXPECT_GE(compared, 300);
  EXPECT_GE(partly, 100);
}

TEST(Des, AgreesWithSimgrid) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Schedule schedule = testing::random_schedule(seed, {.exchanges = seed % 2 == 0, .careless = false});
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(schedule));
    Rng rng{seed, stream_of("machine")};
    const Pod pod = pod_for(schedule, random_machine(rng));
    const auto des = testing::run(pod, schedule, "des"), simgrid = testing::run(pod, schedule, "simgrid");
    ASSERT_EQ(des.has_value(), simgrid.has_value());
    if (!des) continue;
    const double events = 4.0 * static_cast<double>(des->size());
    for (std::size_t a = 0; a < des->size(); ++a) {
      const double t = to_seconds(simgrid->at(a).received).count();
      ASSERT_NEAR(to_seconds(des->at(a).received).count(), t, 1e-6 * t + events * 1e-12) << a;
      ASSERT_NEAR(to_seconds(des->at(a).start).count(), to_seconds(simgrid->at(a).start).count(), 1e-6 * t + events * 1e-12) << a;
    }
    ++compared;
  }
  EXPECT_GE(compared, 300);
}

}  // namespace
}  // namespace podsim
