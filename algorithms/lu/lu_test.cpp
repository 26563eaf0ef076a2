// The structure of factorisations and solutions: matched, free of races and deadlocks; traffic; bad input.
#include "algorithms/lu/lu.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/lu/test_lu.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using testing::lowered_lu;
using testing::lu_mesh;
using testing::lu_problem;

void expect_proven(const Expected<Schedule>& schedule) {
  for (const Diagnostic& problem : validate(lowered_lu(schedule)).all()) ADD_FAILURE() << to_text(problem);
}

TEST(Lu, IsMatchedRaceFreeAndDeadlockFree) {
  for (const auto& [R, C] : {std::pair{1, 1}, {2, 2}, {4, 2}, {3, 3}, {1, 4}, {4, 1}, {2, 3}, {5, 2}})
    for (const std::int64_t K : {1, 2, 3, 7, 12})
      for (const int ahead : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << R << "x" << C << ", " << K << " blocks, look-ahead " << ahead);
        const Mesh mesh = lu_mesh(R, C);
        expect_proven(make_lu(LuMethod::block, mesh, lu_problem(mesh, 4 * K, 4, ahead)));
        expect_proven(make_solve(SolveMethod::block, mesh, lu_problem(mesh, 4 * K, 4, ahead, {4 * K})));
        expect_proven(make_solve(SolveMethod::block, mesh, lu_problem(mesh, 4 * K, 4, ahead, {4 * K, 6})));
      }
}

TEST(Lu, RowsMayBeDividedOverTwoAxesAndGroupsRepeat) {
  const Mesh mesh = *Mesh::make({{"a", 2, true}, {"b", 3, true}, {"c", 2, true}, {"d", 2, true}});
  for (const int ahead : {0, 1}) {
    LuProblem problem{{40, 40}, {}, 4, {mesh.whole(0), mesh.whole(2)}, {mesh.whole(1)}, ahead};
    expect_proven(make_lu(LuMethod::block, mesh, problem));
    problem.rows = {}, problem.columns = {mesh.whole(3), mesh.whole(0)};
    expect_proven(make_lu(LuMethod::block, mesh, problem));
  }
}

TEST(Lu, NaiveAndBatchedAreProvenToo) {
  const Mesh mesh = lu_mesh(4, 2);
  expect_proven(make_lu(LuMethod::naive, mesh, lu_problem(mesh, 16, 4)));
  expect_proven(make_solve(SolveMethod::naive, mesh, lu_problem(mesh, 16, 4, 0, {16})));
  LuProblem batched = lu_problem(mesh, 16, 4, 0, {8, 16, 3});
  batched.matrix = {8, 16, 16};
  const auto schedule = make_solve(SolveMethod::batched, mesh, batched);
  expect_proven(schedule);
  EXPECT_TRUE(testing::traffic_of(lowered_lu(schedule)).empty());
}

/// The formulas of lu.hpp, exactly, where R and C divide K; panels everywhere.
TEST(Lu, TrafficIsThatOfTheFormulas) {
  for (const auto& [R, C] : {std::pair{2, 2}, {4, 2}, {3, 3}, {2, 4}})
    for (const std::int64_t K : {8, 16, 24}) {
      SCOPED_TRACE(::testing::Message() << R << "x" << C << ", " << K << " blocks");
      const std::int64_t b = 4, n = K * b, W = (K + C - 1) / C, Q = (K + R - 1) / R;
      const Mesh mesh = lu_mesh(R, C);
      auto bytes = testing::traffic_of(lowered_lu(make_lu(LuMethod::block, mesh, lu_problem(mesh, n, b))));
      std::int64_t panels = 0, u = 0, l = 0;
      for (std::int64_t k = 0; k < K; ++k) panels += (K - k + R - 1) / R;
      for (std::int64_t k = 1; k < K; ++k) u += W - k / C;
      for (std::int64_t k = 0; k < K; ++k) l += (K - k + R - 1) / R;
      EXPECT_EQ(bytes["gather panel"], R * (R - 1) * 4 * b * b * panels);
      EXPECT_EQ(bytes["old rows"], (R - 1) * 4 * n * W * C * b);
      EXPECT_EQ(bytes["new rows"], (R - 1) * 4 * n * W * C * b);
      EXPECT_EQ(bytes["-U"], (R - 1) * 4 * b * b * C * u);
      EXPECT_EQ(bytes["L"], (C - 1) * 4 * b * b * R * l);
      EXPECT_EQ(bytes["pivots"], (C - 1) * 12 * n * R);
      EXPECT_EQ(bytes.size(), 6U);
      if (K % C != 0 || K % R != 0) continue;
      EXPECT_EQ(bytes["old rows"] + bytes["new rows"], (R - 1) * 4 * n * n * 2);
      EXPECT_EQ(bytes["-U"], (R - 1) * 2 * (n * n + n * (C - 2) * b));
      EXPECT_EQ(bytes["L"], (C - 1) * 2 * (n * n + n * R * b));
      EXPECT_LE(Q * R, K);
    }
}

