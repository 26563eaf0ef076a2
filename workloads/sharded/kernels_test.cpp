// Transforms and linear systems in programs: their text, their shapes, how they are computed, and what that moves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "workloads/sharded/summary.hpp"
#include "workloads/sharded/testing.hpp"
#include "workloads/sharded/write.hpp"

namespace podsim::testing {
namespace {

using ::testing::HasSubstr;

const Mesh& four_by_two() {
  static const Mesh mesh = mesh_with({{"x", 4}, {"y", 2}});
  return mesh;
}

Expected<ShardedProgram> typed(const std::string& text, const std::string& shapes, const std::string& shards = "", const std::string& outs = "", KernelChoice kernels = {},
                              bool pad = false) {
  ProgramText program = program_text(text, shapes, shards, outs);
  program.kernels = kernels;
  program.pad = pad;
  return read_program(program, four_by_two());
}
std::string error_of(const Expected<ShardedProgram>& read) { return read ? "no error" : read.error().message; }

/// The plan, or the error's message.
std::string planning_error(const std::string& text, const std::string& shapes, const std::string& shards, KernelChoice kernels = {}, const std::string& outs = "") {
  const auto program = typed(text, shapes, shards, outs, kernels);
  if (!program) return program.error().message;
  const auto plan = plan_program(*program, Choose::by_default);
  return plan ? "no error" : plan.error().message;
}
ProgramSummary summarised(const std::string& text, const std::string& shapes, const std::string& shards, KernelChoice kernels = {}, const std::string& outs = "") {
  const auto program = typed(text, shapes, shards, outs, kernels);
  EXPECT_TRUE(program) << to_text(program.error());
  const auto plan = plan_program(*program, Choose::by_default);
  EXPECT_TRUE(plan) << to_text(plan.error());
  return summary_of(*program, *plan);
}
/// "2 all-to-all along y", one per line
std::string collectives_in(const ProgramSummary& summary) {
  std::string text;
  for (const ProgramCollective& one : summary.collectives) {
    text += fmt::format("{} {}", one.count, one.kind);
    for (const std::string& axis : one.axes) text += " " + axis;
    text += "; ";
  }
  return text;
}

TEST(KernelPrograms, TypesOfResultsFollow) {
  const auto program = typed("Y = fft(X); Z = ifft(Y); P, L, U = lu(A); v = solve(A, b); w = reshard(P, x)", "X=8x4x6; A=64x64; b=64");
  ASSERT_TRUE(program) << to_text(program.error());
  const auto dtype = [&](const std::string& name) {
    for (const Operation& operation : program->operations)
      if (operation.name == name) return operation.dtype;
    return DType::bf16;
  };
  for (const char* complex : {"Y", "Z"}) EXPECT_EQ(dtype(complex), DType::c64) << complex;
  for (const char* real : {"X", "L", "U", "v"}) EXPECT_EQ(dtype(real), DType::f32) << real;
  for (const char* whole : {"P", "w"}) EXPECT_EQ(dtype(whole), DType::s32) << whole;
}

TEST(KernelPrograms, WhatComplexAndWholeNumbersAllow) {
  for (const char* fine : {"Y = fft(X)", "Y = Z + Z - 2 * Z", "Y = sum(Z, 0)", "Y = reshard(Z, x,-)", "Y = Z.T"}) EXPECT_EQ(error_of(typed(fine, fine[4] == 'f' ? "X=8x8" : "Z=8x8,c64")), "no error") << fine;
  EXPECT_THAT(error_of(typed("Y = Z @ Z", "Z=8x8,c64")), HasSubstr("takes f32 or bf16; Z is c64"));
  EXPECT_THAT(error_of(typed("Y = Z * Z", "Z=8x8,c64")), HasSubstr("takes f32 or bf16; Z is c64"));
  EXPECT_THAT(error_of(typed("Y = gelu(Z)", "Z=8x8,c64")), HasSubstr("takes f32 or bf16; Z is c64"));
  EXPECT_THAT(error_of(typed("Y = X + Z", "X=8x8; Z=8x8,c64")), HasSubstr("expected operands of one dtype, found f32 and c64"));
  EXPECT_THAT(error_of(typed("Y = Z + Z", "Z=8x8,s32")), HasSubstr("takes f32 or bf16 or c64; Z is s32"));
  EXPECT_THAT(error_of(typed("x = solve(Z, Z)", "Z=8x8,c64")), HasSubstr("takes f32"));
}

TEST(KernelPrograms, TextsThatAreWrong) {
  EXPECT_THAT(error_of(typed("L = lu(A)", "A=8x8")), HasSubstr("lu gives three arrays"));
  EXPECT_THAT(error_of(typed("P, L = lu(A)", "A=8x8")), HasSubstr("three names"));
  EXPECT_THAT(error_of(typed("P, L, U = A", "A=8x8")), HasSubstr("expected lu(A)"));
  EXPECT_THAT(error_of(typed("P, P, U = lu(A)", "A=8x8")), HasSubstr("assigned a second time"));
  EXPECT_THAT(error_of(typed("P, L, U = lu(A)", "A=8x9")), HasSubstr("expected a square matrix in lu, found 8x9"));
  EXPECT_THAT(error_of(typed("x = solve(A, b)", "A=8x8; b=9")), HasSubstr("expected right-hand sides of 8"));
  EXPECT_THAT(error_of(typed("x = solve(A, 1)", "A=8x8")), HasSubstr("right-hand sides, found a number"));
  EXPECT_THAT(error_of(typed("Y = fft(X)", "X=2x2x2x2")), HasSubstr("rank 1 to 3"));
  EXPECT_THAT(error_of(typed("Y = fft(X)", "X=0x2")), HasSubstr("expected extents"));
  KernelChoice transposed;
  transposed.order = FftOrder::transposed;
  EXPECT_THAT(error_of(typed("Y = fft(X)", "X=64", "X=x", "", transposed)), HasSubstr("natural order"));
}

TEST(KernelPrograms, AlgorithmsThatDoNotSuit) {
  EXPECT_THAT(planning_error("Y = fft(X)", "X=8x8x8", "X=x,-,y"), HasSubstr("reshard"));
  KernelChoice slab;
  slab.fft = FftMethod::slab;
  EXPECT_NE(planning_error("Y = fft(X)", "X=8x8x8", "X=x,y,-", slab), "no error");
  EXPECT_THAT(planning_error("Y = fft(X)", "X=8x6x8", "X=x,-,-"), HasSubstr("multiple of 4"));
  KernelChoice odd;
  odd.block = 24;
  EXPECT_THAT(planning_error("P, L, U = lu(A)", "A=512x512", "A=x,y", odd), HasSubstr("multiple"));
  KernelChoice batched;
  batched.solve = SolveMethod::batched;
  EXPECT_THAT(planning_error("v = solve(A, b)", "A=8x8; b=8", "A=x,-", batched), HasSubstr("systems"));
}

/// Where an all-to-all would not be even: 12 blocks of 32 over 4 devices.
TEST(KernelPrograms, UnevenBlocksAreGatheredOrSliced) {
  KernelChoice block;
  block.block = 32;
  const auto relaid = [&](const std::string& text, const std::string& shapes, const std::string& shards, const std::string& outs, const std::string& tensor) {
    std::string kinds;
    for (const ProgramCollective& one : summarised(text, shapes, shards, block, outs).collectives)
      if (one.tensor == tensor && one.reason.find("block") != std::string::npos && one.reason.find(" by ") == std::string::npos) kinds += one.kind + " " + one.axes.at(0) + "; ";
    return kinds;
  };
  EXPECT_EQ(relaid("P, L, U = lu(A)", "A=512x512", "A=x,y", "L=x,y", "L"), "all-to-all x; all-to-all y; ");
  EXPECT_EQ(relaid("P, L, U = lu(A)", "A=384x384", "A=x,y", "L=x,y", "L"), "all-gather x; all-to-all y; ");
  EXPECT_EQ(relaid("v = solve(A, b)", "A=384x384; b=384", "A=x,y", "", "b"), "") << "what every device has is sliced";
}

TEST(KernelPrograms, DistributedUnlessAskedOtherwise) {
  EXPECT_EQ(collectives_in(summarised("Y = fft(X)", "X=8x8x8", "X=x,y,-")), "2 all-to-all y; 2 all-to-all x; ");
  KernelChoice transposed;
  transposed.order = FftOrder::transposed;
  const ProgramSummary kept = summarised("Y = fft(X)", "X=8x8x16", "X=x,y,-", transposed);
  EXPECT_EQ(collectives_in(kept), "1 all-to-all y; 1 all-to-all x; ");
  EXPECT_EQ(kept.outputs[0].extents, (Extents{8, 16, 8}));
  EXPECT_FALSE(kept.contains_all_gather);
  KernelChoice naive;
  naive.fft = FftMethod::naive;
  const ProgramSummary gathered = summarised("Y = fft(X)", "X=8x8x8", "X=x,y,-", naive);
  EXPECT_TRUE(gathered.contains_all_gather);
  EXPECT_EQ(gathered.outputs[0].sharding, "-,-,-");
  EXPECT_EQ(collectives_in(summarised("Y = fft(X)", "X=8x8x8", "")), "");
  EXPECT_EQ(collectives_in(summarised("v = solve(A, b)", "A=8x16x16; b=8x16", "A=(x+y),-,-; b=(x+y),-")), "") << "independent systems need nothing of each other";
}

TEST(KernelPrograms, FactorsStayBlockCyclicUnlessAskedFor) {
  KernelChoice block;
  block.block = 16;
  const ProgramSummary kept = summarised("P, L, U = lu(A)", "A=256x256", "A=x,y", block);
  ASSERT_EQ(kept.outputs.size(), 3U);
  EXPECT_EQ(kept.outputs[0].sharding, "-");
  EXPECT_EQ(kept.outputs[0].dtype, "s32");
  EXPECT_EQ(kept.outputs[1].cyclic, (CyclicBlocks{16, 16}));
  const ProgramSummary laid_out = summarised("P, L, U = lu(A)", "A=256x256", "A=x,y", block, "L=x,y");
  EXPECT_TRUE(laid_out.outputs[1].cyclic.empty());
  // 128 x 64 floats, of which 3/4 and 1/2 move.
  const auto relaid = [](const ProgramCollective& one) { return one.tensor == "L" && one.kind == "all-to-all"; };
  ASSERT_EQ(std::count_if(laid_out.collectives.begin(), laid_out.collectives.end(), relaid), 2);
  const auto first = std::find_if(laid_out.collectives.begin(), laid_out.collectives.end(), relaid);
  EXPECT_EQ(first->received.count(), 64 * 128 * 4 * 3 / 4);
  EXPECT_EQ((first + 1)->received.count(), 64 * 128 * 4 / 2);
}

/// An input that something else reads too is contiguous, and dealt out.
TEST(KernelPrograms, WhatOthersReadIsDealtOut) {
  KernelChoice block;
  block.block = 16;
  const ProgramSummary summary = summarised("P, L, U = lu(A); B = A + A", "A=256x256", "A=x,y", block);
  EXPECT_THAT(collectives_in(summary), ::testing::StartsWith("1 all-to-all x; 1 all-to-all y; "));
  EXPECT_THAT(collectives_in(summarised("P, L, U = lu(A)", "A=256x256", "A=x,y", block)), ::testing::Not(HasSubstr("all-to-all")));
}

}  // namespace
}  // namespace podsim::testing
