// Transforms and linear systems on the command line: closed forms, comparisons, proofs, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using nlohmann::json;
using test::Outcome;
using ::testing::HasSubstr;

Outcome command(const std::vector<std::string>& arguments, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = arguments;
  all.insert(all.end(), more.begin(), more.end());
  return test::run_words(all);
}
json parsed(const std::vector<std::string>& arguments, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = arguments;
  all.insert(all.end(), more.begin(), more.end());
  const Outcome outcome = command(all, {"--format", "json"});
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  return outcome.status == exit_done ? json::parse(outcome.out) : json();
}

const std::vector<std::string> cube{"--mesh", "x=16,y=16", "--slice", "16x16", "--program", "Y = fft(X)", "--shape", "X=1024x1024x1024,c64", "--shard", "X=x,y,-", "--order", "transposed"};

/// Two ring all-to-alls of 32 MiB blocks: 32 steps of 2 MiB at 100 GB/s each way.
TEST(KernelCommands, APencilOnTheIdealMachineIsTwoAllToAlls) {
  const json run = parsed({"run", "--machine", "ideal", "--collectives", "ring"}, cube);
  EXPECT_NEAR(run.at("makespan_s").get<double>(), 1.342177280e-3, 1e-12);
  EXPECT_EQ(run.at("contains_all_gather"), false);
  EXPECT_EQ(run.at("received_bytes"), 2 * 33554432 / 16 * 15);
  EXPECT_EQ(run.at("kernels").at(0).at("algorithm"), "pencil");
  EXPECT_EQ(run.at("outputs").at(0).at("dtype"), "c64");
}

TEST(KernelCommands, NaturalOrderCostsAsManyAllToAllsAgain) {
  std::vector<std::string> natural{"run", "--machine", "ideal", "--collectives", "ring"};
  natural.insert(natural.end(), cube.begin(), cube.end() - 2);
  EXPECT_NEAR(parsed(natural).at("makespan_s").get<double>(), 2 * 1.342177280e-3, 1e-12);
}

TEST(KernelCommands, ComparisonsHaveAllAlgorithmsInOneTable) {
  const Outcome outcome = command({"compare", "--machine", "tpu_v4", "--algorithms", "naive,pencil"}, cube);
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  for (const char* text : {"fft=pencil", "fft=naive", "received", "all-gather", "peak memory", "exposed comm"}) EXPECT_THAT(outcome.out, HasSubstr(text));
  const json rows = parsed({"compare", "--machine", "tpu_v4"}, cube).at("rows");
  EXPECT_EQ(rows.size(), 2U) << "slab and four-step do not suit";
  EXPECT_THAT(command({"compare", "--machine", "tpu_v4", "--algorithms", "pencils"}, cube).err, HasSubstr("did you mean \"pencil\""));
}

TEST(KernelCommands, ComparisonsOfSeveralFunctionsCombineTheirAlgorithms) {
  const std::vector<std::string> both{"compare", "--machine", "tpu_v4", "--slice", "4x2", "--mesh", "x=4,y=2", "--program", "Y = fft(X); P, L, U = lu(A)", "--shape", "X=16x16x16,c64; A=256x256",
                                      "--shard", "X=x,-,-; A=x,y", "--block", "16"};
  const auto ways = [&](const std::vector<std::string>& more) {
    std::vector<std::string> found;
    const json compared = parsed(both, more);
    for (const json& row : compared.at("rows")) found.push_back(row.at("algorithm"));
    std::sort(found.begin(), found.end());
    return found;
  };
  using Ways = std::vector<std::string>;
  const Ways every{"fft=naive,lu=block", "fft=naive,lu=naive", "fft=pencil,lu=block", "fft=pencil,lu=naive", "fft=slab,lu=block", "fft=slab,lu=naive"};
  EXPECT_EQ(ways({}), (Ways{"fft=naive,lu=naive", "fft=slab,lu=block"})) << "what run does, and what a compiler does";
  EXPECT_EQ(ways({"--algorithms", "all"}), every);
  EXPECT_EQ(ways({"--algorithms", "fft=pencil,lu=naive"}), (Ways{"fft=pencil,lu=naive"}));
  EXPECT_EQ(ways({"--algorithms", "fft=pencil,lu=naive,fft=slab,naive"}), (Ways{"fft=naive,lu=naive", "fft=pencil,lu=naive", "fft=slab,lu=naive"}));
  EXPECT_EQ(ways({"--algorithms", "fft=pencil"}), (Ways{"fft=pencil,lu=block"})) << "lu as in run";
  EXPECT_EQ(ways({"--algorithms", "pencil,slab,block,lu=block"}), (Ways{"fft=pencil,lu=block", "fft=slab,lu=block"})) << "no row twice";
  EXPECT_THAT(command(both, {"--algorithms", "slab,block"}).out, HasSubstr("block: the same algorithms as slab: fft=slab,lu=block"));
  const auto told = [&](const std::string& algorithms) {
    const Outcome outcome = command(both, {"--algorithms", algorithms});
    EXPECT_EQ(outcome.status, exit_bad_input) << algorithms;
    return outcome.err;
  };
  EXPECT_EQ(told("pencils"), "podsim: error: --algorithms: there is no algorithm \"pencils\" of fft or lu, did you mean \"pencil\"?; expected pencil, slab, four-step, naive or block\n");
  EXPECT_EQ(told("fft=block"), "podsim: error: --algorithms: there is no algorithm \"block\" of fft; expected pencil, slab, four-step or naive\n");
  EXPECT_THAT(told("ftf=slab"), HasSubstr("expected fft=, lu= or solve= and an algorithm, as in fft=pencil,lu=block, found \"ftf=slab\", did you mean \"fft\"?"));
  EXPECT_THAT(told("solve=naive"), HasSubstr("\"solve=naive\" belongs to solve, which the program does not have"));
  EXPECT_THAT(told("fft=slab,fft=slab"), HasSubstr("\"fft=slab\" is given twice"));
}

