// Factorisations and solutions on numbers, against LAPACK on the whole matrix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "algorithms/lu/test_lu.hpp"
#include "sim/base/test_cases.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/test_dense.hpp"

namespace podsim {
namespace {

using testing::Factors;
using testing::lowered_lu;
using testing::lu_mesh;
using testing::lu_problem;
using testing::Matrix;

/// Changes made to a block-cyclic matrix before it is factored: rows, columns or one element times a power of two, which rounds nothing.
struct Scaling {
  std::int64_t row = -1, column = -1;  // -1: all
  double factor = 1;
};
using Scalings = std::vector<Scaling>;

Matrix scaled(Matrix a, std::int64_t n, const Scalings& scalings) {
  for (const Scaling& s : scalings)
    for (std::int64_t i = s.row < 0 ? 0 : s.row; i < (s.row < 0 ? n : s.row + 1); ++i)
      for (std::int64_t j = s.column < 0 ? 0 : s.column; j < (s.column < 0 ? n : s.column + 1); ++j)
        a[static_cast<std::size_t>(i * n + j)] *= s.factor;
  return a;
}

/// Appends the changes; returns the changed matrix and the last tasks.
std::pair<Region, Tasks> add_scalings(ProgramBuilder& builder, const LuLayout& layout, const Region& a, const Scalings& scalings) {
  Region changed = builder.scratch("changed", lengths_of(a), DType::f32);
  Tasks last{builder.alias("as given", a, changed, Tasks{})};
  for (const Scaling& s : scalings) {
    Region region = changed;
    Guard where;
    const auto pick = [&](std::int64_t number, std::size_t dim, std::int64_t devices, const std::vector<AxisView>& views) {
      if (number < 0) return;
      const std::int64_t block = number / layout.b;
      region = with(with(region, dim, span(block / devices, 1)), dim + 2, span(number % layout.b, 1));
      if (!views.empty()) where.push_back({own(views.front()), block % devices, block % devices + 1});
    };
    pick(s.row, 0, layout.R, layout.problem.rows);
    pick(s.column, 3, layout.C, layout.problem.columns);
    Tasks after = last;  // one after the other: they may overlap. A guarded one may be absent
    last.push_back(builder.add("scale", Local{LocalKind::scale, {region}, {region}, s.factor}, after, where));
    if (last.size() > 8) last = {builder.add("scaled", Local{LocalKind::join, {}, {}, 1, Unit::dma}, last)};
  }
  return {changed, last};
}

Schedule scaled_lu(const Mesh& mesh, const LuProblem& problem, const Scalings& scalings) {
  const auto layout = lu_layout(mesh, problem);
  EXPECT_TRUE(layout) << to_text(layout.error());
  ProgramBuilder builder{mesh, every_device(mesh)};
  const BufferId a = builder.add_buffer(layout->matrix_buffer("A", Role::input)), p = builder.add_buffer(layout->pivots_buffer("P", Role::output)),
                 l = builder.add_buffer(layout->matrix_buffer("L", Role::output)), u = builder.add_buffer(layout->matrix_buffer("U", Role::output));
  const auto [changed, after] = add_scalings(builder, *layout, builder.whole(a), scalings);
  const LuOutputs factors = add_lu(builder, *layout, changed, after);
  builder.alias("P", factors.pivots, builder.whole(p), factors.tasks);
  add_triangles(builder, *layout, factors.packed, builder.whole(l), builder.whole(u), factors.tasks);
  Schedule schedule{"scaled lu", mesh, {}, {}};
  schedule.programs.push_back(std::move(builder).finish());
  return schedule;
}

/// A block-cyclic buffer as the whole array, without padding. `columns`: of an array that is divided by rows only, that many on each device.
Matrix whole(const Schedule& schedule, const Tensors& tensors, std::string_view name, const LuLayout& layout, std::int64_t columns = 0) {
  const std::vector<Buffer>& buffers = schedule.programs[0].buffers;
  const auto at =
      static_cast<std::size_t>(std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.name == name; }) - buffers.begin());
  const std::int64_t b = layout.b, width = columns > 0 ? columns : layout.n;
  Matrix result(static_cast<std::size_t>(layout.n * width));
  for (std::int64_t i = 0; i < layout.n; ++i)
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t I = i / b, J = j / b;
      const bool by_columns_too = columns == 0 || layout.right_is_divided;
      const std::int64_t own_columns = columns == 0 ? layout.W * b : layout.m;
      const std::int64_t c = columns == 0 ? J % layout.C : by_columns_too ? j / layout.m : 0;
      const std::int64_t local_column = columns == 0 ? J / layout.C * b + j % b : j % layout.m;
      const std::int64_t device = I % layout.R * layout.C + c;
      result[static_cast<std::size_t>(i * width + j)] = static_cast<double>(
          tensors.values[static_cast<std::size_t>(device)][at][static_cast<std::size_t>((I / layout.R * b + i % b) * own_columns + local_column)]);
    }
  return result;
}

