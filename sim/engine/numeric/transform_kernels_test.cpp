#include "sim/engine/numeric/transform_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <thread>

#include "sim/engine/numeric/test_boxes.hpp"

namespace podsim {
namespace {

using testing::Complexes;
using testing::TestBox;

std::complex<double> turned(double turns) { return std::polar(1.0, 2 * std::numbers::pi * turns); }

/// By the definition, in float64.
Complexes transform_of(const Complexes& line, bool inverse) {
  const std::size_t n = line.size();
  Complexes result(n);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t j = 0; j < n; ++j) result[k] += line[j] * turned((inverse ? 1.0 : -1.0) * static_cast<double>(j * k % n) / static_cast<double>(n));
    if (inverse) result[k] /= static_cast<double>(n);
  }
  return result;
}

/// The element [.., i, ..] of line `outer` (before `dim`), `inner` (after it), row-major.
std::int64_t element(const std::vector<std::int64_t>& extents, int dim, std::int64_t line, std::int64_t i) {
  // The other dimensions stand in order: the line's number is row-major over them.
  std::int64_t index = 0, stride = 1;
  for (auto d = extents.size(); d-- > 0;) {
    std::int64_t at = i;
    if (static_cast<int>(d) != dim) at = line % extents[d], line /= extents[d];
    index += at * stride;
    stride *= extents[d];
  }
  return index;
}

double worst_error(TestBox& x, const std::vector<std::int64_t>& from, TestBox& y, const std::vector<std::int64_t>& to, std::array<int, 2> dims, bool inverse) {
  const std::int64_t n = from[static_cast<std::size_t>(dims[0])];
  std::int64_t lines = 1;
  for (const std::int64_t extent : from) lines *= extent;
  lines /= n;
  double worst = 0, largest = 0;
  for (std::int64_t l = 0; l < lines; ++l) {
    Complexes line;
    for (std::int64_t i = 0; i < n; ++i) line.push_back(x.complex(element(from, dims[0], l, i)));
    const Complexes expected = transform_of(line, inverse);
    for (std::int64_t i = 0; i < n; ++i) {
      worst = std::max(worst, std::abs(y.complex(element(to, dims[1], l, i)) - expected[static_cast<std::size_t>(i)]));
      largest = std::max(largest, std::abs(expected[static_cast<std::size_t>(i)]));
    }
  }
  return worst / largest;
}

std::vector<std::int64_t> moved(std::vector<std::int64_t> extents, std::array<int, 2> dims) {
  const std::int64_t n = extents[static_cast<std::size_t>(dims[0])];
  extents.erase(extents.begin() + dims[0]);
  extents.insert(extents.begin() + dims[1], n);
  return extents;
}

TEST(Fft, IsTheDefinitionAlongEveryDimensionToEveryOther) {
  for (const auto& extents : std::vector<std::vector<std::int64_t>>{{1}, {7}, {64}, {5, 6}, {16, 3}, {3, 4, 5}, {2, 1, 12}, {40, 2}, {2, 3, 2, 4}})
    for (int from = 0; from < static_cast<int>(extents.size()); ++from)
      for (int to = 0; to < static_cast<int>(extents.size()); ++to)
        for (int way = 0; way < 8; ++way) {
          const bool inverse = way % 2 != 0, real = way / 2 % 2 != 0, spread = way / 4 != 0;
          const std::array<int, 2> dims{from, to};
          TestBox x{extents, real ? DType::f32 : DType::c64, spread}, y{moved(extents, dims), DType::c64, spread};
          x.random(static_cast<std::uint64_t>(way));
          PackedOperands workspace;
          fft(inverse, dims, x.view(), y.view(), workspace);
          EXPECT_LT(worst_error(x, extents, y, moved(extents, dims), dims, inverse), 1e-6) << ::testing::PrintToString(extents) << from << to << way;
          EXPECT_EQ(y.changed_outside(), 0);
        }
}

TEST(Fft, InPlaceGivesTheSameBits) {
  for (const int dim : {0, 1}) {
    TestBox x{{24, 10}, DType::c64, true}, y{{24, 10}, DType::c64}, z{{24, 10}, DType::c64, true};
    x.random(3), z.random(3);
    PackedOperands workspace;
    fft(false, {dim, dim}, x.view(), y.view(), workspace);
    fft(false, {dim, dim}, z.view(), z.view(), workspace);
    EXPECT_EQ(y.values(), z.values());
  }
}

TEST(Fft, BitsOfALineDoNotDependOnWhereItLies) {
  const std::int64_t n = 96;
  TestBox one{{n}, DType::c64}, alone{{n}, DType::c64};
  one.random(9);
  PackedOperands workspace;
  fft(false, {0, 0}, one.view(), alone.view(), workspace);
  for (const std::int64_t lines : {2, 5, 16, 33})
    for (const int dim : {0, 1})
      for (const bool spread : {false, true}) {
        const std::vector<std::int64_t> extents = dim == 0 ? std::vector{n, lines} : std::vector{lines, n};
        TestBox x{extents, DType::c64, spread}, y{extents, DType::c64, !spread};
        x.random(1);
        const std::int64_t line = lines - 1;
        for (std::int64_t i = 0; i < n; ++i)
          for (const int part : {0, 1}) x.word(2 * element(extents, dim, line, i) + part) = one.word(2 * i + part);
        fft(false, {dim, dim}, x.view(), y.view(), workspace);
        for (std::int64_t i = 0; i < 2 * n; ++i)
          EXPECT_EQ(std::bit_cast<std::uint32_t>(y.word(2 * element(extents, dim, line, i / 2) + i % 2)), std::bit_cast<std::uint32_t>(alone.word(i)));
      }
}