TEST(KernelCommands, CsvHasWhatIsReceivedAndGathered) {
  const auto lines = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.status, exit_done) << outcome.err;
    std::vector<std::string> all;
    std::istringstream text{outcome.out};
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  };
  const std::vector<std::string> run = lines(command({"run", "--machine", "ideal", "--format", "csv"}, cube));
  ASSERT_EQ(run.size(), 2U);
  EXPECT_THAT(run[0], ::testing::EndsWith(",received_bytes,contains_all_gather"));
  EXPECT_THAT(run[1], ::testing::EndsWith(",62914560,false"));
  const std::vector<std::string> compared = lines(command({"compare", "--machine", "ideal", "--algorithms", "naive,pencil", "--format", "csv"}, cube));
  ASSERT_EQ(compared.size(), 3U);
  EXPECT_EQ(compared[0], run[0]);
  EXPECT_THAT(compared[1], ::testing::EndsWith(",62914560,false"));
  EXPECT_THAT(compared[2], ::testing::EndsWith(",true"));
  const std::vector<std::string> product =
      lines(command({"run", "--machine", "ideal", "--slice", "4", "--program", "C = A @ B", "--shape", "A=8x8; B=8x8", "--format", "csv"}));
  EXPECT_THAT(product[0], ::testing::Not(HasSubstr("received_bytes"))) << "of transforms and linear systems only";
}

TEST(KernelCommands, ProofsNameWhatTheyMeasure) {
  const std::vector<std::string> lu{"check", "--mesh", "x=3,y=3", "--program", "P, L, U = lu(A)", "--shape", "A=512x512", "--shard", "A=x,y", "--block", "32"};
  const Outcome outcome = command(lu);
  EXPECT_EQ(outcome.status, exit_done) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("as relative residual (allowed 1e-05)"));
  const Outcome singular = command({"check", "--mesh", "x=4", "--program", "P, L, U = lu(A)", "--shape", "A=64x64", "--shard", "A=x,-", "--data", "ones"});
  EXPECT_EQ(singular.status, exit_false);
  EXPECT_THAT(singular.out, HasSubstr("matrix is singular: column 1 is zero below the diagonal"));
}