std::vector<std::int64_t> pivots_of(const Schedule& schedule, const Tensors& tensors) {
  const std::vector<Buffer>& buffers = schedule.programs[0].buffers;
  const auto at =
      static_cast<std::size_t>(std::find_if(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.name == "P"; }) - buffers.begin());
  std::vector<std::int64_t> result;
  for (const float word : tensors.values[0][at]) result.push_back(std::bit_cast<std::int32_t>(word));
  for (const auto& device : tensors.values)
    for (std::size_t i = 0; i < result.size(); ++i) EXPECT_EQ(std::bit_cast<std::int32_t>(device[at][i]), result[i]);
  return result;
}

Expected<Tensors> run_uniform(const Schedule& lowered, std::uint64_t seed, std::optional<std::uint64_t> order = {}, int threads = 0) {
  NumericOptions options;
  options.seed = seed, options.filling = Filling::uniform, options.order = {order}, options.threads = threads;
  return make_numeric_engine(options)->run(lowered);
}

/// Residual at most 1e-5 where LAPACK's is, and LAPACK's pivots. Returns the smallest pivot.
double expect_factored(int R, int C, std::int64_t n, std::int64_t b, int ahead, std::uint64_t seed, const Scalings& scalings = {}) {
  SCOPED_TRACE(::testing::Message() << n << " in blocks of " << b << " on " << R << "x" << C << ", look-ahead " << ahead << ", seed " << seed);
  const Mesh mesh = lu_mesh(R, C);
  const LuProblem problem = lu_problem(mesh, n, b, ahead);
  const LuLayout layout = *lu_layout(mesh, problem);
  const Schedule lowered = lowered_lu(scaled_lu(mesh, problem, scalings));
  const auto tensors = run_uniform(lowered, seed);
  EXPECT_TRUE(tensors) << to_text(tensors.error());
  if (!tensors) return 0;
  const Matrix a = scaled(whole(lowered, *tensors, "A", layout), n, scalings);
  const Factors found{pivots_of(lowered, *tensors), whole(lowered, *tensors, "L", layout), whole(lowered, *tensors, "U", layout)},
      expected = testing::lapack_factors(a, n);
  const double error = testing::lu_residual(a, found, n), of_lapack = testing::lu_residual(a, expected, n);
  EXPECT_LE(of_lapack, 1e-5);
  EXPECT_LE(error, 1e-5);
  EXPECT_LE(error, 10 * of_lapack);
  for (std::size_t i = 0; i < found.P.size(); ++i) {
    if (found.P[i] == expected.P[i]) continue;
    const double ours = std::abs(found.U[i * static_cast<std::size_t>(n) + i]), theirs = std::abs(expected.U[i * static_cast<std::size_t>(n) + i]);
    std::printf("column %zu: row %lld with %.9g here, row %lld with %.9g by LAPACK\n", i, static_cast<long long>(found.P[i]), ours,
                static_cast<long long>(expected.P[i]), theirs);
    EXPECT_LE(std::abs(ours - theirs), 1e-5 * theirs);
    break;  // from here on they factor different matrices
  }
  double smallest = std::abs(found.U[0]);
  for (std::size_t i = 0; i < found.U.size(); i += static_cast<std::size_t>(n) + 1) smallest = std::min(smallest, std::abs(found.U[i]));
  return smallest;
}

