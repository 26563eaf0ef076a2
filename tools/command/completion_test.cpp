// What may follow a command line: verbs, their options, and the values that these take.
#include "tools/command/completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/described_command.hpp"
#include "tools/command/test_command.hpp"
#include "topologies/machines.hpp"

namespace podsim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::vector<std::string> after(const std::string& line) {
  std::vector<std::string> words;
  for (const Completion& completion : completions(line).words) words.push_back(completion.word);
  return words;
}

TEST(Completion, OfVerbsAndOfWhatShowShows) {
  EXPECT_THAT(after("podsim "), IsSupersetOf({"run", "check", "show", "report", "help"}));
  EXPECT_THAT(after("podsim "), Not(Contains("complete"))) << "it is for programs";
  EXPECT_THAT(after("podsim c"), ElementsAre("check", "compare", "calibrate"));
  EXPECT_THAT(after("podsim help val"), ElementsAre("validate"));
  EXPECT_THAT(after("podsim show p"), ElementsAre("pipeline", "plan", "program"));
  EXPECT_THAT(after("podsim help show tim"), ElementsAre("timeline"));
  EXPECT_THAT(after("podsim"), IsEmpty());
  EXPECT_THAT(after(""), IsEmpty());
  EXPECT_THAT(after("podsim rum --"), IsEmpty());
}

TEST(Completion, OfTheOptionsOfEveryCommand) {
  for (const CommandName& command : command_names()) {
    std::string line = "podsim";
    for (const std::string& word : command.words) line += " " + word;
    const auto described = described_command(command.words);
    ASSERT_TRUE(described) << line;
    std::vector<std::string> options;
    for (const OptionSpec& spec : described->options) options.push_back("--" + spec.long_name());
    EXPECT_EQ(after(line + " --"), options);
    EXPECT_THAT(options, Contains("--help")) << line;
  }
}

TEST(Completion, AnOptionIsGivenOnceUnlessItMayBeRepeated) {
  EXPECT_THAT(after("podsim run --slice 4x4 --sl"), ElementsAre("--slice-count", "--slice-copies"));
  EXPECT_THAT(after("podsim run --set chip.hbm=1GB --se"), UnorderedElementsAre("--set", "--seq", "--seed"));
}

TEST(Completion, OfNamesAndOfFilesWhereFilesMayBeNamed) {
  EXPECT_EQ(after("podsim run --machine "), shipped_machines());
  EXPECT_THAT(after("podsim run --machine=tpu_v5"), ElementsAre("--machine=tpu_v5e", "--machine=tpu_v5p"));
  EXPECT_THAT(after("podsim compare --machine tpu_v4,tpu_v5"), ElementsAre("tpu_v4,tpu_v5e", "tpu_v4,tpu_v5p"));
  EXPECT_EQ(completions("podsim compare --machine tpu_v4,tpu_v5").files_behind, "tpu_v4,");
  EXPECT_THAT(after("podsim tune --workload llama3-8"), ElementsAre("llama3-8b-block", "llama3-8b-mlp"));
  EXPECT_THAT(after("podsim run --collective all-"), UnorderedElementsAre("all-gather", "all-reduce", "all-to-all"));
  EXPECT_THAT(after("podsim run --collective all-reduce --algorithm folded"), ElementsAre("folded-ring"));
  EXPECT_THAT(after("podsim run --gemm m=8,n=8,k=8 --algorithm folded"), IsEmpty());
  EXPECT_THAT(after("podsim run --gemm m=8,n=8,k=8 --algorithm mesh"), ElementsAre("meshslice"));
  EXPECT_THAT(after("podsim show pipeline --schedule zero"), ElementsAre("zero-bubble"));
  EXPECT_THAT(after("podsim run --schedule zero"), IsEmpty()) << "a file";
  EXPECT_EQ(completions("podsim run --schedule zero").files_behind, "");
  EXPECT_EQ(completions("podsim report ").files_behind, "");
  EXPECT_EQ(completions("podsim run --slice ").files_behind, std::nullopt);
  EXPECT_THAT(after("podsim validate tpu_v5p_pp"), ElementsAre("tpu_v5p_ppermute"));
  EXPECT_THAT(after("podsim run --format "), ElementsAre("table", "json", "csv"));
  EXPECT_THAT(after("podsim run --engine a"), ElementsAre("analytic"));
  EXPECT_THAT(after("podsim run --wrap "), ElementsAre("auto", "all", "none")) << "of auto|all|none|x,y";
}

TEST(Completion, OfAxesIsOfTheMeshOfTheLine) {
  EXPECT_THAT(after("podsim run --mesh x=4,y=2 --collective all-reduce --axis "), ElementsAre("x", "y"));
  EXPECT_THAT(after("podsim run --mesh=x=4,y=2 --collective all-reduce --axis y,"), ElementsAre("y,x"));
  EXPECT_THAT(after("podsim compare --mesh x=4,y=2 --mesh z=8 --axis "), ElementsAre("x", "y", "z"));
  EXPECT_THAT(after("podsim run --slice 4x4x4 --collective all-reduce --axis "), ElementsAre("row", "col", "depth"));
  EXPECT_THAT(after("podsim run --mesh row=4,"), ElementsAre("row=4,col=", "row=4,depth="));
  EXPECT_TRUE(completions("podsim run --mesh row=4,").open);
  EXPECT_THAT(after("podsim run --training gpt3-175b --mesh fs"), ElementsAre("fsdp="));
}

TEST(Completion, OfSlicesIsWhatTheMachineIsOfferedIn) {
  EXPECT_THAT(after("podsim run --machine tpu_v5e --slice "), ElementsAre("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"));
  EXPECT_THAT(after("podsim run --machine tpu_v4 --slice 4x4x"), IsSupersetOf({"4x4x4", "4x4x8", "4x4x16"}));
  EXPECT_THAT(after("podsim run --machine dgx_h100 --slice "), IsSupersetOf({"1x8", "2x8"}));
  EXPECT_THAT(after("podsim compare --machine tpu_v4 --slice 4x4x4,4x4x"), Contains("4x4x4,4x4x8"));
  EXPECT_THAT(after("podsim run --slice "), Contains("4x4")) << "of the machine ideal";
  EXPECT_THAT(after("podsim tune --machine tpu_v4 --slice 4x8x"), Contains("4x8x8"));
}

TEST(Completion, OfMachineValues) {
  EXPECT_THAT(after("podsim run --machine tpu_v4 --set link.l"), ElementsAre("link.latency="));
  EXPECT_THAT(after("podsim run --machine tpu_v4 --set 'link[x].b"), ElementsAre("link[x].bandwidth="));
  EXPECT_THAT(after("podsim calibrate --hold chip.hbm_"), ElementsAre("chip.hbm_bandwidth"));
  EXPECT_THAT(after("podsim run --machine /dev/zero --set link.l"), ElementsAre("link.latency=")) << "files are not read";
}

TEST(Completion, TheVerbOfShellsPrintsLines) {
  EXPECT_EQ(test::run_words({"complete", "podsim run --mesh co"}).out, ":open\ncol=\n");
  EXPECT_EQ(test::run_words({"complete", "podsim show plan pl"}).out, ":files\t\n");
  EXPECT_EQ(test::run_words({"complete", "podsim show time"}).out, "timeline\twhat a device of a recorded run does when\n");
  EXPECT_EQ(test::run_words({"complete"}).out, "");
}

}  // namespace
}  // namespace podsim
