// The structure of factorisations and solutions: matched, free of races and deadlocks; traffic; errors.
#include "algorithms/lu/lu.hpp"

#include <gtest/gtest.h>

#include "algorithms/collectives/collectives.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

Mesh mesh_of(int R, int C) { return *Mesh::make({{"row", R, true}, {"col", C, true}}); }

LuProblem problem_on(const Mesh& mesh, std::int64_t n, std::int64_t block, int look_ahead = 0, Extents right = {}) {
  return {{n, n}, std::move(right), block, {mesh.whole(0)}, {mesh.whole(1)}, look_ahead};
}

void expect_proven(const Expected<Schedule>& schedule) {
  ASSERT_TRUE(schedule) << to_text(schedule.error());
  const auto lowered = lower(*schedule, ring_or_line(in_chunks(2)));
  ASSERT_TRUE(lowered) << to_text(lowered.error());
  const Validation validation = validate(*lowered);
  for (const Diagnostic& problem : validation.all()) ADD_FAILURE() << to_text(problem);
}

TEST(Lu, IsMatchedRaceFreeAndDeadlockFree) {
  for (const auto& [R, C] : {std::pair{1, 1}, {2, 2}, {4, 2}, {3, 3}, {1, 4}, {4, 1}, {2, 3}})
    for (const std::int64_t K : {1, 2, 3, 7, 12})
      for (const int ahead : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << R << "x" << C << ", " << K << " blocks, look-ahead " << ahead);
        const Mesh mesh = mesh_of(R, C);
        expect_proven(make_lu(LuMethod::block, mesh, problem_on(mesh, 4 * K, 4, ahead)));
        expect_proven(make_solve(SolveMethod::block, mesh, problem_on(mesh, 4 * K, 4, ahead, {4 * K})));
        expect_proven(make_solve(SolveMethod::block, mesh, problem_on(mesh, 4 * K, 4, ahead, {4 * K, 6})));
      }
}

TEST(Lu, NaiveAndBatchedAreProvenToo) {
  const Mesh mesh = mesh_of(4, 2);
  expect_proven(make_lu(LuMethod::naive, mesh, problem_on(mesh, 16, 4)));
  expect_proven(make_solve(SolveMethod::naive, mesh, problem_on(mesh, 16, 4, 0, {16})));
  LuProblem batched = problem_on(mesh, 16, 4, 0, {8, 16, 3});
  batched.matrix = {8, 16, 16};
  expect_proven(make_solve(SolveMethod::batched, mesh, batched));
}

}  // namespace
}  // namespace podsim