TEST(Lu, TrafficOfSolutionsToo) {
  for (const auto& [R, C] : {std::pair{2, 2}, {4, 2}, {2, 4}})
    for (const std::int64_t m : {1, 8}) {
      SCOPED_TRACE(::testing::Message() << R << "x" << C << ", " << m << " right-hand sides");
      const std::int64_t b = 4, K = 16, n = K * b, own = m == 8 ? m : m * C;  // 8 are divided by C, 1 is on all
      const Mesh mesh = lu_mesh(R, C);
      auto bytes =
          testing::traffic_of(lowered_lu(make_solve(SolveMethod::block, mesh, lu_problem(mesh, n, b, 0, m == 1 ? Extents{n} : Extents{n, m}))));
      const std::int64_t half = 2 * (n * n + n * C * b);  // of 4 n^2: the columns from the panel's on
      EXPECT_EQ(bytes["old rows"], (R - 1) * (half + 4 * n * own));
      EXPECT_EQ(bytes["new rows"], (R - 1) * (half + 4 * n * own));
      EXPECT_EQ(bytes["-U"], (R - 1) * (2 * (n * n + n * (C - 2) * b) + 4 * (n - b) * own));
      EXPECT_EQ(bytes["-x"], (R - 1) * 4 * (n - b) * own);
      EXPECT_EQ(bytes["L"], (C - 1) * 2 * (n * n + n * R * b));
      EXPECT_LE(bytes["gather columns of U"], (C - 1) * 2 * (n * n + n * (R + C) * b));
      EXPECT_GE(bytes["gather columns of U"], (C - 1) * 2 * n * n);
      EXPECT_EQ(bytes.size(), 8U);
    }
}

TEST(Lu, LookAheadSendsTheNextPanelsColumnOnceMore) {
  const std::int64_t b = 4, n = 64, R = 4;
  const Mesh mesh = lu_mesh(4, 2);
  auto with = testing::traffic_of(lowered_lu(make_lu(LuMethod::block, mesh, lu_problem(mesh, n, b, 1))));
  auto without = testing::traffic_of(lowered_lu(make_lu(LuMethod::block, mesh, lu_problem(mesh, n, b))));
  EXPECT_EQ(with["new rows of next panel"], (R - 1) * 4 * (n - b) * b);
  EXPECT_EQ(with["-U of next panel"], (R - 1) * 4 * (n - b) * b);
  EXPECT_EQ(with["new rows"], without["new rows"]);
  EXPECT_LT(with["-U"], without["-U"]);
  EXPECT_EQ(with["gather panel"], without["gather panel"]);
}

TEST(Lu, BadInputIsNamed) {
  const Mesh mesh = lu_mesh(2, 2);
  const auto message = [&](const LuProblem& problem) {
    const auto schedule = make_lu(LuMethod::block, mesh, problem);
    return schedule ? std::string{"no error"} : to_text(schedule.error());
  };
  EXPECT_EQ(message(lu_problem(mesh, 512, 24)), "512 rows are no multiple of the block, 24: pad A to 528, or choose a block that divides 512");
  EXPECT_EQ(message(lu_problem(mesh, 512, 0)), "blocks of 0 rows; expected at least 1");
  LuProblem problem = lu_problem(mesh, 512, 32);
  problem.matrix = {512, 256};
  EXPECT_EQ(message(problem), "A is [512,256]; expected a square matrix, [n,n]");
  problem = lu_problem(mesh, 512, 32);
  problem.dtype = DType::bf16;
  EXPECT_EQ(message(problem), "a factorisation of bf16; expected f32");
  problem = lu_problem(mesh, 512, 32, 2);
  EXPECT_EQ(message(problem), "a look-ahead of 2 panels; expected 0 or 1");
  problem = lu_problem(mesh, 512, 32);
  problem.columns = problem.rows;
  EXPECT_EQ(message(problem), "rows and columns are both divided along the mesh axis row");
  EXPECT_EQ(message(lu_problem(mesh, 1 << 20, 1)), "1048576 blocks of 1 rows; expected at most 2048, so blocks of 512 rows or more");

  const auto of_solve = [&](SolveMethod method, Extents matrix, Extents right) {
    LuProblem system = lu_problem(mesh, 16, 4, 0, std::move(right));
    system.matrix = std::move(matrix);
    const auto schedule = make_solve(method, mesh, system);
    return schedule ? std::string{"no error"} : to_text(schedule.error());
  };
  EXPECT_EQ(of_solve(SolveMethod::block, {16, 16}, {12}), "A is [16,16], b is [12]; expected [16] or [16,m]");
  EXPECT_EQ(of_solve(SolveMethod::block, {16, 16}, {}), "a system needs b, [n] or [n,m]");
  EXPECT_EQ(of_solve(SolveMethod::naive, {15, 15}, {15}), "dimension 0 of A, [15,15], has 15 elements; expected a multiple of 2 devices");
  EXPECT_EQ(of_solve(SolveMethod::batched, {6, 8, 8}, {6, 8}), "dimension 0 of A, [6,8,8], has 6 elements; expected a multiple of 4 devices");
  EXPECT_EQ(of_solve(SolveMethod::batched, {8, 8, 8}, {8, 9}), "A is [8,8,8], b is [8,9]; expected [8,8] or [8,8,m]");
}

}  // namespace
}  // namespace podsim
