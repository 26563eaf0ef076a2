// Values of attributes that XLA's own parser or verifier refuses are refused here, with their place; names that it does not know, as of the next XLA, are kept.
#include <gtest/gtest.h>

#include <string>

#include "workloads/hlo/testing.hpp"

namespace podsim::attribute_values_tests {
namespace {

/// Of `%r = ..` as the root; the text before "=" has 7 characters.
std::string error_in(const std::string& instruction) {
  const auto module = parse_hlo("HloModule m, num_partitions=4\n%add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
                                "ENTRY e {\n x = f32[4,4] parameter(0)\n k = u64[2] parameter(1)\nROOT r = " + instruction + "\n}\n", "m");
  return module ? "" : to_text(module.error());
}

TEST(AttributeValues, ANameThatXlasParserDoesNotKnowIsKept) {
  EXPECT_EQ(error_in("f32[4,4] negate(x), foo=bar"), "") << "the next XLA may have it: HloSummary counts it";
  EXPECT_EQ(error_in("f32[4,4] of_tomorrow(x), foo=bar"), "") << "nothing is known of its attributes";
  EXPECT_EQ(error_in("f32[4,4] negate(x), result_accuracy={mode=highest}, origin={{\"p\"}}, statistics={visualizing_index=0}"), "");
  EXPECT_EQ(error_in("f32[4,4] add(x, x), output_to_operand_aliasing={{}: (0, {})}"), "") << "other versions have it elsewhere: a GPU's all-reduce-start of 2025";
}

TEST(AttributeValues, WordsTruthsAndNumbersAreThoseOfXla) {
  EXPECT_EQ(error_in("f32[4,4] fusion(x), kind=kNoSuch, calls=%add"), "m:8:35: expected one of kLoop, kInput, kOutput, kCustom, got \"kNoSuch, calls=%add\"");
  EXPECT_EQ(error_in("f32[4,4] sort(x), dimensions={0}, is_stable=maybe, to_apply=%add"), "m:8:54: expected true or false, got \"maybe, to_apply=%add\"");
  EXPECT_EQ(error_in("(u64[2], u32[8]) rng-bit-generator(k), algorithm=rng_nosuch"), "m:8:59: expected one of rng_default, rng_three_fry, rng_philox, got \"rng_nosuch\"");
  EXPECT_EQ(error_in("(u64[2], u32[8]) rng-bit-generator(k), algorithm=rng_default"), "");
  const std::string dot = "f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, algorithm=";
  EXPECT_EQ(error_in(dot + "dot_bf16_bf16_f32_x9"), "");
  EXPECT_NE(error_in(dot + "dot_nosuch").find("m:8:92: expected one of unset, dot_any_f8"), std::string::npos);
  EXPECT_NE(error_in(dot + "rng_default").find("m:8:92: expected one of unset, dot_any_f8"), std::string::npos);
  EXPECT_EQ(error_in("c64[4,3] fft(x), fft_type=XFFT, fft_length={4}"), "m:8:36: expected one of FFT, IFFT, RFFT, IRFFT, got \"XFFT, fft_length={4}\"");
  EXPECT_EQ(error_in("f32[4,4] reduce-precision(x), exponent_bits=0, mantissa_bits=10"), "m:8:54: expected a number from 1 on, got \"0, mantissa_bits=10\"");
  EXPECT_EQ(error_in("f32[4,4] reduce-precision(x), exponent_bits=5, mantissa_bits=-1"), "m:8:71: expected a number from 0 on, got \"-1\"");
  EXPECT_EQ(error_in("f32[4,4] reduce-precision(x), exponent_bits=5, mantissa_bits=99"), "") << "XLA's shape inference takes any number of them: none are cut off";
  EXPECT_EQ(error_in("f32[4,4] all-reduce(x), constrain_layout=maybe, to_apply=%add"), "m:8:51: expected true or false, got \"maybe, to_apply=%add\"");
  EXPECT_EQ(error_in("f32[4,4] copy(x), update_window_dims={a}"), "m:8:47: expected \"{\" and a list of numbers from 0 on, got \"{a}\"");
}

TEST(AttributeValues, ChannelsAndGroupsAreXlas) {
  const std::string reduce = "f32[4,4] all-reduce(x), to_apply=%add, ", global = ", use_global_device_ids=true";
  EXPECT_EQ(error_in(reduce + "channel_id=1, replica_groups={{0,1,2,3}}" + global), "");
  EXPECT_EQ(error_in(reduce + "channel_id=-1, replica_groups={{0,1,2,3}}" + global), "m:8:60: expected a channel from 0 on, got \"-1, replica_groups={{0,1,2,3}}, use_glob\"");
  EXPECT_EQ(error_in(reduce + "channel_id=1, replica_groups={{0,1,2,3}}"), "m:8:1: r: expected groups that have each of 1 replicas (use_global_device_ids is not true) once, got {{0,1,2,3}}")
      << "without use_global_device_ids an all-reduce names replicas, of which there is one";
  EXPECT_EQ(error_in("f32[4,4] all-to-all(x), dimensions={0}, channel_id=1, replica_groups={{0,1,2,3}}"), "") << "it names partitions";
}

TEST(AttributeValues, OfAConstantAreNumbersOfItsType) {
  EXPECT_EQ(error_in("f32[] constant(4e99)"), "m:8:25: expected a value of type f32, got \"4e99)\"");
  EXPECT_EQ(error_in("f32[] constant(3.40282347e+38)"), "") << "XLA's text of the largest one";
  EXPECT_EQ(error_in("bf16[] constant(3.390e+38)"), "") << "rounded to the largest one";
  EXPECT_EQ(error_in("bf16[] constant(3.4e+38)"), "m:8:26: expected a value of type bf16, got \"3.4e+38)\"");
  EXPECT_EQ(error_in("f64[] constant(1e999)"), "m:8:25: expected a value of type f64, got \"1e999)\"");
  EXPECT_EQ(error_in("f64[] constant(1e-999)"), "");
  EXPECT_EQ(error_in("f32[2] constant({inf, -inf})"), "");
}

}  // namespace
}  // namespace podsim::attribute_values_tests
