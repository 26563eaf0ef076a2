// Shapes of instructions follow from their operands: what XLA infers is taken, anything else is refused with its place.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "workloads/hlo/testing.hpp"

namespace podsim {
namespace {

/// Of one instruction in an entry that has x f32[4,6], y f32[6,8], i s32[4,6], b pred[4,6], w f32[4,6,8], j s32[4,2], u f32[4,8], a token k and the constants zero f32[] and n s32[].
std::string problem_of(const std::string& instruction) {
  return test::error_of("HloModule m\n%sum { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT r = f32[] add(p, q) }\n"
                        "%less { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT l = pred[] compare(p, q), direction=LT }\nENTRY e {\n x = f32[4,6] parameter(0)\n y = f32[6,8] parameter(1)\n i = s32[4,6] parameter(2)\n b = pred[4,6] parameter(3)\n w = f32[4,6,8] parameter(4)\n j = s32[4,2] parameter(5)\n u = f32[4,8] parameter(6)\n"
                        " k = token[] after-all()\n zero = f32[] constant(0)\n n = s32[] constant(0)\n ROOT r = " + instruction + "\n}\n");
}

TEST(InstructionShapes, AreThoseThatXlaInfers) {
  const std::string at = "m:19:2: ";
  struct Case {
    std::string right, wrong, error;
  };
  const std::vector<Case> cases{
      {"f32[4,6] copy(x)", "f32[4,7] copy(x)", "expected a result like its operand, f32[4,6], got f32[4,7]"},
      {"bf16[4,6] copy(x)", "s32[4,6] copy(x)", "expected a result like its operand, f32[4,6], got s32[4,6]"},
      {"f32[6,4] transpose(x), dimensions={1,0}", "f32[4,6] transpose(x), dimensions={1,0}", "expected a result of [6,4], got f32[4,6]"},
      {"f32[3,8] reshape(x)", "f32[3,9] reshape(x)", "expected as many elements as its operand has, f32[4,6], got f32[3,9]"},
      {"bf16[4,12] bitcast(x)", "bf16[4,13] bitcast(x)", "expected as many bytes as its operand has, f32[4,6], got bf16[4,13]"},
      {"f32[4,5,6] broadcast(x), dimensions={0,2}", "f32[5,5,6] broadcast(x), dimensions={0,2}", "expected a result of [4,5,6], got f32[5,5,6]"},
      {"f32[4] reduce(x, zero), dimensions={1}, to_apply=%sum", "f32[6] reduce(x, zero), dimensions={1}, to_apply=%sum", "expected a result of [4], got f32[6]"},
      {"f32[2,3] slice(x), slice={[1:3], [0:6:2]}", "f32[2,4] slice(x), slice={[1:3], [0:6:2]}", "expected a result of [2,3], got f32[2,4]"},
      {"f32[4,6] slice(x), slice={[0:4], [0:6]}", "f32[4,7] slice(x), slice={[0:4], [0:7]}", "expected a slice within dimension 1 of f32[4,6], got one that ends at 7"},
      {"f32[7,16] pad(x, zero), padding=1_2x0_0_2", "f32[7,15] pad(x, zero), padding=1_2x0_0_2", "expected a result of [7,16], got f32[7,15]"},
      {"f32[8,6] concatenate(x, x), dimensions={0}", "f32[4,6] concatenate(x, x), dimensions={0}", "expected a result of [8,6], got f32[4,6]"},
      {"f32[4,12] concatenate(x, x), dimensions={1}", "f32[10,6] concatenate(x, y), dimensions={0}", "expected operands that differ in dimension 0 only, got f32[4,6] and f32[6,8]"},
      {"f32[4,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[8,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "expected a result of [4,8], got f32[8,4]"},
      {"f32[6,6] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "f32[4,8] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
       "expected operands that agree on what is contracted and on batches, got f32[4,6] and f32[6,8]"},
      {"f32[3,3] reduce-window(x, zero), window={size=2x2 stride=1x2}, to_apply=%sum", "f32[3,6] reduce-window(x, zero), window={size=2x2 stride=1x2}, to_apply=%sum", "expected a result of [3,3], got f32[3,6]"},
      {"f32[4,6] all-reduce(x), replica_groups={{0,1}}, to_apply=%sum", "f32[4,12] all-reduce(x), replica_groups={{0,1}}, to_apply=%sum", "expected a result like its operand, f32[4,6], got f32[4,12]"},
      {"f32[4,12] all-gather(x), replica_groups={{0,1}}, dimensions={1}", "f32[4,13] all-gather(x), replica_groups={{0,1}}, dimensions={1}", "expected a block of each member of a group along dimension 1, got f32[4,6] of f32[4,13]"},
      {"f32[2,6] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=%sum", "f32[2,3] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=%sum",
       "expected a block of each member of a group along dimension 0, got f32[2,3] of f32[4,6]"},
      {"f32[4,6,6] gather(x, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,6}",
       "f32[4,6,5] gather(x, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,6}", "expected a result of [4,6,6], got f32[4,6,5]"},
      {"f32[6,8] scatter(y, i, x), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=%sum",
       "f32[4,6] scatter(x, i, y), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=%sum",
       "expected an update for each place in s32[4,6], got f32[6,8]"},
      {"f32[4,6,6] gather(x, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,6}",
       "f32[4,6,6] gather(x, i), offset_dims={3}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,6}", "expected dimensions of f32[4,6,6] in offset_dims, got 3"},
      {"f32[4,6,6] gather(x, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={1}, index_vector_dim=2, slice_sizes={1,6}",
       "f32[4,6,6] gather(x, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={2}, index_vector_dim=2, slice_sizes={1,6}", "expected dimensions of f32[4,6] in start_index_map, got 2"},
      {"f32[4,6,6] gather(x, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,6}",
       "f32[4,6,6] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,6}", "expected offset_dims for the 1 dimensions that a slice keeps, got [1,2]"},
      {"f32[6,8] scatter(y, i, w), update_window_dims={2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=%sum",
       "f32[6,8] scatter(y, i, w), update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=%sum", "expected updates within [6] of each place, got [8]"},
      {"f32[6,8] scatter(y, i, w), update_window_dims={2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={1}, index_vector_dim=2, to_apply=%sum",
       "f32[6,8] scatter(y, i, w), update_window_dims={2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={2}, index_vector_dim=2, to_apply=%sum",
       "expected dimensions of f32[6,8] in scatter_dims_to_operand_dims, got 2"},
      {"f32[4,6] dynamic-update-slice(x, x, n, n)", "f32[4,6] dynamic-update-slice(x, x, n)", "expected where the slice starts in each of the 2 dimensions of f32[4,6], got 1 operands for it"},
      {"f32[4,6] dynamic-slice(x, n, n), dynamic_slice_sizes={4,6}", "f32[4,6] dynamic-slice(x, n, zero), dynamic_slice_sizes={4,6}", "expected whole numbers as operand 2, where the slice starts, got f32[]"},
      {"bf16[4,6] add(x, x)", "s32[4,6] add(x, x)", "expected operand 0 of the kind of s32, got f32[4,6]"},
      {"f32[4,6] select(b, x, x)", "f32[4,6] select(i, x, x)", "expected operand 0 of the kind of pred, got s32[4,6]"},
      {"pred[4,6] compare(x, x), direction=LT", "f32[4,6] compare(x, x), direction=LT", "expected a result of pred, got f32[4,6]"},
      {"c64[4,4] fft(x), fft_type=RFFT, fft_length={6}", "c64[4,6] fft(x), fft_type=RFFT, fft_length={6}", "expected a result of [4,4], got c64[4,6]"},
      {"c64[4,4] fft(x), fft_type=RFFT, fft_length={4,6}", "c64[4,4] fft(x), fft_type=RFFT, fft_length={6,4}", "expected an operand of [6,4] for this fft_length, got f32[4,6]"},
      {"c64[4,4] fft(x), fft_type=RFFT, fft_length={6}", "c64[4,4] fft(x), fft_length={6}", "expected fft_type=FFT, IFFT, RFFT or IRFFT, found \"\""},
      {"c64[4,4] fft(x), fft_type=RFFT, fft_length={6}", "c64[4,6] fft(x), fft_type=FFT, fft_length={6}", "expected FFT from complex to complex numbers, got f32[4,6] and c64[4,6]"},
      {"f32[4,6] sort(x), dimensions={1}, to_apply=%less", "f32[4,6] sort(x), dimensions={}, to_apply=%less", "expected dimensions={D} of sort, found 0 of them"},
      {"f32[6,8] scatter(y, j, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=%sum",
       "f32[6,8] scatter(y, j, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0,0}, index_vector_dim=1, to_apply=%sum",
       "expected each dimension once in scatter_dims_to_operand_dims, got [0,0]"},
      {"s32[4,6] convert(x)", "s32[6,4] convert(x)", "expected operands of the dimensions of the result, s32[6,4], got f32[4,6]"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(problem_of(one.right), "") << one.right;
    EXPECT_EQ(problem_of(one.wrong), at + one.error) << one.wrong;
  }
}

TEST(InstructionShapes, NeedOperandsAttributesAndComputations) {
  const std::string at = "m:19:2: ";
  EXPECT_EQ(problem_of("f32[4,6] add(x)"), at + "expected 2 operands of add, got 1");
  EXPECT_EQ(problem_of("(f32[4,7]) slice(x), slice={[0:4], [0:7]}"), at + "expected an array as the result of slice, got (f32[4,7])");
  EXPECT_EQ(problem_of("f32[4,6] negate(x, x)"), at + "expected 1 operand of negate, got 2");
  EXPECT_EQ(problem_of("f32[4,6] fusion(x), kind=kLoop"), at + "expected the computation of fusion, calls= or to_apply=, found none");
  EXPECT_EQ(problem_of("f32[4] reduce(x, zero), dimensions={1}"), at + "expected the computation of reduce, calls= or to_apply=, found none");
  EXPECT_EQ(problem_of("f32[6,4] transpose(x)"), at + "expected dimensions= for the 2 dimensions of f32[4,6], got 0");
  EXPECT_EQ(problem_of("f32[4,6] broadcast(zero), dimensions={7}"), at + "expected dimensions= for the 0 dimensions of f32[], got 1");
  EXPECT_EQ(problem_of("f32[4,6] reverse(x), dimensions={6}"), at + "expected dimensions of f32[4,6], got 6");
  EXPECT_EQ(problem_of("f32[8,6] all-gather(x), replica_groups={{0,1}}"), at + "expected dimensions={D} of all-gather, found 0 of them");
  EXPECT_EQ(problem_of("f32[2,7] dynamic-slice(x, n, n), dynamic_slice_sizes={2,7}"), at + "expected a slice within f32[4,6], got one of [2,7]");
  EXPECT_EQ(problem_of("f32[4,8] convolution(x, y), dim_labels=bf_io->bf"), "");
  EXPECT_EQ(problem_of("f32[4,6] convolution(x, x), dim_labels=bf_io->bf"), at + "expected operands that agree on input features, got f32[4,6] and f32[4,6]");
  EXPECT_EQ(problem_of("f32[8,4] convolution(x, y), dim_labels=bf_io->bf"), at + "expected a result of [4,8], got f32[8,4]");
}

TEST(InstructionShapes, NumbersWithoutSenseAreNoDimensions) {
  const std::string at = "m:19:2: ", most = "9007199254740992";
  EXPECT_EQ(problem_of("f32[7,16] pad(x, zero), padding=0_0_" + most + "x0_0"), at + "expected a result of [-1,6], got f32[7,16]");
  EXPECT_EQ(problem_of("f32[3,3] reduce-window(x, zero), window={size=2x2 lhs_dilate=" + most + "x1}, to_apply=%sum"), at + "expected a result of [-1,5], got f32[3,3]");
  EXPECT_EQ(problem_of("f32[3,3] reduce-window(x, zero), window={size=" + most + "x2 rhs_dilate=" + most + "x1}, to_apply=%sum"), at + "expected a result of [0,5], got f32[3,3]");
  EXPECT_EQ(problem_of("f32[4,8] convolution(x, y), dim_labels=bf_io->bf, feature_group_count=" + most), at + "expected operands that agree on input features, got f32[4,6] and f32[6,8]");
}

TEST(InstructionShapes, WhatStartsHoldsItsOperandsAndTheResultOfTheWhole) {
  const std::string at = "m:19:2: ";
  struct Case {
    std::string right, wrong, error;
  };
  const std::string bounds = "slice-start(x), slice={[1:3], [0:6:2]}", scatter = "reduce-scatter-start(x), replica_groups={{0,1}}, dimensions={0}, to_apply=%sum",
                    gather = "all-gather-start(x), replica_groups={{0,1}}, dimensions={1}", update = "dynamic-update-slice-start(x, y, n, n)";
  const std::vector<Case> cases{
      {"(f32[4,6], f32[4,6], u32[]) copy-start(x)", "(f32[4,6], f32[4,7], u32[]) copy-start(x)", "expected the shape of operand 0, f32[4,6], got f32[4,7]"},
      {"(bf16[4,6], f32[4,6], u32[]) copy-start(x)", "f32[4,6] copy-start(x)", "expected a tuple of the result and the operand of copy-start, got f32[4,6]"},
      {"((f32[4,6]), f32[2,3], s32[]) " + bounds, "((f32[4,6]), f32[2,4], s32[]) " + bounds, "expected a result of [2,3], got f32[2,4]"},
      {"((f32[4,6]), f32[4,6]) all-reduce-start(x), replica_groups={{0,1}}, to_apply=%sum", "((f32[4,6]), f32[4,7]) all-reduce-start(x), replica_groups={{0,1}}, to_apply=%sum",
       "expected a result like its operand, f32[4,6], got f32[4,7]"},
      {"(f32[4,6], f32[2,3], s32[]) " + bounds, "(f32[4,7], f32[2,3], s32[]) " + bounds, "expected the shape of operand 0, f32[4,6], got f32[4,7]"},
      {"((f32[4,6]), f32[2,6]) " + scatter, "((f32[4,6]), f32[4,6]) " + scatter, "expected a block of each member of a group along dimension 0, got f32[4,6] of f32[4,6]"},
      {"(f32[4,6], f32[4,12]) " + gather, "(f32[4,6], f32[4,13]) " + gather, "expected a block of each member of a group along dimension 1, got f32[4,6] of f32[4,13]"},
      {"((f32[4,6], f32[6,8]), (f32[8,6], f32[12,8])) all-gather-start(x, y), replica_groups={{0,1}}, dimensions={0}",
       "((f32[4,6], f32[6,8]), (f32[8,6], f32[13,8])) all-gather-start(x, y), replica_groups={{0,1}}, dimensions={0}",
       "expected a block of each member of a group along dimension 0, got f32[6,8] of f32[13,8]"},
      {"((f32[4,6]), f32[4,6], u32[]) collective-permute-start(x), source_target_pairs={{0,1}}", "((f32[4,6], f32[4,6]), f32[4,6], u32[]) collective-permute-start(x), source_target_pairs={{0,1}}",
       "expected a tuple of its 1 operands, got (f32[4,6], f32[4,6])"},
      {"((f32[4,6], f32[4,6], s32[], s32[]), f32[4,6], u32[]) dynamic-update-slice-start(x, x, n, n)", "((f32[4,6], f32[6,8], s32[], s32[]), f32[4,6], u32[]) " + update,
       "expected an update within f32[4,6], got f32[6,8]"},
      {"(f32[4,6], u32[], token[]) send(x, k), channel_id=1", "(f32[4,7], u32[], token[]) send(x, k), channel_id=1", "expected the shape of operand 0, f32[4,6], got f32[4,7]"},
      {"((f32[4,6]), f32[6,4], u32[]) transpose-start(x), dimensions={1,0}", "((f32[4,6]), f32[4,6], u32[]) transpose-start(x), dimensions={1,0}", "expected a result of [6,4], got f32[4,6]"},
  };
  for (const Case& one : cases) {
    const bool has_no_start = one.right.find("-start") == std::string::npos;
    EXPECT_EQ(problem_of(one.right), has_no_start ? "" : at + "r: expected a -done of it") << one.right;  // what comes after shapes
    EXPECT_EQ(problem_of(one.wrong), at + one.error) << one.wrong;
  }
}

TEST(InstructionShapes, WhatEndsIsWhatWasStarted) {
  const auto done = [](const std::string& start, const std::string& result) {
    return test::error_of("HloModule m\n%sum { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT r = f32[] add(p, q) }\nENTRY e {\n x = f32[4,6] parameter(0)\n k = token[] after-all()\n s = " + start +
                          "\n ROOT r = " + result + "(s)\n}\n");
  };
  const std::string reduces = "f32[4,6] all-reduce-start(x), replica_groups={{0,1}}, to_apply=%sum", copies = "(f32[4,6], f32[4,6], u32[]) copy-start(x)",
                    gathers = "(f32[4,6], f32[8,6]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}";
  EXPECT_EQ(done(reduces, "f32[4,6] all-reduce-done"), "");
  EXPECT_EQ(done(reduces, "f32[8,6] all-reduce-done"), "m:9:2: expected what was started, f32[4,6], got f32[8,6]");
  EXPECT_EQ(done(copies, "f32[4,6] copy-done"), "");
  EXPECT_EQ(done(copies, "f32[5,6] copy-done"), "m:9:2: expected what was started, f32[4,6], got f32[5,6]");
  EXPECT_EQ(done(gathers, "f32[8,6] all-gather-done"), "");
  EXPECT_EQ(done(gathers, "f32[4,6] all-gather-done"), "m:9:2: expected what was started, f32[8,6], got f32[4,6]");
  const std::string slices = "((f32[4,6]), f32[2,6], s32[]) slice-start(x), slice={[0:2], [0:6]}", sends = "(f32[4,6], u32[], token[]) send(x, k), channel_id=1";
  EXPECT_EQ(done(slices, "f32[2,6] slice-done"), "");
  EXPECT_EQ(done(slices, "f32[4,6] slice-done"), "m:9:2: expected what was started, f32[2,6], got f32[4,6]");
  EXPECT_EQ(done(slices, "((f32[4,6]), f32[3,6], s32[]) slice-update"), "m:9:2: expected the shape of operand 0, ((f32[4,6]), f32[2,6], s32[]), got ((f32[4,6]), f32[3,6], s32[])");
  EXPECT_EQ(done(sends, "token[] send-done"), "");
  EXPECT_EQ(done(sends, "f32[4,6] send-done"), "m:9:2: expected a token, got f32[4,6]");
  const std::string receives = "(f32[4,6], u32[], token[]) recv(k), channel_id=1";
  EXPECT_EQ(done(receives, "(f32[4,6], token[]) recv-done"), "");
  EXPECT_EQ(done(receives, "(f32[4,8], token[]) recv-done"), "m:9:2: expected what was started, f32[4,6], got f32[4,8]");
}

}  // namespace
}  // namespace podsim
