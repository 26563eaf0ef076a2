// What check_shapes() says of transforms, factorisations and rows that are picked, and of dtypes that an operation does not take, word for word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/testing.hpp"
#include "sim/schedule/validate.hpp"

namespace podsim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Writer;

struct Operand {
  std::vector<std::int64_t> extents;
  DType dtype = DType::f32;
};

/// What is said of one Local on buffers of these extents, reads before writes.
std::vector<std::string> said(Local local, const std::vector<Operand>& operands) {
  Writer w{std::vector<MeshAxis>{{"x", 2, true}}};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Region region{w.scratch("operand", operands[i].extents, operands[i].dtype), {}};
    for (const std::int64_t length : operands[i].extents) region.dims.push_back(all(length));
    (i < static_cast<std::size_t>(traits_of(local.kind).reads) ? local.reads : local.writes).push_back(region);
  }
  w.add("t", local);
  std::vector<std::string> texts;
  for (const Diagnostic& problem : check_shapes(w.schedule)) texts.push_back(to_text(problem).substr(std::string_view{"task 0 \"t\": "}.size()));
  return texts;
}

Local local_of(LocalKind kind, double factor = 1, std::array<int, 2> dims = {}) {
  Local local{kind, {}, {}, factor};
  local.dims = dims;
  return local;
}
Local split(LocalKind kind, std::vector<int> splits, std::vector<Numbering> numbering = {}, double factor = 1) {
  Local local = local_of(kind, factor);
  local.splits = std::move(splits);
  local.numbering = std::move(numbering);
  return local;
}

constexpr DType c64 = DType::c64, s32 = DType::s32, bf16 = DType::bf16;

TEST(MatrixShapes, ATransformIsComplexAndMovesItsDimension) {
  for (const LocalKind kind : {LocalKind::fft, LocalKind::ifft}) {
    EXPECT_THAT(said(local_of(kind, 1, {1, 1}), {{{4, 6, 8}, c64}, {{4, 6, 8}, c64}}), IsEmpty());
    EXPECT_THAT(said(local_of(kind, 1, {2, 0}), {{{4, 6, 8}}, {{8, 4, 6}, c64}}), IsEmpty());
    EXPECT_THAT(said(local_of(kind, 1, {2, 0}), {{{4, 6, 8}}, {{8, 6, 4}, c64}}), ElementsAre("the transform of [4,6,8] is [8,6,4]; expected [8,4,6]"));
    EXPECT_THAT(said(local_of(kind, 1, {0, 0}), {{{4, 6}}, {{24}, c64}}), ElementsAre("the transform of [4,6] is [24]; expected [4,6]"));
    EXPECT_THAT(said(local_of(kind, 1, {3, 0}), {{{4, 6}}, {{4, 6}, c64}}), ElementsAre("the read region has 2 dimensions, no dimension 3"));
    EXPECT_THAT(said(local_of(kind, 1, {0, -1}), {{{4, 6}}, {{4, 6}, c64}}), ElementsAre("the transform has 2 dimensions, no dimension -1"));
    EXPECT_THAT(said(local_of(kind, 1, {0, 1}), {{{4}}, {{1, 4}, c64}}), ElementsAre("the transform has more dimensions than the read region"));
    EXPECT_THAT(said(local_of(kind), {{{4}, bf16}, {{4}}}), ElementsAre("the read region is bf16; expected f32 or c64", "the transform is f32; expected c64"));
    EXPECT_THAT(said(local_of(kind), {{{std::int64_t{1} << 31}}, {{std::int64_t{1} << 31}, c64}}),
                ElementsAre("a transform of 2147483648 points; expected fewer than 2^31"));
    EXPECT_THAT(said(local_of(kind), {{{4}, s32}, {{4}, s32}}), ElementsAre("the read region is s32; expected f32 or c64", "the transform is s32; expected c64"));
  }
}

