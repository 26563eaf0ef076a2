// Sharded programs on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using nlohmann::json;
using test::Folder;
using test::Outcome;
using ::testing::HasSubstr;

/// Arguments may hold blanks.
Outcome run(const std::vector<std::string>& arguments) { return test::run_words(arguments); }

json json_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  return outcome.status == exit_done ? json::parse(outcome.out) : json();
}

std::string collectives_of(const json& found) {
  std::string text;
  for (const json& one : found.at("collectives")) {
    text += (text.empty() ? "" : ", ") + one.at("kind").get<std::string>() + " " + one.at("tensor").get<std::string>() + " ";
    for (std::size_t a = 0; a < one.at("axes").size(); ++a) text += (a > 0 ? "," : "") + one.at("axes")[a].get<std::string>();
  }
  return text;
}

TEST(ShardedProgram, TheFastestWayDependsOnTheMachine) {
  const std::vector<std::string> asked{"show", "program", "--mesh", "x=4,y=2", "--program", "C = A @ B", "--shape", "A=16384x4096; B=4096x256", "--shard", "A=-,x; B=(x+y),-"};
  const auto on = [&](const std::string& machine, const std::string& slice, const std::string& choose) {
    std::vector<std::string> arguments = asked;
    arguments.insert(arguments.end(), {"--machine", machine, "--slice", slice, "--choose", choose});
    return collectives_of(json_of(arguments));
  };
  EXPECT_EQ(on("tpu_v4", "4x2", "time"), "all-gather B y, all-reduce C x");
  EXPECT_EQ(on("dgx_h100", "1x8", "time"), "all-reduce C x,y");
  EXPECT_EQ(on("tpu_v4", "4x2", "bytes"), on("dgx_h100", "1x8", "bytes"));
}

TEST(ShardedProgram, ProductsOfBlocksAreTheCollectiveGemmsToThePicosecond) {
  const auto run_of = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"run", "--machine", "tpu_v4", "--slice", "4x4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments);
  };
  const std::vector<std::pair<std::string, std::string>> products{{"C = A @ B", "os"}, {"C = A @ B.T", "ls"}, {"C = A.T @ B", "rs"}};
  for (const auto& [text, dataflow] : products) {
    const json program = run_of({"--program", text, "--shape", "A=4096x4096; B=4096x4096", "--shard", "A=row,col; B=row,col", "--out", "C=row,col"});
    const json gemm = run_of({"--gemm", "m=4096,n=4096,k=4096", "--algorithm", "collective", "--dataflow", dataflow});
    EXPECT_EQ(program.at("makespan_s"), gemm.at("makespan_s")) << text;
    EXPECT_EQ(program.at("link_bytes"), gemm.at("link_bytes")) << text;
    EXPECT_EQ(program.at("tasks"), gemm.at("tasks")) << text;
  }
}

TEST(ShardedProgram, CompareTellsWhatSlicingGains) {
  const Outcome outcome = run({"compare", "--machine", "tpu_v4", "--slice", "4x4", "--mesh", "x=4,y=4", "--program", "C = A @ B", "--shape", "A=32768x32768; B=32768x32768", "--shard",
                               "A=x,y; B=x,y", "--out", "C=x,y", "--slice-count", "4,8"});
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Slicing gains "));
  EXPECT_THAT(outcome.out, HasSubstr("meshslice"));
  EXPECT_THAT(outcome.out, HasSubstr("program by bytes"));
}

TEST(ShardedProgram, ChecksOfKnownData) {
  const json normalised = json_of({"check", "--mesh", "p=8", "--program", "Y = X / psum(X, p)", "--shape", "X=8", "--shard", "X=p", "--data", "arange"});
  const json& values = normalised.at("outputs").at(0).at("values");
  float sum = 0;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(values.at(static_cast<std::size_t>(i)).get<float>(), static_cast<float>(i) / 28.0F);
    sum += values.at(static_cast<std::size_t>(i)).get<float>();
  }
  EXPECT_EQ(sum, 1.0F);
  const json summed = json_of({"check", "--mesh", "p=8", "--program", "Y = psum(X, p)", "--shape", "X=8", "--shard", "X=p", "--data", "ones"});
  EXPECT_EQ(summed.at("outputs").at(0).at("values"), json::array({8.0}));
}

TEST(ShardedProgram, PartialSumsPaddingAndHostsAreProven) {
  for (const std::vector<std::string>& asked : std::vector<std::vector<std::string>>{
           {"--program", "C = A @ B", "--shape", "A=48x24; B=24x96", "--shard", "A=-,x; B=x,-", "--out", "C=unreduced(x):-,y"},
           {"--program", "C = A @ B + D", "--shape", "A=48x24; B=24x96; D=96", "--shard", "A=-,(x+y); B=(x+y),-", "--out", "C=unreduced(x+y):-,-"},
           {"--program", "C = A @ B", "--shape", "A=10x7; B=7x6", "--shard", "A=x,y; B=y,-", "--pad"},
           {"--program", "C = process_allgather(A)", "--shape", "A=48x24", "--shard", "A=y,x"},
           {"--program", "C = A @ B", "--shape", "A=8x16x4; B=8x4x16", "--shard", "A=x,-,y; B=x,y,-"},
           {"--program", "S = sum(A, 1); C = A / S.T", "--shape", "A=16x16", "--shard", "A=x,y"}}) {
    std::vector<std::string> arguments{"check", "--mesh", "x=4,y=2"};
    arguments.insert(arguments.end(), asked.begin(), asked.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, exit_done) << asked[1] << "\n" << outcome.out << outcome.err;
  }
}

