#include "sim/engine/numeric/row_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/engine/numeric/rounding.hpp"
#include "sim/engine/numeric/test_boxes.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using testing::TestBox;

// Rows 4 5 12 13 20 21 of an array in blocks of 2, of which every fourth is here.
constexpr RowNumbers cyclic{4, 2, 4};

TEST(RowNumbers, RowsOfBlocksAreFoundByTheirNumbers) {
  for (const RowNumbers& numbers : {cyclic, RowNumbers{}, RowNumbers{5, 0, 1}, RowNumbers{0, 3, 1}, RowNumbers{7, 1, 3}}) {
    std::vector<std::int64_t> found;
    for (std::int64_t number = 0; number < 60; ++number)
      if (const auto row = numbers.row_of(number, 6)) {
        EXPECT_EQ(numbers.of(*row), number);
        found.push_back(*row);
      }
    EXPECT_THAT(found, ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST(RowNumbers, DependOnTheDevice) {
  const Mesh mesh = *Mesh::make({{"row", 3, true}});
  Local local;
  local.numbering = {{own({0, 1, 3}), 4, 3}};
  local.numbering[0].first.terms[0].coefficient = 4;
  const RowNumbers numbers = row_numbers(local, 0, mesh.coordinates(DeviceId{2}));
  EXPECT_EQ(numbers.of(0), 8);
  EXPECT_EQ(numbers.of(5), 8 + 12 + 1);
  for (std::int64_t row = 0; row < 20; ++row)
    EXPECT_EQ(numbers.of(row), number_of(local.numbering[0], row, mesh.coordinates(DeviceId{2}))) << "as the schedule has it";
  EXPECT_EQ(row_numbers(local, 1, mesh.coordinates(DeviceId{2})).of(5), 5) << "without a numbering rows count from 0";
}

TEST(Iota, WritesTheNumbersOfRows) {
  TestBox out{{2, 3}, DType::s32, true};
  iota(cyclic, out.view());
  EXPECT_THAT(out.integers(), ElementsAre(4, 5, 12, 13, 20, 21));
  EXPECT_EQ(out.changed_outside(), 0);
}

TEST(Triangles, AreCutAtTheDiagonalOfTheWholeMatrix) {
  for (const bool spread : {false, true}) {
    // Rows 4 and 5, columns 3 to 6 of a matrix; then its columns in blocks of 2, every second one: 3, 4, 7, 8.
    TestBox a{{2, 1, 4}, DType::f32, spread}, low{{1, 2, 2, 2}, DType::f32, spread}, high{{2, 4}};
    a.numbers({1, 2, 3, 4, 5, 6, 7, 8});
    lower_triangle({4, 0, 1}, {3, 0, 1}, a.view(), 2, low.view(), 2);
    EXPECT_THAT(low.values(), ElementsAre(1, 1, 0, 0, 5, 6, 1, 0));
    upper_triangle({4, 0, 1}, {3, 0, 1}, a.view(), 1, high.view(), 1);
    EXPECT_THAT(high.values(), ElementsAre(0, 2, 3, 4, 0, 0, 7, 8));
    upper_triangle({4, 0, 1}, {3, 2, 2}, a.view(), 1, high.view(), 1);
    EXPECT_THAT(high.values(), ElementsAre(0, 2, 3, 4, 0, 0, 7, 8));
    lower_triangle({4, 0, 1}, {3, 2, 2}, a.view(), 2, low.view(), 2);
    EXPECT_THAT(low.values(), ElementsAre(1, 1, 0, 0, 5, 6, 0, 0));
    EXPECT_EQ(low.changed_outside(), 0);
    lower_triangle({4, 0, 1}, {3, 0, 1}, a.view(), 2, a.view(), 2);
    EXPECT_THAT(a.values(), ElementsAre(1, 1, 0, 0, 5, 6, 1, 0)) << "in place";
  }
}

TEST(GatherRows, PicksRowsByTheirNumbersAndZerosForThoseOfOthers) {
  for (const DType dtype : {DType::f32, DType::c64, DType::s32, DType::bf16})
    for (const bool spread : {false, true}) {
      TestBox a{{3, 2, 2}, dtype, spread}, index{{2, 2}, DType::s32, spread}, out{{4, 2}, dtype, !spread};
      a.random(1);
      index.integers({13, 6, 21, 13});
      ASSERT_TRUE(gather_rows(cyclic, 24, a.view(), 2, index.view(), out.view(), 1));
      const std::int64_t width = out.size() / 4;
      for (std::int64_t w = 0; w < width; ++w) {
        EXPECT_EQ(out.word(w), a.word(3 * width + w)) << "row number 13";
        EXPECT_EQ(out.word(width + w), 0.0F) << "row number 6 is of another device";
        EXPECT_EQ(out.word(2 * width + w), a.word(5 * width + w));
        EXPECT_EQ(out.word(3 * width + w), a.word(3 * width + w));
      }
      EXPECT_EQ(out.changed_outside(), 0);
    }
}

TEST(ScatterRows, ReplacesThoseThatAreHere) {
  for (const DType dtype : {DType::f32, DType::c64, DType::s32})
    for (const bool spread : {false, true}) {
      TestBox a{{6, 2}, dtype, spread}, b{{2, 2, 2}, dtype, !spread}, index{{4}, DType::s32, spread};
      a.random(1), b.random(2);
      const std::vector<float> before = a.values(), rows = b.values();
      index.integers({20, 19, 4, 20});
      ASSERT_TRUE(scatter_rows(cyclic, 24, b.view(), 2, index.view(), a.view(), 1));
      const auto width = static_cast<std::size_t>(a.size() / 6);
      std::vector<float> expected = before;
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(2 * width), width, expected.begin());
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(3 * width), width, expected.begin() + static_cast<std::ptrdiff_t>(4 * width));
      EXPECT_EQ(a.values(), expected) << "row number 20 twice: the last one stays";
      EXPECT_EQ(a.changed_outside(), 0);
    }
}

TEST(AddRows, SumsThoseOfANumberInTheirOrder) {
  std::vector<float> room;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const bool spread : {false, true}) {
      TestBox sums{{3, 2, 2}, dtype, spread}, rows{{2, 3, 2}, DType::f32, !spread}, index{{6}, DType::s32, spread};
      rows.random(1), sums.random(2);
      index.integers({13, 6, 21, 13, 4, 13});
      ASSERT_TRUE(add_rows(cyclic, 24, rows.view(), 2, index.view(), sums.view(), 2, room));
      for (std::int64_t c = 0; c < 2; ++c) {
        const auto stored = [&](float value) { return dtype == DType::bf16 ? round_to_bf16(value) : value; };
        EXPECT_EQ(sums.word(3 * 2 + c), stored((rows.word(c) + rows.word(3 * 2 + c)) + rows.word(5 * 2 + c))) << "row number 13";
        EXPECT_EQ(sums.word(c), stored(rows.word(4 * 2 + c)));
        EXPECT_EQ(sums.word(5 * 2 + c), stored(rows.word(2 * 2 + c)));
        for (const std::int64_t untouched : {1, 2, 4}) EXPECT_EQ(sums.word(untouched * 2 + c), 0.0F);
      }
      EXPECT_EQ(sums.changed_outside(), 0);
    }
}

