#include "workloads/hlo/hlo_product_rate.hpp"

#include <gtest/gtest.h>

#include "workloads/hlo/testing.hpp"

namespace podsim {

void PrintTo(const HloProductRate& rate, std::ostream* out) { *out << rate.products << " of " << name_of(rate.operands) << " in " << rate.float32_passes << " passes"; }

namespace {

using T = HloType;

TEST(HloProductRate, FollowsTheTypesOfBothOperands) {
  const auto rate = [](T left, T right) { return product_rate_of(left, right); };
  for (const T type : {T::f8e4m3fn, T::f8e4m3, T::f8e4m3b11fnuz, T::f8e4m3fnuz, T::f8e3m4, T::f4e2m1fn}) EXPECT_EQ(rate(type, type), (HloProductRate{DType::f8e4m3fn}));
  for (const T type : {T::f8e5m2, T::f8e5m2fnuz}) EXPECT_EQ(rate(type, type), (HloProductRate{DType::f8e5m2}));
  EXPECT_EQ(rate(T::f8e5m2, T::f8e4m3fn), (HloProductRate{DType::f8e4m3fn}));
  for (const T type : {T::s8, T::u8, T::s4, T::u4, T::s2, T::pred}) EXPECT_EQ(rate(type, T::s8), (HloProductRate{DType::s8}));
  for (const T type : {T::bf16, T::f16, T::s8, T::f8e5m2}) EXPECT_EQ(rate(type, T::bf16), (HloProductRate{DType::bf16}));
  EXPECT_EQ(rate(T::s8, T::f8e4m3fn), (HloProductRate{DType::bf16}));
  for (const T type : {T::f32, T::bf16, T::s8, T::f8e4m3fn}) EXPECT_EQ(rate(type, T::f32), (HloProductRate{DType::f32, 0}));
  for (const T type : {T::f64, T::s32, T::u16, T::s64, T::c64, T::c128}) EXPECT_EQ(rate(T::bf16, type), (HloProductRate{DType::f32, 6}));
}

TEST(HloProductRate, PrecisionIsThatOfFloat32) {
  EXPECT_EQ(product_rate_of(T::f32, T::f32, HloPrecision::high), (HloProductRate{DType::f32, 3}));
  EXPECT_EQ(product_rate_of(T::bf16, T::f32, HloPrecision::highest), (HloProductRate{DType::f32, 6}));
  EXPECT_EQ(product_rate_of(T::bf16, T::bf16, HloPrecision::highest), (HloProductRate{DType::bf16})) << "its products are exact in one pass";
}

TEST(HloProductRate, AnAlgorithmSaysWhatFloatsAreRoundedTo) {
  const auto rate = [](std::string_view algorithm, T type = T::f32) { return product_rate_of(type, type, HloPrecision::standard, algorithm); };
  EXPECT_EQ(rate("dot_bf16_bf16_f32"), (HloProductRate{DType::bf16}));
  for (const int products : {3, 6, 9}) EXPECT_EQ(rate("dot_bf16_bf16_f32_x" + std::to_string(products)), (HloProductRate{DType::bf16, 0, products}));
  EXPECT_EQ(rate("dot_tf32_tf32_f32_x3"), (HloProductRate{DType::f32, 1, 3}));
  EXPECT_EQ(rate("dot_tf32_tf32_f32"), (HloProductRate{DType::f32, 1}));
  EXPECT_EQ(rate("dot_f32_f32_f32"), (HloProductRate{DType::f32, 6}));
  EXPECT_EQ(rate("dot_any_f8_any_f8_f32_fast_accum", T::f8e5m2), (HloProductRate{DType::f8e5m2}));
  EXPECT_EQ(rate("dot_of_tomorrow", T::bf16), (HloProductRate{DType::bf16}));
}

TEST(HloProductRate, IsReadOffAProduct) {
  const HloModule module = test::module_of(
      "HloModule m\nENTRY e {\n  %a = f32[8,8] parameter(0)\n  %b = bf16[8,8] parameter(1)\n"
      "  ROOT %d = f32[8,8] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,default}\n}\n");
  const HloComputation& entry = module.computations.front();
  EXPECT_EQ(product_rate_of(entry, test::instruction_named(module, "d")), (HloProductRate{DType::f32, 6}));
}

}  // namespace
}  // namespace podsim
