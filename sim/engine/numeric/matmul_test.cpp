// Products of boxes: every grouping, transpose and stride against plain loops, and whole schedules against their reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/hand_built_test.hpp"
#include "sim/engine/numeric/kernels.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/storage.hpp"

namespace podsim {
namespace {

using namespace hand_built;

/// A random split of `count` (a product of small primes) into 0 to 3 factors.
std::vector<std::int64_t> random_factors(Rng& rng, std::int64_t count) {
  std::vector<std::int64_t> factors;
  for (int i = 0; i < 2; ++i) {
    const std::int64_t factor = count % 2 == 0 && rng.below(2) ? 2 : rng.below(4) == 0 ? 1 : 0;
    if (factor > 0) factors.push_back(factor), count /= factor;
  }
  if (count > 1 || rng.below(2)) factors.insert(factors.begin() + static_cast<std::ptrdiff_t>(rng.below(factors.size() + 1)), count);
  return factors;
}

struct Operand {
  std::vector<std::int64_t> extents, begin, length;
  int split = 0;
};

/// A box of first x second elements somewhere in a larger buffer.
Operand random_operand(Rng& rng, std::int64_t first, std::int64_t second) {
  Operand operand;
  operand.length = random_factors(rng, first);
  operand.split = static_cast<int>(operand.length.size());
  for (const std::int64_t factor : random_factors(rng, second)) operand.length.push_back(factor);
  const bool tight = rng.below(3) == 0;
  for (const std::int64_t length : operand.length) {
    operand.begin.push_back(tight ? 0 : rng.between(0, 2));
    operand.extents.push_back(operand.begin.back() + length + (tight ? 0 : rng.between(0, 1)));
  }
  return operand;
}

Region region_of(int buffer, const Operand& operand) {
  Region region{BufferId{buffer}, {}};
  for (std::size_t i = 0; i < operand.length.size(); ++i) region.dims.push_back(span(operand.begin[i], operand.length[i]));
  return region;
}

/// Positions of the box's elements in its buffer, row-major.
std::vector<std::size_t> positions(const Operand& operand) {
  std::vector<std::size_t> result{0};
  for (std::size_t i = 0; i < operand.length.size(); ++i) {
    std::vector<std::size_t> next;
    for (const std::size_t base : result)
      for (std::int64_t j = 0; j < operand.length[i]; ++j)
        next.push_back(base * static_cast<std::size_t>(operand.extents[i]) + static_cast<std::size_t>(operand.begin[i] + j));
    result = std::move(next);
  }
  return result;
}

TEST(Matmul, AgreesWithPlainLoopsForAllGroupingsAndTransposes) {
  constexpr std::array<std::int64_t, 6> extents{1, 2, 3, 4, 8, 12};
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng{seed};
    const std::int64_t m = extents[rng.below(6)], n = extents[rng.below(6)], k = extents[rng.below(6)];
    Matmul matmul;
    matmul.transpose_left = rng.below(2), matmul.transpose_right = rng.below(2), matmul.accumulate = rng.below(2);
    const Operand left = matmul.transpose_left ? random_operand(rng, k, m) : random_operand(rng, m, k);
    const Operand right = matmul.transpose_right ? random_operand(rng, n, k) : random_operand(rng, k, n);
    const Operand out = random_operand(rng, m, n);
    matmul.left = region_of(0, left), matmul.right = region_of(1, right), matmul.out = region_of(2, out);
    matmul.left_split = left.split, matmul.right_split = right.split, matmul.out_split = out.split;

    Schedule schedule{"product", Mesh{}, {}, {}};
    const auto unsharded = [](const Operand& operand) { return std::vector<std::vector<AxisView>>(operand.extents.size()); };
    const DType dtype = seed % 3 == 0 ? DType::s8 : DType::f32, result = product_result(dtype);
    Program program{every_device(schedule.mesh),
                    {input("X", left.extents, unsharded(left), dtype), input("W", right.extents, unsharded(right), dtype),
                     output("Y", out.extents, unsharded(out), result), input("Y0", out.extents, unsharded(out), result)},
                    {}};
    std::vector<int> after;
    if (matmul.accumulate) after.push_back(add(program, "before", copy(region_of(3, out), matmul.out)));
    add(program, "product", matmul, after);
    schedule.programs.push_back(program);
    const Expected<Tensors> tensors = make_numeric_engine({.seed = seed, .threads = 1})->run(schedule);
    ASSERT_TRUE(tensors) << to_text(tensors.error());

    const auto& buffers = tensors->values[0];
    constexpr auto unwritten = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN());
    const std::vector<std::size_t> a = positions(left), b = positions(right), y = positions(out);
    std::vector<bool> written(buffers[2].size(), false);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const std::size_t at = y[static_cast<std::size_t>(i * n + j)];
        double sum = matmul.accumulate ? number_in(buffers[3][at], result) : 0;  // of integers: exact
        for (std::int64_t l = 0; l < k; ++l)
          sum += static_cast<double>(buffers[0][a[static_cast<std::size_t>(matmul.transpose_left ? l * m + i : i * k + l)]]) *
                 static_cast<double>(buffers[1][b[static_cast<std::size_t>(matmul.transpose_right ? j * k + l : l * n + j)]]);
        ASSERT_EQ(number_in(buffers[2][at], result), sum) << i << "," << j;
        written[at] = true;
      }
    for (std::size_t at = 0; at < written.size(); ++at) ASSERT_EQ(written[at], std::bit_cast<std::uint32_t>(buffers[2][at]) != unwritten) << "outside of the box";
  }
}