TEST(AddRows, IsTheGradientOfGatherRows) {
  std::vector<float> room;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng{seed};
    const std::int64_t rows = rng.between(1, 6), tokens = rng.between(1, 9);
    TestBox table{{rows, 3}}, picked{{tokens, 3}}, dy{{tokens, 3}}, gradient{{rows, 3}}, index{{tokens}, DType::s32};
    table.random(seed), dy.random(seed + 100);
    std::vector<std::int32_t> numbers;
    for (std::int64_t i = 0; i < tokens; ++i) numbers.push_back(rng.between(0, static_cast<int>(2 * rows) - 1));  // half of another device
    index.integers(numbers);
    const RowNumbers own{rows / 2, 0, 1};
    ASSERT_TRUE(gather_rows(own, static_cast<double>(2 * rows), table.view(), 1, index.view(), picked.view(), 1));
    ASSERT_TRUE(add_rows(own, static_cast<double>(2 * rows), dy.view(), 1, index.view(), gradient.view(), 1, room));
    double forward = 0, backward = 0;  // dy . (picked rows of the table) = gradient . table
    for (std::int64_t i = 0; i < picked.size(); ++i) forward += static_cast<double>(dy.word(i)) * static_cast<double>(picked.word(i));
    for (std::int64_t i = 0; i < table.size(); ++i) backward += static_cast<double>(gradient.word(i)) * static_cast<double>(table.word(i));
    EXPECT_NEAR(forward, backward, 1e-5);
  }
}