constexpr std::pair<int, int> meshes[]{{1, 1}, {2, 2}, {4, 2}, {3, 3}};

TEST(LuNumbers, RandomMatrices) {
  std::uint64_t seed = 0;
  for (const auto& [R, C] : meshes)
    for (int i = 0; i < test::cases(20, 4); ++i) expect_factored(R, C, 512, 32, i % 2, ++seed);
}

TEST(LuNumbers, SmallOnesOfManyShapes) {
  std::uint64_t seed = 100;
  for (const auto& [R, C] : {std::pair{1, 3}, {3, 1}, {2, 3}, {5, 2}, {4, 4}})
    for (const std::int64_t K : {1, 2, 5, 9, 12})
      for (const int ahead : {0, 1}) expect_factored(R, C, K * 4, 4, ahead, ++seed);
}

TEST(LuNumbers, RowsInReverseOrderOfSize) {
  Scalings scalings;
  for (std::int64_t i = 0; i < 512; ++i) scalings.push_back({i, -1, std::exp2(static_cast<double>(i / 16) - 16)});
  for (const auto& [R, C] : meshes) expect_factored(R, C, 512, 32, 1, 7, scalings);
}

TEST(LuNumbers, ZeroInTheFirstPlace) {
  for (const auto& [R, C] : meshes) expect_factored(R, C, 512, 32, 0, 8, {{0, 0, 0}});
}

TEST(LuNumbers, NearlySingular) {
  for (const auto& [R, C] : meshes) {
    const double pivot = expect_factored(R, C, 512, 32, 1, 9, {{300, -1, std::exp2(-20)}});
    EXPECT_GT(pivot, 1e-7);
    EXPECT_LT(pivot, 1e-5);
  }
}

TEST(LuNumbers, ASingularMatrixIsAnErrorThatNamesTheColumn) {
  for (const auto& [R, C] : meshes)
    for (const std::int64_t column : {0, 37, 63}) {
      const Mesh mesh = lu_mesh(R, C);
      const auto tensors = run_uniform(lowered_lu(scaled_lu(mesh, lu_problem(mesh, 64, 8), {{-1, column, 0}})), 1);
      ASSERT_FALSE(tensors);
      EXPECT_EQ(tensors.error().cause, Cause::data);
      EXPECT_THAT(tensors.error().message, ::testing::HasSubstr("column " + std::to_string(column)));
    }
}

/// The contents of all outputs.
std::vector<std::vector<std::uint32_t>> bits_of(const Schedule& schedule, const Tensors& tensors) {
  std::vector<std::vector<std::uint32_t>> bits;
  for (const auto& device : tensors.values)
    for (std::size_t b = 0; b < device.size(); ++b) {
      const Buffer& buffer = schedule.programs[0].buffers[b];
      if (buffer.role != Role::output) continue;
      bits.emplace_back();
      for (const float word : device[b]) bits.back().push_back(std::bit_cast<std::uint32_t>(word));
    }
  return bits;
}

TEST(LuNumbers, LookAheadOrderAndThreadsChangeNoBit) {
  for (const auto& [R, C] : {std::pair{1, 1}, {2, 2}, {3, 2}, {2, 4}}) {
    SCOPED_TRACE(::testing::Message() << R << "x" << C);
    const Mesh mesh = lu_mesh(R, C);
    const Extents right{96, 3};
    const auto schedule = [&](int ahead, bool solves) {
      return lowered_lu(solves ? make_solve(SolveMethod::block, mesh, lu_problem(mesh, 96, 8, ahead, right))
                               : make_lu(LuMethod::block, mesh, lu_problem(mesh, 96, 8, ahead)));
    };
    for (const bool solves : {false, true}) {
      const Schedule plain = schedule(0, solves);
      const auto expected = bits_of(plain, *run_uniform(plain, 5, {}, 1));
      for (const int ahead : {0, 1})
        for (const int threads : {1, 2, 5})
          for (const auto& order : {std::optional<std::uint64_t>{}, std::optional<std::uint64_t>{1}, std::optional<std::uint64_t>{2}}) {
            const Schedule other = schedule(ahead, solves);
            const auto tensors = run_uniform(other, 5, order, threads);
            ASSERT_TRUE(tensors) << to_text(tensors.error());
            EXPECT_TRUE(bits_of(other, *tensors) == expected) << "look-ahead " << ahead << ", " << threads << " threads";
          }
    }
  }
}