TEST(ShardedProgram, ToAHostGoesOverItsOwnBandwidth) {
  const auto time = [](const std::string& rate) {
    return json_of({"run", "--machine", "ideal", "--slice", "4", "--mesh", "x=4", "--program", "C = process_allgather(A)", "--shape", "A=1024x1024", "--dtype", "f32", "--set",
                    "dcn.host_bandwidth=" + rate})
        .at("makespan_s")
        .get<double>();
  };
  EXPECT_DOUBLE_EQ(time("10GB/s"), 1024 * 1024 * 4 / 10e9);
  EXPECT_DOUBLE_EQ(time("20GB/s"), 1024 * 1024 * 4 / 20e9 + 0.0);
}

TEST(ShardedProgram, IsSavedRunAndCheckedAsOthersAre) {
  const Folder folder;
  const std::string saved = folder.file("program.textproto");
  const std::vector<std::string> asked{"--mesh", "x=4,y=2", "--program", "H = relu(X @ W1); Y = H @ W2", "--shape", "X=16x16; W1=16x32; W2=32x16", "--shard", "X=y,-; W1=-,x; W2=x,-"};
  std::vector<std::string> show{"show", "schedule", "-o", saved};
  show.insert(show.end(), asked.begin(), asked.end());
  ASSERT_EQ(run(show).status, exit_done) << run(show).err;
  const Outcome checked = run({"check", "--mesh", "x=4,y=2", "--schedule", saved});
  EXPECT_EQ(checked.status, exit_done) << checked.err << checked.out;
  EXPECT_THAT(checked.out, HasSubstr("H = relu(X @ W1)"));
  std::vector<std::string> direct{"run", "--machine", "tpu_v4", "--slice", "4x2", "--dtype", "bf16"};
  direct.insert(direct.end(), asked.begin(), asked.end());
  EXPECT_EQ(json_of({"run", "--machine", "tpu_v4", "--slice", "4x2", "--mesh", "x=4,y=2", "--schedule", saved}).at("makespan_s"), json_of(direct).at("makespan_s"));
}

TEST(ShardedProgram, ChainsTellTheirOrderAndShardings) {
  const std::vector<std::string> four{"show", "program", "--mesh", "x=4,y=2", "--program", "Y = A @ B @ C @ D", "--shape", "A=16x16; B=16x16; C=16x16; D=16x16", "--dtype", "f32", "--chain"};
  json found = json_of(four);
  EXPECT_EQ(found.at("received_bytes"), 1536);
  EXPECT_EQ(found.at("collectives_count"), 4);
  EXPECT_EQ(found.at("shards").size(), 4U);
  EXPECT_TRUE(found.at("per_iteration_bytes").is_null());
  std::vector<std::string> few = four;
  few.insert(few.end(), {"--minimise", "collectives"});
  found = json_of(few);
  EXPECT_EQ(found.at("received_bytes"), 2688);
  EXPECT_EQ(found.at("collectives_count"), 2);
  few = four;
  few.insert(few.end(), {"--replicate", "all"});
  EXPECT_EQ(json_of(few).at("collectives_count"), 0);
  EXPECT_THAT(run(few).out, HasSubstr("every operand is replicated"));
  few = four;
  few.insert(few.end(), {"--minimise", "time", "--machine", "tpu_v4", "--slice", "4x2"});
  EXPECT_GE(json_of(few).at("collectives_count"), 2);
}

TEST(ShardedProgram, BadInputIsPlaced) {
  const std::vector<std::string> base{"run", "--machine", "ideal", "--mesh", "x=4,y=2"};
  const auto told = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, exit_bad_input);
    return outcome.err;
  };
  EXPECT_THAT(told({"--program", "C = A @ B", "--shape", "A=4x4; B=4x4", "--shard", "A=x,-; B=(x+x),-"}), HasSubstr("--shard:1:"));
  EXPECT_EQ(told({"--program", "C = A @\nB +", "--shape", "A=4x4; B=4x4"}), "--program:1:8: expected an array, a number, a function or (, found the end of the line\n");
  EXPECT_THAT(told({"--program", "C = A @ B", "--shape", "A=6x4; B=4x4", "--shard", "A=x,-"}), HasSubstr("multiple of 4"));
  EXPECT_THAT(told({"--program", "C = A", "--shape", "A=4x4", "--devices", "9"}), HasSubstr("--devices"));
  EXPECT_EQ(told({"--program", "C = A", "--shape", "A=4x4", "--choose", "luck"}), "podsim: error: --choose: expected default, bytes or time, found \"luck\"\n");
  EXPECT_EQ(told({"--program", "C = A", "--shape", "A=4x4", "--minimise", "time"}), "podsim: error: --minimise: belongs to --chain\n");
  EXPECT_EQ(told({"--program", "C = A", "--shape", "A=4x4", "--algorithm", "wang"}),
            "podsim: error: --algorithm: expected fft=, lu= or solve= and an algorithm, as in fft=pencil,lu=block, found \"wang\"; --collectives names how collectives are lowered\n");
  const Folder folder;
  const std::string file = folder.file("bad.textproto", "format_version: 1\nstatement: \"C = A @ Q\"\nshape: \"A=4x4\"\n");
  EXPECT_THAT(told({"--program", file}), HasSubstr("bad.textproto:2:21: \"Q\" has no value here"));
  const std::string good = folder.file("good.textproto", "format_version: 1\nstatement: \"C = A @ A.T\"\nshape: \"A=4x4\"\nshard: \"A=x,-\"\n");
  EXPECT_EQ(json_of({"show", "program", "--mesh", "x=4,y=2", "--program", good, "--shape", "A=8x8", "--shard", "A=-,-"}).at("outputs").at(0).at("shape"), json::array({8, 8}));
}

}  // namespace
}  // namespace podsim
