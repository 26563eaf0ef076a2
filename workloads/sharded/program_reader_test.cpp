#include <gtest/gtest.h>

#include "workloads/sharded/testing.hpp"

namespace podsim::testing {
namespace {

const Mesh eight = mesh_with({{"x", 4}, {"y", 2}});

std::string problem(const std::string& statements, const std::string& shapes, const std::string& shards = "", const std::string& outs = "") {
  const auto program = read(eight, statements, shapes, shards, outs);
  return program ? "no problem" : to_text(program.error());
}

TEST(ProgramText, ErrorsSayWhereAndWhatWasExpected) {
  const std::string two = "A=48x24; B=24x96";
  EXPECT_EQ(problem("C = A @ ", two), "program:1:9: expected an array, a number, a function or (, found the end");
  EXPECT_EQ(problem("C = A @ B)", two), "program:1:10: expected an operator or the end of the statement, found \")\"");
  EXPECT_EQ(problem("C = (A @ B", two), "program:1:11: expected an operator or ), found the end");
  EXPECT_EQ(problem("C = A @ D", two), "program:1:9: \"D\" has no value here and no shape (D=ROWSxCOLUMNS)");
  EXPECT_EQ(problem("C = A @ B\nC = A @ B", two), "program:2:1: \"C\" is assigned a second time");
  EXPECT_EQ(problem("A = A @ B", two), "program:1:1: \"A\" is an input, which is not written to");
  EXPECT_EQ(problem("C = B @ A", two), "program:1:7: expected as many columns on the left of @ as rows on its right, found 24x96 @ 48x24");
  EXPECT_EQ(problem("C = A + B", two), "program:1:7: expected shapes that are equal, or 1 where they differ, found 48x24 + 24x96");
  EXPECT_EQ(problem("C = A @ 2", "A=4x4"), "program:1:7: expected arrays on both sides of @, found a number");
  EXPECT_EQ(problem("C = 2 * 3; D = A", "A=4x4"), "program:1:5: expected an array, found a number");
  EXPECT_EQ(problem("C = tanh(A)", "A=4x4"), "program:1:5: there is no function \"tanh\"");
  EXPECT_EQ(problem("C = rel(A)", "A=4x4"), "program:1:5: there is no function \"rel\", did you mean \"relu\" or \"gelu\"?");
  EXPECT_EQ(problem("C = sum(A, 2)", "A=4x4"), "program:1:12: expected a dimension of an array of rank 2, found 2");
  EXPECT_EQ(problem("C = A / 0", "A=4x4"), "program:1:7: expected a finite number, found a division by zero or an overflow");
  EXPECT_EQ(problem("relu = A", "A=4x4"), "program:1:1: \"relu\" is a function: expected the name of an array");
  EXPECT_EQ(problem("C = A.X", "A=4x4"), "program:1:6: expected .T, found \"X\"");
  EXPECT_EQ(problem("", "A=4x4"), "program:1:1: expected NAME = EXPRESSION, found nothing");
  EXPECT_EQ(problem("C = relu(A)", "A=4x4; Q=3x3"), "shape:1:1: the program does not read \"Q\"");
}

TEST(ProgramText, ShapesAndShardings) {
  EXPECT_EQ(problem("C = relu(A)", "A=4y4"), "shape:1:3: expected extents as in 48x24: expected a whole number from 1 to 1099511627776, got \"4y4\"");
  EXPECT_EQ(problem("C = relu(A)", "A=4x4; A=4x4"), "shape:1:1: the shape of \"A\" is given twice");
  EXPECT_EQ(problem("C = relu(A)", "A"), "shape:1:1: expected NAME=EXTENTS, as in A=48x24, found \"A\"");
  EXPECT_EQ(problem("C = relu(A)", "A=1000000x1000000x1000000"), "shape:1:1: expected an array of at most 2^50 elements, found 1000000x1000000x1000000");
  EXPECT_NE(problem("C = relu(A)", "A=4x4", "A=x,x").find("shard:1:5: "), std::string::npos) << problem("C = relu(A)", "A=4x4", "A=x,x");
  EXPECT_NE(problem("C = relu(A)", "A=4x4", "A=(x+x)").find("shard:1:"), std::string::npos);
  EXPECT_NE(problem("C = relu(A)", "A=4x4", "A=q").find("shard:1:3: "), std::string::npos);
  EXPECT_NE(problem("C = relu(A)", "A=4x4", "A=x,y,-").find("shard:1:"), std::string::npos);
  EXPECT_NE(problem("C = relu(A)", "A=6x4", "A=x").find("multiple of 4"), std::string::npos) << problem("C = relu(A)", "A=6x4", "A=x");
  EXPECT_EQ(problem("C = relu(A)", "A=4x4", "B=x"), "shard:1:1: expected the name of an input, found \"B\"");
  EXPECT_EQ(problem("C = relu(A)", "A=4x4", "", "A=x"), "out:1:1: expected the name of a result, found the input \"A\"");
  EXPECT_NE(problem("C = relu(A)", "A=4x4", "", "C=z").find("out:1:3: "), std::string::npos);
}

TEST(ProgramText, LocalBlocksNeedAShardingThatTheTextFixes) {
  const std::string of = "A=8x8; B=8x8";
  EXPECT_EQ(problem("C = A @ B; D = psum(C, x)", of, "A=-,x; B=x,-"),
            "program:1:16: sums along \"x\" of C are pending already: expected psum of an array without them, or shard_map { }, where @ and sum are of blocks; found unreduced(x):-,-");
  EXPECT_EQ(problem("C = A @ B; D = psum(C, y)", of, "A=x,-; B=-,x"),
            "program:1:16: psum works on the local blocks of C, whose sharding is the compiler's choice: expected reshard(C, SPEC) or the like");
  EXPECT_EQ(problem("C = A @ B; D = psum(reshard(C, x,-), x)", of, "A=x,-; B=-,x"), "no problem");
  EXPECT_EQ(problem("C = psum(A, x+x)", "A=8x8"), "program:1:15: mesh axis \"x\" is named twice");
  EXPECT_EQ(problem("C = ppermute(A, x+y, 1)", "A=8x8"), "program:1:19: expected one mesh axis, found a second one, \"y\"");
  EXPECT_EQ(problem("C = psum_scatter(A, 0, x)", "A=6x8"), "program:1:5: dimension 0 of the local block of A has extent 6: expected a multiple of 4");
}

TEST(ProgramText, WhatLocalBlocksMakeIsLaidOutByTheirSharding) {
  const auto typed = [](const std::string& expression, const std::string& shard) {
    const ShardedProgram program = program_with(eight, "C = " + expression, "A=16x24", shard.empty() ? "" : "A=" + shard);
    const Operation& result = program.operations.back();
    std::string text;
    for (const std::int64_t extent : result.extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
    return text + " " + to_text(*result.sharding, eight, result.extents.size());
  };
  EXPECT_EQ(typed("psum(A, x)", "x,y"), "4x24 -,y");
  EXPECT_EQ(typed("psum(A, y)", "(x+y),-"), "8x24 x,-");
  EXPECT_EQ(typed("psum(A, x)", "-,-"), "16x24 -,-");
  EXPECT_EQ(typed("all_gather(A, 0, x)", "x,y"), "16x24 -,y");
  EXPECT_EQ(typed("all_gather(A, 1, x)", "x,y"), "4x96 -,y");
  EXPECT_EQ(typed("psum_scatter(A, 1, x)", "-,-"), "16x24 -,x");
  EXPECT_EQ(typed("ppermute(A, x, 1)", "x,-"), "16x24 x,-");
  EXPECT_EQ(typed("all_to_all(A, 1, 0, x)", "x,-"), "16x24 -,x");
  EXPECT_EQ(typed("sum(A, 0)", "x,y"), "24 unreduced(x):y");
  EXPECT_EQ(typed("A.T", "x,y"), "24x16 y,x");
}

TEST(ProgramText, PaddingRoundsUpWhatBelongsTogether) {
  ProgramText text = program_text("C = A @ B", "A=10x7; B=7x5", "A=x,y; B=y,-");
  text.pad = true;
  const auto program = read_program(text, eight);
  ASSERT_TRUE(program) << to_text(program.error());
  EXPECT_EQ(program->operations[0].extents, (Extents{12, 8}));
  EXPECT_EQ(program->operations[1].extents, (Extents{8, 5}));
  EXPECT_EQ(program->operations[2].extents, (Extents{12, 5}));
  EXPECT_EQ(program->unpadded[0], (Extents{10, 7}));
  text = program_text("C = A @ B", "A=10x7; B=7x5", "A=-,y");  // B grows with A
  text.pad = true;
  ASSERT_TRUE(read_program(text, eight)) << to_text(read_program(text, eight).error());
  EXPECT_EQ(read_program(text, eight)->operations[1].extents, (Extents{8, 5}));
  text = program_text("C = (A + 1) @ B", "A=10x7; B=7x5", "A=x,y; B=y,-");
  text.pad = true;
  EXPECT_TRUE(read_program(text, eight));  // what is added to A meets zeros of B
  text = program_text("C = sum(A + 1, 1)", "A=10x7", "A=x,y");
  text.pad = true;
  EXPECT_EQ(to_text(read_program(text, eight).error()),
            "program:1:5: --pad adds elements to dimension 1 of C.1, which are not 0 and count in the sum: expected extents that divide");
  text = program_text("C = B / A", "A=10x7; B=10x7", "A=x,y");
  text.pad = true;
  EXPECT_EQ(to_text(read_program(text, eight).error()), "program:1:7: --pad adds elements to dimension 0 of B, which divides: expected extents that divide");
}

TEST(ProgramText, MutatedTextsAreReadOrRefused) {
  const std::vector<std::string> seeds{"C = A @ B; D = relu(C + 1) * 2", "Y = X / psum(X, x+y)", "Z = all_to_all(reshard(A, x,-), 1, 0, x)\n# comment\nW = Z.T @ (A - 3e2)",
                                       "Q = psum_scatter(A, -1, (x, y)); R = ppermute(Q, y, -7); S = sum(R, 0)"};
  Rng rng{11, stream_of("mutated programs")};
  int refused = 0;
  constexpr int rounds = 100'000;
  for (int i = 0; i < rounds; ++i) {
    const std::string text = mutated(seeds, rng);
    const auto program = read(eight, text, "A=16x16; B=16x16; X=16", "A=x,y");
    refused += program ? 0 : 1;
    if (!program) {
      EXPECT_NE(program.error().where.line, 0) << text << ": " << to_text(program.error());
    }
  }
  EXPECT_GT(refused, rounds / 2);
  EXPECT_TRUE(read(eight, "C = " + std::string(150, '(') + "A" + std::string(150, ')'), "A=4x4"));
  EXPECT_FALSE(read(eight, "C = " + std::string(100'000, '('), "A=4x4"));
  EXPECT_FALSE(read(eight, "C = " + std::string(100'000, '-') + "A", "A=4x4"));
}

}  // namespace
}  // namespace podsim::testing