/// What a compiler does with a system whose rows are divided, and eight systems apart, agree.
TEST(KernelCommands, GatheredAndBatchedSystems) {
  const json gathered = parsed({"check", "--mesh", "x=8", "--program", "v = solve(A, b)", "--shape", "A=16x16; b=16", "--shard", "A=x,-; b=x", "--algorithm", "solve=naive"});
  EXPECT_EQ(gathered.at("ok"), true);
  const json run = parsed({"run", "--machine", "tpu_v4", "--slice", "8x1", "--mesh", "x=8", "--program", "v = solve(A, b)", "--shape", "A=16x16; b=16", "--shard", "A=x,-; b=x", "--algorithm",
                           "solve=naive"});
  EXPECT_EQ(run.at("contains_all_gather"), true);
  const std::vector<std::string> apart{"--mesh", "x=8", "--program", "v = solve(A, b)", "--shape", "A=8x16x16; b=8x16", "--shard", "A=x,-,-; b=x,-"};
  EXPECT_EQ(parsed({"check"}, apart).at("ok"), true);
  const json batched = parsed({"run", "--machine", "tpu_v4", "--slice", "8x1"}, apart);
  EXPECT_EQ(batched.at("received_bytes"), 0);
  EXPECT_EQ(batched.at("link_bytes"), 0.0);
  // A small one is its launch and its pivots, one after the other, and the FLOPs of all devices are told.
  const json small = parsed({"run", "--machine", "dgx_h100:spec", "--slice", "1x8"}, apart);
  EXPECT_NEAR(small.at("makespan_s").get<double>(), 5e-6 + 16 * 2.1e-6, 1e-12);
  EXPECT_NEAR(small.at("flops").get<double>(), 8 * (2.0 / 3 * 16 * 16 * 16 + 2 * 16 * 16), 16);
}

TEST(KernelCommands, WhatIsWrongIsPlaced) {
  struct Case {
    std::vector<std::string> arguments;
    std::string error;
  };
  const auto program = [](const std::string& text, const std::string& shapes, const std::string& shards, std::vector<std::string> more = {}) {
    std::vector<std::string> all{"check", "--mesh", "x=4", "--program", text, "--shape", shapes, "--shard", shards};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  for (const Case& wrong : std::vector<Case>{
           {program("Z = X @ X", "X=64x64,c64", "X=x,-"), "--program:1:7: @ takes f32 or bf16; X is c64"},
           {program("Y = fft(X)", "X=64x64,c64", "X=-,x"), "expected it whole: reshard to x,-"},
           {program("P, L, U = lu(A)", "A=64x32", "A=x,-"), "--program:1:11: expected a square matrix in lu, found 64x32"},
           {program("P, L, U = lu(A)", "A=64x64", "A=x,-", {"--block", "24"}), "multiple"},
           {program("P, L, U = lu(A)", "A=512x512", "A=x,-", {"--dtype", "bf16"}), "lu takes f32; A is bf16"},
           {program("Y = fft(X)", "X=0x64", "X=x,-"), "--shape:1:3: expected extents as in 48x24: expected a whole number from 1"},
           {program("Y = fft(X)", "X=64x64", "X=x,-", {"--look-ahead", "1"}), "belongs to lu and solve, which the program does not have"},
           {program("Y = fft(X)", "X=64x64", "X=x,-", {"--algorithm", "fft=pensil"}), "did you mean \"pencil\"?; expected pencil, slab, four-step or naive"},
           {program("Y = fft(X)", "X=64x64", "X=x,-", {"--algorithm", "fft=block"}), "there is no algorithm \"block\" of fft; expected pencil, slab, four-step or naive"},
           {program("Y = fft(X)", "X=64x64", "X=x,-", {"--algorithm", "lu=block"}), "belongs to lu, which the program does not have"},
           {program("Y = fft(X)", "X=64x64", "X=x,-", {"--order", "reverse"}), "expected transposed or natural, found \"reverse\""},
           {program("Y = fft(X)", "X=64x60", "X=x,-", {"--overlap", "7"}), "multiple"},
           {program("Y = fft(X)", "X=65x64", "X=x,-"), "must be a multiple of 4, got 65"},
       }) {
    const Outcome outcome = command(wrong.arguments);
    EXPECT_EQ(outcome.status, exit_bad_input) << wrong.error;
    EXPECT_THAT(outcome.err, HasSubstr(wrong.error));
  }
}

/// Zeros in real space, only where asked for: the transform is that of the larger array.
TEST(KernelCommands, PaddingIsOfTheArrayThatIsTransformed) {
  const json padded = parsed({"check", "--mesh", "x=4", "--program", "Y = fft(X)", "--shape", "X=30x62", "--shard", "X=x,-", "--pad"});
  EXPECT_EQ(padded.at("ok"), true);
  const json shown = parsed({"show", "program", "--mesh", "x=4", "--program", "Y = fft(X)", "--shape", "X=30x62", "--shard", "X=x,-", "--pad"});
  EXPECT_GT(shown.at("padded_bytes"), 0);
}

}  // namespace
}  // namespace podsim