TEST(OneHot, HasAOneWhereTheColumnHasTheNumberOfTheIndex) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const bool spread : {false, true}) {
      TestBox rows{{5, 3}, dtype, spread}, index{{5}, DType::s32, !spread};
      rows.random(1);
      index.integers({7, 0, 5, 6, 5});
      ASSERT_TRUE(one_hot({5, 0, 1}, 8, index.view(), rows.view(), 1));  // the columns are numbers 5 to 7
      EXPECT_THAT(rows.values(), ElementsAre(0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0));
      EXPECT_EQ(rows.changed_outside(), 0);
    }
}

TEST(SwapRows, ExchangesOnePairAfterTheOther) {
  TestBox a{{5, 2}, DType::f32, true}, index{{3}, DType::s32};
  a.numbers({0, 0, 1, 1, 2, 2, 3, 3, 4, 4});
  index.integers({12, 12, 12});  // rows are numbers 10 to 14; rows 10, 11, 12 each change places with what row 12 holds then
  ASSERT_TRUE(swap_rows({10, 0, 1}, {10, 0, 1}, index.view(), a.view(), 1));
  EXPECT_THAT(a.values(), ElementsAre(2, 2, 0, 0, 1, 1, 3, 3, 4, 4));
  EXPECT_EQ(a.changed_outside(), 0);
}

TEST(Rows, AnIndexOfNoRowIsAnErrorOfTheRunAndNothingIsWritten) {
  TestBox a{{6, 2}}, b{{2, 2}}, index{{2}, DType::s32};
  a.random(1), b.random(2);
  const std::vector<float> before = a.values(), rows = b.values();
  for (const std::int32_t wrong : {-1, 24, 2143289344}) {
    index.integers({4, wrong});
    const std::string text = "row number " + std::to_string(wrong) + " is outside 0..23";
    const Status gathered = gather_rows(cyclic, 24, a.view(), 1, index.view(), b.view(), 1);
    const Status scattered = scatter_rows(cyclic, 24, b.view(), 1, index.view(), a.view(), 1);
    std::vector<float> room;
    const Status added = add_rows(cyclic, 24, b.view(), 1, index.view(), a.view(), 1, room), marked = one_hot(cyclic, 24, index.view(), b.view(), 1);
    ASSERT_FALSE(gathered || scattered || added || marked);
    EXPECT_EQ(marked.error().message, text);
    EXPECT_EQ(added.error().message, text);
    EXPECT_EQ(gathered.error().message, text);
    EXPECT_EQ(scattered.error().message, text);
    EXPECT_EQ(gathered.error().cause, Cause::data);
  }
  index.integers({10, 16});
  const Status swapped = swap_rows({10, 0, 1}, {10, 0, 1}, index.view(), a.view(), 1), first = swap_rows({10, 0, 1}, {9, 0, 1}, index.view(), a.view(), 1);
  ASSERT_FALSE(swapped || first);
  EXPECT_EQ(swapped.error().message, "row number 16 is outside 10..15");
  EXPECT_EQ(first.error().message, "row number 9 is outside 10..15");
  EXPECT_EQ(a.values(), before);
  EXPECT_EQ(b.values(), rows);
}

}  // namespace
}  // namespace podsim
