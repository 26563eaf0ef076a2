// Factorisations and solutions in time: des agrees with simgrid, folded is unfolded, and no edge of theirs is there for nothing.
#include <gtest/gtest.h>

#include "algorithms/lu/test_lu.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/schedule/validate.hpp"
#include "topologies/machines.hpp"

namespace podsim {
namespace {

using testing::lowered_lu;
using testing::lu_problem;
using testing::small_system;
using testing::SmallSystem;

/// Block-cyclic and naive factorisations and solutions on this system.
std::vector<Schedule> schedules_on(const SmallSystem& pod, std::int64_t K) {
  const std::int64_t b = 8, n = K * b;
  const std::int64_t devices = pod.mesh.devices();
  std::vector<Schedule> result;
  for (const int ahead : {0, 1}) {
    result.push_back(lowered_lu(make_lu(LuMethod::block, pod.mesh, lu_problem(pod.mesh, n, b, ahead))));
    result.push_back(lowered_lu(make_solve(SolveMethod::block, pod.mesh, lu_problem(pod.mesh, n, b, ahead, {n, 4}))));
  }
  result.push_back(lowered_lu(make_lu(LuMethod::naive, pod.mesh, lu_problem(pod.mesh, devices * 8, b))));
  result.push_back(lowered_lu(make_solve(SolveMethod::naive, pod.mesh, lu_problem(pod.mesh, devices * 8, b, 0, {devices * 8}))));
  return result;
}

TEST(LuTiming, DesAgreesWithSimgrid) {
  testing::Agreement seen;
  for (const Machine& machine : {testing::overhead_machine(), *find_machine("tpu_v4")})
    for (const auto& [R, C] : {std::pair{2, 2}, {4, 2}, {3, 3}, {1, 4}})
      for (const bool wraps : {true, false}) {
        const SmallSystem pod = small_system(machine, {R, C}, wraps);
        for (const Schedule& schedule : schedules_on(pod, 5)) {
          const auto model = testing::model_of(pod, schedule);
          ASSERT_TRUE(model) << to_text(model.error());
          ASSERT_TRUE(testing::engines_agree(*model, 1e-6, seen)) << schedule.name << " on " << to_text(pod.mesh) << ", " << machine.name;
        }
      }
  EXPECT_GE(seen.compared, 90);
}

TEST(LuTiming, FoldedIsUnfolded) {
  testing::Folds seen;
  for (const auto& [R, C] : {std::pair{2, 2}, {4, 2}, {3, 3}}) {
    const SmallSystem pod = small_system(*find_machine("tpu_v4"), {R, C});
    for (const Schedule& schedule : schedules_on(pod, 5))
      ASSERT_TRUE(testing::folding_changes_nothing(schedule, testing::world_of(pod), seen)) << schedule.name;
  }
  EXPECT_GE(seen.compared, 18);
}

bool joins(const Task& task) {
  const auto* local = std::get_if<Local>(&task.op);
  return local != nullptr && local->kind == LocalKind::join;
}

TEST(LuTiming, NoEdgeOnlyLimitsRunAhead) {
  const Mesh mesh = testing::lu_mesh(2, 2);
  for (const int ahead : {0, 1}) {
    const Schedule lowered = lowered_lu(make_solve(SolveMethod::block, mesh, lu_problem(mesh, 12, 4, ahead, {12})));
    const auto audits = audit_edges(lowered);
    ASSERT_TRUE(audits);
    int needed = 0;
    for (const EdgeAudit& audit : *audits) {
      const Task& task = lowered.programs[0].tasks[audit.task.index()];
      const Task& before = lowered.programs[0].tasks[task.after[audit.edge].task.index()];
      if (task.origin || joins(task)) continue;  // queues of axes; what somebody may wait for
      needed += audit.purpose == EdgePurpose::ordering ? 1 : 0;
      // Of a joined reduction every transfer may be over for another reason.
      EXPECT_TRUE(audit.purpose != EdgePurpose::timing || joins(before)) << task.label << " after " << before.label;
    }
    EXPECT_GE(needed, 50);
  }
}

}  // namespace
}  // namespace podsim
