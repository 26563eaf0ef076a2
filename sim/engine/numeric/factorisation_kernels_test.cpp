#include "sim/engine/numeric/factorisation_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>

#include "sim/engine/numeric/test_boxes.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using testing::TestBox;

class Factorisations : public ::testing::Test {
 protected:
  Factorisations() { EXPECT_TRUE(use_one_blas_thread()); }
  PackedOperands workspace_;
};

/// |P A - L U| of the rows from `kept` on, relative to |A|, largest elements; a is what was factored.
double residual(TestBox& a, TestBox& factors, TestBox& index, std::int64_t m, std::int64_t b, std::int64_t kept, std::int64_t first_row) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(m));  // the row of a that comes to each row
  std::iota(place.begin(), place.end(), 0);
  for (std::int64_t i = 0; i < b; ++i) std::swap(place[static_cast<std::size_t>(kept + i)], place[static_cast<std::size_t>(index.integer(i) - first_row)]);
  double worst = 0, largest = 0;
  for (std::int64_t i = kept; i < m; ++i)
    for (std::int64_t j = 0; j < b; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k <= std::min(i - kept, j); ++k)
        sum += (k == i - kept ? 1.0 : static_cast<double>(factors.word(i * b + k))) * static_cast<double>(factors.word((kept + k) * b + j));
      const auto value = static_cast<double>(a.word(place[static_cast<std::size_t>(i)] * b + j));
      worst = std::max(worst, std::abs(sum - value)), largest = std::max(largest, std::abs(value));
    }
  return worst / largest;
}

TEST_F(Factorisations, APanelIsAProductOfTrianglesAndItsIndexSaysWhichRowsMoved) {
  for (const auto& [m, b, kept] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 0}, {6, 4, 0}, {6, 4, 2}, {64, 8, 24}, {33, 33, 0}, {200, 70, 30}})
    for (const bool spread : {false, true}) {
      const std::int64_t first_row = 40, column = first_row + kept;
      TestBox a{{m, b}, DType::f32, spread}, factors{{m, 1, b}, DType::f32, spread}, index{{3, b}, DType::s32, spread};
      a.random(static_cast<std::uint64_t>(m));
      const std::vector<float> given = a.values();
      ASSERT_TRUE(getrf_panel({first_row, 0, 1}, column, a.view(), 1, factors.view(), 1, index.view(), workspace_));
      EXPECT_LT(residual(a, factors, index, m, b, kept, first_row), 2e-6);
      for (std::int64_t e = 0; e < kept * b; ++e) EXPECT_EQ(factors.word(e), given[static_cast<std::size_t>(e)]) << "rows above are kept";
      EXPECT_EQ(factors.changed_outside() + index.changed_outside(), 0);

      // The permutation is what the pivots do one after the other.
      std::vector<std::int64_t> place(static_cast<std::size_t>(m));
      std::iota(place.begin(), place.end(), first_row);
      for (std::int64_t i = 0; i < b; ++i) {
        EXPECT_GE(index.integer(i), column + i);
        EXPECT_LT(index.integer(i), first_row + m);
        std::swap(place[static_cast<std::size_t>(kept + i)], place[static_cast<std::size_t>(index.integer(i) - first_row)]);
      }
      for (std::int64_t i = 0; i < b; ++i) {
        EXPECT_EQ(index.integer(b + i), place[static_cast<std::size_t>(kept + i)]) << "the row that comes here";
        EXPECT_EQ(place[static_cast<std::size_t>(index.integer(2 * b + i) - first_row)], column + i) << "where this row went";
      }
      ASSERT_TRUE(getrf_panel({first_row, 0, 1}, column, a.view(), 1, a.view(), 1, index.view(), workspace_));
      EXPECT_EQ(a.values(), factors.values()) << "in place";
    }
}