TEST(SolveNumbers, ResidualIsAtMostTenTimesLapacks) {
  for (const auto& [R, C] : {std::pair{1, 1}, {2, 2}, {4, 2}, {3, 3}, {1, 4}, {4, 1}})
    for (const Extents& right : {Extents{256}, Extents{256, 1}, Extents{256, 8}, Extents{256, 5}})
      for (const int ahead : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << R << "x" << C << ", look-ahead " << ahead << ", right-hand sides "
                                          << (right.size() == 1 ? 0 : right[1]));
        const Mesh mesh = lu_mesh(R, C);
        const LuProblem problem = lu_problem(mesh, 256, 16, ahead, right);
        const LuLayout layout = *lu_layout(mesh, problem);
        const Schedule lowered = lowered_lu(make_solve(SolveMethod::block, mesh, problem));
        const auto tensors = run_uniform(lowered, 11);
        ASSERT_TRUE(tensors) << to_text(tensors.error());
        const std::int64_t n = 256, m = right.size() == 1 ? 1 : right[1];
        const Matrix a = whole(lowered, *tensors, "A", layout), b = whole(lowered, *tensors, "b", layout, m),
                     x = whole(lowered, *tensors, "x", layout, m);
        const double found = testing::solve_residual(a, x, b, n, m),
                     expected = testing::solve_residual(a, testing::lapack_solution(a, b, n, m), b, n, m);
        EXPECT_LE(found, 10 * expected);
      }
}

/// The naive ways: outputs are replicated.
TEST(SolveNumbers, NaiveAndBatched) {
  const Mesh mesh = lu_mesh(4, 2);
  const std::int64_t n = 16, systems = 8;
  LuProblem problem = lu_problem(mesh, n, 4, 0, {systems, n, 3});
  problem.matrix = {systems, n, n};
  const Schedule batched = lowered_lu(make_solve(SolveMethod::batched, mesh, problem));
  const auto solved = run_uniform(batched, 3);
  ASSERT_TRUE(solved) << to_text(solved.error());
  for (std::size_t d = 0; d < 8; ++d) {
    const auto& values = solved->values[d];
    const Matrix a(values[0].begin(), values[0].end()), b(values[1].begin(), values[1].end()), x(values[2].begin(), values[2].end());
    EXPECT_LE(testing::solve_residual(a, x, b, n, 3), 10 * testing::solve_residual(a, testing::lapack_solution(a, b, n, 3), b, n, 3));
  }

  const Schedule naive = lowered_lu(make_lu(LuMethod::naive, mesh, lu_problem(mesh, n, 4)));
  const auto factored = run_uniform(naive, 3);
  ASSERT_TRUE(factored) << to_text(factored.error());
  Matrix a(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      a[static_cast<std::size_t>(i * n + j)] =
          static_cast<double>(factored->values[static_cast<std::size_t>(i / 4 * 2 + j / 8)][0][static_cast<std::size_t>(i % 4 * 8 + j % 8)]);
  for (const auto& values : factored->values) {
    Factors found{{}, Matrix(values[2].begin(), values[2].end()), Matrix(values[3].begin(), values[3].end())};
    for (const float word : values[1]) found.P.push_back(std::bit_cast<std::int32_t>(word));
    EXPECT_LE(testing::lu_residual(a, found, n), 1e-5);
    EXPECT_EQ(found.P, testing::lapack_factors(a, n).P);
  }
}

}  // namespace
}  // namespace podsim