TEST(Matmul, ProductsOfIntegersAreExactInS32) {
  constexpr std::int64_t k = 4096;
  Schedule schedule{"integers", Mesh{}, {}, Products{{"Y", "X", "W", 3, 5, k, false, false}}};
  Program program{every_device(schedule.mesh), {input("X", {3, k}, {{}, {}}, DType::s8), input("W", {k, 5}, {{}, {}}, DType::s8), output("Y", {3, 5}, {{}, {}}, DType::s32)}, {}};
  add(program, "product", Matmul{whole(program, 0), whole(program, 1), whole(program, 2)});
  schedule.programs.push_back(program);
  const NumericOptions options{.filling = Filling::uniform};
  const Expected<Tensors> tensors = make_numeric_engine(options)->run(schedule);
  ASSERT_TRUE(tensors) << to_text(tensors.error());
  const auto& [x, w, y] = std::tie(tensors->values[0][0], tensors->values[0][1], tensors->values[0][2]);
  for (std::size_t i = 0; i < 15; ++i) {
    std::int64_t sum = 0;
    for (std::size_t l = 0; l < k; ++l) sum += static_cast<std::int64_t>(x[i / 5 * k + l]) * static_cast<std::int64_t>(w[l * 5 + i % 5]);
    EXPECT_EQ(std::bit_cast<std::int32_t>(y[i]), sum);
  }
  for (const float value : x) EXPECT_TRUE(value == std::floor(value) && std::abs(value) <= 127);
  const Comparison comparison = Reference::make(schedule, options)->compare(*tensors);
  EXPECT_TRUE(comparison.agrees && comparison.bit_equal && comparison.max_abs_error == 0);
}

TEST(Matmul, ReadsItsOperandsBeforeItWritesOverThem) {
  Schedule schedule{"square", Mesh{}, {}, {}};
  Program program{every_device(schedule.mesh), {input("X", {3, 3}, {{}, {}}), output("Y", {3, 3}, {{}, {}})}, {}};
  add(program, "copy", copy(whole(program, 0), whole(program, 1)));
  add(program, "square", Matmul{whole(program, 1), whole(program, 1), whole(program, 1), 1, 1, 1, false, false, false}, {0});
  schedule.programs.push_back(program);
  const Expected<Tensors> tensors = make_numeric_engine({})->run(schedule);
  ASSERT_TRUE(tensors);
  const std::vector<float>&x = tensors->values[0][0], &y = tensors->values[0][1];
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(y[i], x[i / 3 * 3] * x[i % 3] + x[i / 3 * 3 + 1] * x[3 + i % 3] + x[i / 3 * 3 + 2] * x[6 + i % 3]);
}

TEST(Matmul, ANaNInAnOperandShowsInTheResult) {
  Schedule schedule{"unwritten", Mesh{}, {}, Products{{"Y", "X", "W", 2, 2, 2, false, false}}};
  Program program{every_device(schedule.mesh),
                  {input("X", {2, 2}, {{}, {}}), input("W", {2, 2}, {{}, {}}), output("Y", {2, 2}, {{}, {}}), scratch("copy of X", {2, 2})},
                  {}};
  const Region row{BufferId{0}, {span(0, 1), all(2)}}, copied{BufferId{3}, {span(0, 1), all(2)}};
  add(program, "copy half", copy(row, copied));
  add(program, "product", Matmul{whole(program, 3), whole(program, 1), whole(program, 2), 1, 1, 1, false, false, false}, {0});
  schedule.programs.push_back(program);
  const Expected<Tensors> tensors = make_numeric_engine({})->run(schedule);
  ASSERT_TRUE(tensors);
  EXPECT_FALSE(std::isnan(tensors->values[0][2][0]));
  EXPECT_TRUE(std::isnan(tensors->values[0][2][2]));
  const Comparison comparison = Reference::make(schedule, {})->compare(*tensors);
  EXPECT_FALSE(comparison.bit_equal);
  EXPECT_EQ(comparison.max_abs_error, std::numeric_limits<double>::infinity());
  EXPECT_EQ(comparison.max_rel_error, std::numeric_limits<double>::infinity());
  ASSERT_TRUE(comparison.worst);
  EXPECT_EQ(comparison.worst->index, 2);
}

TEST(Product, SlicedProductsAreBitEqualInEveryOrderOnIntegers) {
  for (const int S : {1, 2, 4}) {
    const Schedule schedule = sliced_product(4, {8, 12, 64}, S, 4);
    const Expected<Reference> reference = Reference::make(schedule, {});
    ASSERT_TRUE(reference) << to_text(reference.error());
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Expected<Tensors> tensors = make_numeric_engine({.order = {seed}})->run(schedule);
      ASSERT_TRUE(tensors) << to_text(tensors.error());
      const Comparison comparison = reference->compare(*tensors);
      EXPECT_TRUE(comparison.bit_equal);
      EXPECT_EQ(comparison.max_abs_error, 0);
      EXPECT_FALSE(comparison.worst);
    }
  }
}

TEST(Product, UniformDataIsWithinTheToleranceOfItsType) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f8e4m3fn, DType::f8e5m2}) {  // 8-bit floats into bf16
    const Schedule schedule = sliced_product(2, {16, 16, 64}, 4, 4, dtype);
    const NumericOptions options{.filling = Filling::uniform};
    const Expected<Tensors> tensors = make_numeric_engine(options)->run(schedule);
    ASSERT_TRUE(tensors);
    const Comparison comparison = Reference::make(schedule, options)->compare(*tensors);
    EXPECT_EQ(comparison.tolerance, dtype == DType::f32 ? 1e-5 : 5 * 0x1p-8) << "4 products are stored";
    EXPECT_GT(comparison.max_rel_error, dtype == DType::f32 ? 0 : 1e-4);
    EXPECT_LT(comparison.max_rel_error, comparison.tolerance);
  }
}

}  // namespace
}  // namespace podsim