TEST(Fft, TheInverseGivesBackWhatWasTransformed) {
  for (const std::int64_t n : {1, 2, 30, 97, 256, 1000}) {
    TestBox x{{3, n}, DType::c64}, y{{n, 3}, DType::c64}, z{{3, n}, DType::c64};
    x.random(static_cast<std::uint64_t>(n));
    PackedOperands workspace;
    fft(false, {1, 0}, x.view(), y.view(), workspace);
    fft(true, {0, 1}, y.view(), z.view(), workspace);
    for (std::int64_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x.word(i), z.word(i), 1e-5);
  }
}

TEST(Fft, AConstantHasOnePeakAndAShiftedPeakARampOfPhases) {
  const std::int64_t n = 60;
  TestBox x{{n}}, y{{n}, DType::c64};
  PackedOperands workspace;
  x.numbers(std::vector<float>(static_cast<std::size_t>(n), 2));
  fft(false, {0, 0}, x.view(), y.view(), workspace);
  for (std::int64_t k = 0; k < n; ++k) EXPECT_NEAR(std::abs(y.complex(k) - std::complex<double>{k == 0 ? 2.0 * static_cast<double>(n) : 0.0}), 0, 1e-5);
  std::vector<float> peak(static_cast<std::size_t>(n), 0);
  peak[7] = 1;
  x.numbers(peak);
  fft(false, {0, 0}, x.view(), y.view(), workspace);
  for (std::int64_t k = 0; k < n; ++k) EXPECT_NEAR(std::abs(y.complex(k) - turned(-7.0 * static_cast<double>(k) / static_cast<double>(n))), 0, 1e-6);
}

TEST(Fft, ThreadsThatPlanAndTransformAtOnceGetTheSameBits) {
  constexpr std::int64_t most = 48;
  using Bits = std::vector<std::vector<float>>;  // by extent, forward and inverse
  std::array<Bits, 4> found;
  std::vector<std::thread> running;
  for (std::size_t t = 0; t < found.size(); ++t)
    running.emplace_back([t, &bits = found[t]] {
      bits.resize(2 * most + 2);
      PackedOperands workspace;
      for (std::int64_t i = 1; i <= most; ++i) {
        const std::int64_t n = t % 2 == 0 ? i : most + 1 - i;  // plans are made in this order or in the reverse
        for (const bool inverse : {t < 2, t >= 2}) {
          TestBox x{{4, n}, DType::c64}, y{{4, n}, DType::c64};
          fft(inverse, {1, 1}, x.random(static_cast<std::uint64_t>(n)).view(), y.view(), workspace);
          bits[static_cast<std::size_t>(2 * n + (inverse ? 1 : 0))] = y.values();
        }
      }
    });
  for (std::thread& thread : running) thread.join();
  for (const Bits& bits : found) EXPECT_EQ(bits, found[0]);
}

TEST(Twiddle, MultipliesByTheFactorsOfItsPlaceInTheWholeArray) {
  for (const double points : {16.0, -16.0, 35.0, -1000003.0, 2147483647.0})
    for (int way = 0; way < 4; ++way) {
      const std::array<int, 2> dims = way % 2 == 0 ? std::array{0, 2} : std::array{1, 0};
      const RowNumbers j{1000000 * way, 0, 1}, k{3, 2, 5};
      TestBox x{{3, 2, 4}, DType::c64, way / 2 != 0}, y{{3, 2, 4}, DType::c64};
      x.random(static_cast<std::uint64_t>(way));
      twiddle(points, dims, j, k, x.view(), y.view());
      for (std::int64_t e = 0; e < 24; ++e) {
        const std::array<std::int64_t, 3> at{e / 8, e / 4 % 2, e % 4};
        const std::int64_t row = 1000000 * way + at[static_cast<std::size_t>(dims[0])], of = at[static_cast<std::size_t>(dims[1])];
        const std::int64_t column = 3 + of / 2 * 10 + of % 2;
        const auto n = static_cast<std::int64_t>(std::abs(points));
        const double turns = (points < 0 ? 1.0 : -1.0) * static_cast<double>(row % n * column % n) / static_cast<double>(n);
        EXPECT_NEAR(std::abs(y.complex(e) - x.complex(e) * turned(turns)), 0, 1e-6);
      }
      twiddle(points, dims, j, k, x.view(), x.view());
      EXPECT_EQ(x.values(), y.values());
      EXPECT_EQ(x.changed_outside(), 0);
    }
}

}  // namespace
}  // namespace podsim