TEST_F(Factorisations, PivotsThatRepeatGiveThePermutationOfTheirProduct) {
  // Column by column the largest is in the last row: each step exchanges its row with row 3.
  TestBox a{{4, 3}}, factors{{4, 3}}, index{{3, 3}, DType::s32};
  a.numbers({0, 0, 4, 0, 2, 0, 0, 0, 8, 1, 0, 0});
  ASSERT_TRUE(getrf_panel({}, 0, a.view(), 1, factors.view(), 1, index.view(), workspace_));
  EXPECT_THAT(index.integers(), ElementsAre(3, 1, 2,    // pivots
                                            3, 1, 2,    // the rows that come to 0, 1, 2
                                            3, 1, 2));  // where 0, 1, 2 go
  a.numbers({0, 0, 4, 0, 0, 8, 0, 2, 0, 1, 0, 0});
  ASSERT_TRUE(getrf_panel({}, 0, a.view(), 1, factors.view(), 1, index.view(), workspace_));
  EXPECT_THAT(index.integers(), ElementsAre(3, 2, 2, 3, 2, 1, 3, 2, 1));
  a.numbers({0, 2, 0, 0, 0, 4, 1, 0, 0, 0, 0, 8});
  ASSERT_TRUE(getrf_panel({}, 0, a.view(), 1, factors.view(), 1, index.view(), workspace_));
  EXPECT_THAT(index.integers(), ElementsAre(2, 2, 3,    // row 0 goes to 2, then to 1
                                            2, 0, 3,    //
                                            1, 3, 0));  // row 1 goes to 2, then to 3; row 2 to 0
}

TEST_F(Factorisations, AColumnWithoutAPivotIsNamedByItsNumber) {
  TestBox a{{5, 3}}, factors{{5, 3}}, index{{3, 3}, DType::s32};
  a.numbers({5, 6, 7, 8, 9, 1,  // of the three rows that count, column 1 is twice column 0
             1, 2, 5, 4, 8, 3, 2, 4, 7});
  const Status status = getrf_panel({10, 0, 1}, 12, a.view(), 1, factors.view(), 1, index.view(), workspace_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "matrix is singular: column 13 is zero below the diagonal");
  EXPECT_EQ(status.error().cause, Cause::data);
}

TEST_F(Factorisations, NumbersThatAreNoneAreNoCrash) {
  TestBox a{{5, 3}}, factors{{5, 3}}, index{{3, 3}, DType::s32};
  a.numbers(std::vector<float>(15, std::numeric_limits<float>::quiet_NaN()));
  (void)getrf_panel({}, 0, a.view(), 1, factors.view(), 1, index.view(), workspace_);
  for (const std::int32_t row : index.integers()) EXPECT_TRUE(0 <= row && row < 5);
}

TEST_F(Factorisations, TriangularSolvesInvertTheProductWithTheirTriangleAlone) {
  for (const Triangle kind : {Triangle::lower, Triangle::upper})
    for (const auto& [n, m] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {5, 3}, {3, 7}, {64, 10}, {100, 100}})
      for (int way = 0; way < 8; ++way) {
        const bool spread = way % 2 != 0, twice = way / 2 % 2 != 0, other = way / 4 != 0;  // rows in two dimensions; not a matrix to BLAS
        TestBox triangle{{n, n}, DType::f32, spread}, b{twice ? std::vector<std::int64_t>{1, n, m} : std::vector<std::int64_t>{n, m}, DType::f32, spread};
        TestBox x{other ? std::vector<std::int64_t>{n, m, 1} : std::vector<std::int64_t>{n, m}, DType::f32, other};
        triangle.random(1), b.random(2);
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            float& value = triangle.word(i * n + j);
            value /= static_cast<float>(n);
            if (i == j) value = kind == Triangle::lower ? std::numeric_limits<float>::quiet_NaN() : 1.5F + value;
            if (kind == Triangle::lower ? j > i : j < i) value = std::numeric_limits<float>::quiet_NaN();  // read nowhere
          }
        trsm(kind, triangle.view(), 1, b.view(), x.view(), 1, false, workspace_);
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t c = 0; c < m; ++c) {
            double sum = 0;
            for (std::int64_t j = kind == Triangle::lower ? 0 : i; j < (kind == Triangle::lower ? i + 1 : n); ++j)
              sum += (i == j && kind == Triangle::lower ? 1.0 : static_cast<double>(triangle.word(i * n + j))) * static_cast<double>(x.word(j * m + c));
            EXPECT_NEAR(sum, b.word(i * m + c), 1e-5);
          }
        EXPECT_EQ(x.changed_outside(), 0);
        trsm(kind, triangle.view(), 1, b.view(), b.view(), twice ? 2 : 1, false, workspace_);
        EXPECT_EQ(b.values(), x.values()) << "in place";
        EXPECT_EQ(b.changed_outside(), 0);
        if (n != m || kind == Triangle::lower) continue;
        TestBox side{{n, m}};
        side.random(2);
        trsm(kind, triangle.view(), 1, side.view(), triangle.view(), 1, true, workspace_);
        EXPECT_EQ(triangle.values(), x.values()) << "in the place of the triangle";
      }
}