TEST(MatrixShapes, TwiddleFactorsAreOfTwoDimensionsAndAWholeNumberOfPoints) {
  const std::vector<Operand> right{{{4, 6}, c64}, {{4, 6}, c64}};
  EXPECT_THAT(said(local_of(LocalKind::twiddle, 24, {0, 1}), right), IsEmpty());
  EXPECT_THAT(said(local_of(LocalKind::twiddle, -2147483648.0, {1, 0}), right), IsEmpty());
  EXPECT_THAT(said(local_of(LocalKind::twiddle, 24, {1, 1}), right), ElementsAre("twiddle factors need two dimensions"));
  EXPECT_THAT(said(local_of(LocalKind::twiddle, 24, {0, 2}), right), ElementsAre("the read region has 2 dimensions, no dimension 2"));
  for (const double points : {0.0, 0.5, 2.5, 4294967296.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(said(local_of(LocalKind::twiddle, points, {0, 1}), right), ElementsAre(::testing::StartsWith("twiddle factors of "))) << points;
  EXPECT_THAT(said(local_of(LocalKind::twiddle, 24, {0, 1}), {{{4, 6}}, {{6, 4}}}),
              ElementsAre("the read region is f32; expected c64", "the result is [6,4], the read region is [4,6]"));
  Local numbered = local_of(LocalKind::twiddle, 24, {0, 1});
  numbered.numbering = {{1}, {2}, {3}};
  EXPECT_THAT(said(numbered, right), ElementsAre("3 numberings; expected at most 2"));
  numbered.numbering = {{1, -1, 1}};
  EXPECT_THAT(said(numbered, right), ElementsAre("blocks of -1 rows, 1 blocks apart; expected positive numbers"));
}

TEST(MatrixShapes, AnIotaIsOfWholeNumbers) {
  EXPECT_THAT(said(split(LocalKind::iota, {}, {{7, 2, 3}}), {{{4, 6}, s32}}), IsEmpty());
  EXPECT_THAT(said(local_of(LocalKind::iota), {{{4, 6}, DType::bf16}}), IsEmpty());
  EXPECT_THAT(said(local_of(LocalKind::iota), {{{4, 6}, DType::c64}}), ElementsAre("the result is c64; expected f32 or bf16 or s32"));
  EXPECT_THAT(said(split(LocalKind::iota, {}, {{0}, {0}}), {{{4}, s32}}), ElementsAre("2 numberings; expected at most 1"));
}

TEST(MatrixShapes, APanelHasAsManyRowsToFactorAsColumns) {
  const auto panel = [](std::vector<Numbering> numbering) { return split(LocalKind::getrf_panel, {2, 1, 0}, std::move(numbering)); };
  const std::vector<Operand> right{{{2, 4, 6}}, {{8, 6}}, {{3, 6}, s32}};
  EXPECT_THAT(said(panel({}), right), IsEmpty());
  EXPECT_THAT(said(panel({{8}, {10}}), right), IsEmpty());
  EXPECT_THAT(said(panel({{8}, {11}}), right), ElementsAre("6 columns and 8 rows, of which 3 are kept; expected at least as many other rows as columns"));
  EXPECT_THAT(said(panel({{8}, {7}}), right), ElementsAre("6 columns and 8 rows, of which -1 are kept; expected at least as many other rows as columns"));
  EXPECT_THAT(said(panel({{8}}), right), ElementsAre("a panel's rows are numbered, its columns are not"));
  EXPECT_THAT(said(panel({{8, 2, 2}, {8}}), right), ElementsAre("a panel's rows and columns are adjacent, the same on all devices"));
  EXPECT_THAT(said(panel({{own({0, 1, 2})}, {8}}), right), ElementsAre("a panel's rows and columns are adjacent, the same on all devices"));
  EXPECT_THAT(said(panel({}), {{{2, 4, 6}}, {{6, 8}}, {{3, 6}, s32}}), ElementsAre("the result is 6x8; expected 8x6"));
  EXPECT_THAT(said(panel({}), {{{2, 4, 6}}, {{8, 6}}, {{6}, s32}}), ElementsAre("the index has 6 elements; expected 3 for each of 6 columns"));
  EXPECT_THAT(said(panel({}), {{{2, 4, 6}, bf16}, {{8, 6}, c64}, {{3, 6}}}),
              ElementsAre("the panel is bf16; expected f32", "the factors is c64; expected f32", "the index is f32; expected s32"));
  EXPECT_THAT(said(split(LocalKind::getrf_panel, {4, 1, 0}), right), ElementsAre("the panel has 3 dimensions, of which 4 cannot be its rows"));
}

TEST(MatrixShapes, ATriangleIsSquareAndItsSidesAreAsTall) {
  for (const LocalKind kind : {LocalKind::trsm_lower, LocalKind::trsm_upper}) {
    EXPECT_THAT(said(local_of(kind), {{{4, 4}}, {{4, 7}}, {{4, 7}}}), IsEmpty());
    EXPECT_THAT(said(split(kind, {1, 1, 2}), {{{4, 4}}, {{4, 6}}, {{2, 2, 6}}}), IsEmpty());
    EXPECT_THAT(said(local_of(kind), {{{4, 5}}, {{4, 7}}, {{4, 7}}}), ElementsAre("the triangle is 4x5; expected 4x4"));
    EXPECT_THAT(said(local_of(kind), {{{4, 4}}, {{5, 7}}, {{4, 7}}}), ElementsAre("B is 5x7; expected 4x7", "X is 4x7; expected 5x7"));
    EXPECT_THAT(said(local_of(kind), {{{4, 4}}, {{4, 7}, bf16}, {{4, 7}}}), ElementsAre("an operand is bf16; expected f32"));
  }
}

TEST(MatrixShapes, TrianglesKeepShapeAndDtype) {
  for (const LocalKind kind : {LocalKind::lower_triangle, LocalKind::upper_triangle}) {
    EXPECT_THAT(said(split(kind, {1, 2}, {{0, 2, 4}, {1}}), {{{4, 6}}, {{2, 2, 6}}}), IsEmpty());
    EXPECT_THAT(said(local_of(kind), {{{4, 6}, bf16}, {{6, 4}}}), ElementsAre("the result is f32, the matrix is bf16", "the result is 6x4; expected 4x6"));
    EXPECT_FALSE(said(local_of(kind), {{{4, 6}, s32}, {{4, 6}, s32}}).empty());
  }
}

TEST(MatrixShapes, RowsArePickedByAnIndexOfTheirNumbers) {
  const auto gather = [](double numbers) { return split(LocalKind::gather_rows, {2, 1, 1}, {{0, 2, 3}}, numbers); };
  const auto scatter = [](double numbers) { return split(LocalKind::scatter_rows, {2, 1, 1, 2}, {{0, 2, 3}}, numbers); };
  EXPECT_THAT(said(gather(100), {{{4, 2, 6}, c64}, {{5}, s32}, {{5, 6}, c64}}), IsEmpty());
  EXPECT_THAT(said(scatter(100), {{{4, 2, 6}, c64}, {{5, 6}, c64}, {{5}, s32}, {{4, 2, 6}, c64}}), IsEmpty());
  EXPECT_THAT(said(gather(100), {{{4, 2, 6}}, {{5}, s32}, {{4, 6}}}), ElementsAre("the picked rows is 4x6; expected 5x6"));
  EXPECT_THAT(said(gather(100), {{{4, 2, 6}}, {{5}}, {{5, 6}, bf16}}), ElementsAre("the result is bf16, the array is f32", "the index is f32; expected s32"));
  for (const double numbers : {0.0, 2.5, 1e10, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(said(gather(numbers), {{{4, 2, 6}}, {{5}, s32}, {{5, 6}}}), ElementsAre(::testing::HasSubstr("numbers of rows; expected a whole number between 1 and 2^31")));
  EXPECT_THAT(said(scatter(100), {{{4, 2, 6}}, {{5, 7}}, {{5}, s32}, {{8, 6}}}),
              ElementsAre("the result is [8,6], the array is [4,2,6]", "the picked rows is 5x7; expected 5x6"));
  EXPECT_THAT(said(local_of(LocalKind::swap_rows), {{{8, 6}, bf16}, {{3}, s32}, {{8, 6}, bf16}}), IsEmpty());
  EXPECT_THAT(said(local_of(LocalKind::swap_rows), {{{8, 6}}, {{3}}, {{8, 5}}}),
              ElementsAre("the result is [8,5], the array is [8,6]", "the index is f32; expected s32"));
  EXPECT_THAT(said(split(LocalKind::swap_rows, {}, {{0, 2, 2}}), {{{8, 6}}, {{3}, s32}, {{8, 6}}}), ElementsAre("rows that change places are adjacent"));
}

TEST(MatrixShapes, ASystemIsSquareAndItsSidesHaveItsRows) {
  EXPECT_THAT(said(local_of(LocalKind::solve), {{{2, 4, 4}}, {{2, 4}}, {{2, 4}}}), IsEmpty());
  EXPECT_THAT(said(local_of(LocalKind::solve), {{{2, 4, 4}}, {{2, 4, 3}}, {{2, 4, 3}}}), IsEmpty());
  EXPECT_THAT(said(local_of(LocalKind::solve), {{{4, 5}}, {{4}}, {{4}}}), ElementsAre("A is [4,5]; expected [..,n,n]"));
  EXPECT_THAT(said(local_of(LocalKind::solve), {{{4}}, {{4}}, {{4}}}), ElementsAre("A is [4]; expected [..,n,n]"));
  EXPECT_THAT(said(local_of(LocalKind::solve), {{{4, 4}}, {{5}}, {{5}}}), ElementsAre("A is [4,4], B is [5]; expected [4,5]"));
  EXPECT_THAT(said(local_of(LocalKind::solve), {{{4, 4}, bf16}, {{4}}, {{4, 1}}}), ElementsAre("an operand is bf16; expected f32", "X is [4,1], B is [4]"));
}

TEST(MatrixShapes, ProductsAndNormsOfOtherThanRealNumbersSaySo) {
  for (const DType dtype : {c64, s32}) {
    const std::string name{name_of(dtype)};
    EXPECT_THAT(said(local_of(LocalKind::multiply), {{{4}, dtype}, {{4}, dtype}, {{4}, dtype}}),
                ElementsAre("an operand of multiply is " + name + "; expected f32 or bf16", "an operand of multiply is " + name + "; expected f32 or bf16",
                            "an operand of multiply is " + name + "; expected f32 or bf16"));
    EXPECT_THAT(said(local_of(LocalKind::norm_sums, 6), {{{4, 6}, dtype}, {{4, 1}, dtype}}),
                ElementsAre("an operand of norm-sums is " + name + "; expected f32 or bf16", "an operand of norm-sums is " + name + "; expected f32 or bf16"));
    EXPECT_THAT(said(local_of(LocalKind::gelu), {{{4}, dtype}, {{4}, dtype}}), ::testing::SizeIs(2));
    EXPECT_THAT(said(local_of(LocalKind::add), {{{4}, dtype}, {{4}, dtype}, {{4}, dtype}}), IsEmpty());

    Writer w{std::vector<MeshAxis>{{"x", 1, false}}};
    const BufferId a = w.scratch("a", {4, 4}, dtype), b = w.scratch("b", {4, 4}, dtype);
    w.add("t", testing::product(a, a, b, 4, 4, 4));
    EXPECT_EQ(to_text(check_shapes(w.schedule).front()), "task 0 \"t\": a product of " + name + "; expected f32, bf16, f8e4m3fn, f8e5m2 or s8");
  }
  EXPECT_THAT(said(local_of(LocalKind::scale, 2), {{{4}, s32}, {{4}, s32}}), ::testing::SizeIs(2));
  EXPECT_THAT(said(local_of(LocalKind::scale, 2), {{{4}, c64}, {{4}, c64}}), IsEmpty());
}

}  // namespace
}  // namespace podsim