TEST_F(Factorisations, SystemsAreSolvedEachOnItsOwn) {
  for (const std::int64_t columns : {0, 1, 5})  // 0: one right-hand side, without a dimension
    for (const auto& leading : std::vector<std::vector<std::int64_t>>{{}, {3}, {2, 3}})
      for (const bool spread : {false, true}) {
        const std::int64_t n = 9, m = std::max<std::int64_t>(columns, 1);
        std::vector<std::int64_t> of_a = leading, of_b = leading;
        of_a.insert(of_a.end(), {n, n}), of_b.push_back(n);
        if (columns > 0) of_b.push_back(columns);
        TestBox a{of_a, DType::f32, spread}, b{of_b, DType::f32, spread}, x{of_b, DType::f32, !spread};
        a.random(4), b.random(5);
        ASSERT_TRUE(solve(a.view(), b.view(), x.view(), workspace_));
        for (std::int64_t s = 0; s < a.size() / (n * n); ++s)
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t c = 0; c < m; ++c) {
              double sum = 0;
              for (std::int64_t j = 0; j < n; ++j) sum += static_cast<double>(a.word((s * n + i) * n + j)) * static_cast<double>(x.word((s * n + j) * m + c));
              EXPECT_NEAR(sum, b.word((s * n + i) * m + c), 2e-4);
            }
        EXPECT_EQ(x.changed_outside(), 0);
        ASSERT_TRUE(solve(a.view(), b.view(), b.view(), workspace_));
        EXPECT_EQ(b.values(), x.values()) << "in place";
      }
}

TEST_F(Factorisations, ASingularSystemIsNamed) {
  TestBox a{{2, 2, 2}}, b{{2, 2}}, x{{2, 2}};
  a.numbers({1, 2, 3, 4, 1, 2, 2, 4}), b.numbers({1, 1, 1, 1});
  const Status status = solve(a.view(), b.view(), x.view(), workspace_);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "system 1 of 2: matrix is singular: column 1 is zero below the diagonal");
}

/// As tasks of several devices are: each with its own data, all at once, for the bits of one thread.
TEST_F(Factorisations, AreRightInSeveralThreadsAtOnce) {
  const auto work = [](std::uint64_t seed) {
    PackedOperands workspace;
    std::vector<float> all;
    for (std::uint64_t round = 0; round < 6; ++round) {
      const std::int64_t n = 150;
      TestBox a{{n, n}}, factors{{n, n}}, index{{3, n}, DType::s32}, b{{n, 20}}, x{{n, 20}};
      a.random(seed + round), b.random(seed);
      EXPECT_TRUE(getrf_panel({}, 0, a.view(), 1, factors.view(), 1, index.view(), workspace));
      trsm(Triangle::lower, factors.view(), 1, b.view(), x.view(), 1, false, workspace);
      trsm(Triangle::upper, factors.view(), 1, x.view(), x.view(), 1, false, workspace);
      for (const float value : x.values()) all.push_back(value);
      EXPECT_TRUE(solve(a.view(), b.view(), x.view(), workspace));
      for (const float value : x.values()) all.push_back(value);
    }
    return all;
  };
  std::array<std::vector<float>, 6> found;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < found.size(); ++t) threads.emplace_back([&, t] { found[t] = work(t % 3); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < found.size(); ++t) EXPECT_EQ(found[t], work(t % 3));
}

}  // namespace
}  // namespace podsim
