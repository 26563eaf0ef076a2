#include "tools/command/kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tools/command/scenario_options.hpp"
#include "tools/command/test_command.hpp"
#include "tools/sweep/points.hpp"

namespace podsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

std::string out(const Words& words) { return test::without_wall_time(test::run_words(words).out); }

TEST(Kinds, WordsBehindAVerbAreTheOptionsThatTheyStandFor) {
  const std::vector<std::pair<Words, Words>> same{
      {{"run", "gemm", "512,512,512", "--machine", "tpu_v4", "--slice", "2x2", "--algorithm", "collective"},
       {"run", "--gemm", "512,512,512", "--machine", "tpu_v4", "--slice", "2x2", "--algorithm", "collective"}},
      {{"run", "collective", "all_reduce", "--bytes", "1M", "--machine", "tpu_v4", "--slice", "2x2"}, {"run", "--collective", "all-reduce", "--bytes", "1M", "--machine", "tpu_v4", "--slice", "2x2"}},
      {{"run", "allreduce", "--bytes", "1M", "--machine", "tpu_v4", "--slice", "2x2"}, {"run", "--collective", "all-reduce", "--bytes", "1M", "--machine", "tpu_v4", "--slice", "2x2"}},
      {{"run", "train", "llama3-8b", "--machine", "h100", "--slice", "1x8", "--batch", "8"}, {"run", "--training", "llama3-8b", "--machine", "h100", "--slice", "1x8", "--batch", "8"}},
      {{"run", "llama3-8b", "--machine", "h100", "--slice", "1x8", "--batch", "8"}, {"run", "--training", "llama3-8b", "--machine", "h100", "--slice", "1x8", "--batch", "8"}},
      {{"compare", "all-reduce,all-gather", "--bytes", "64K", "--machine", "tpu_v4", "--slice", "2x2"}, {"compare", "--collective", "all-reduce,all-gather", "--bytes", "64K", "--machine", "tpu_v4", "--slice", "2x2"}},
      {{"run", "all_reduce", "1M", "tpu_v4:2x2"}, {"run", "--collective", "all-reduce", "--bytes", "1M", "--machine", "tpu_v4", "--slice", "2x2"}},
      {{"run", "all-reduce", "v5e-4", "65536", "--algorithm", "ring"}, {"run", "--collective", "all-reduce", "--bytes", "65536", "--machine", "tpu_v5e", "--slice", "2x2", "--algorithm", "ring"}},
      {{"run", "gemm", "512", "512", "1024", "tpu_v4:2x2", "--algorithm", "collective"}, {"run", "--gemm", "m=512,n=512,k=1024", "--machine", "tpu_v4", "--slice", "2x2", "--algorithm", "collective"}},
      {{"run", "gemm", "512x512x1024", "tpu_v4:2x2", "--algorithm", "collective"}, {"run", "--gemm", "m=512,n=512,k=1024", "--machine", "tpu_v4", "--slice", "2x2", "--algorithm", "collective"}},
      {{"run", "llama3-8b", "h100:1x8", "--batch", "8"}, {"run", "--training", "llama3-8b", "--machine", "h100", "--slice", "1x8", "--batch", "8"}},
      {{"compare", "all-reduce", "8K..1M:16", "h100:1x8", "--algorithm", "ring"}, {"compare", "--collective", "all-reduce", "--bytes", "8KiB,128KiB", "--machine", "h100", "--slice", "1x8", "--algorithm", "ring"}},
      {{"compare", "all-reduce", "-b", "8K", "-e", "1M", "-f", "16", "--machine", "h100:1x8", "--algorithm", "ring"}, {"compare", "--collective", "all-reduce", "--bytes", "8KiB,128KiB", "--machine", "h100", "--slice", "1x8", "--algorithm", "ring"}},
      {{"run", "psum", "64", "KiB", "v5litepod-4", "--algorithm", "ring"}, {"run", "--collective", "all-reduce", "--bytes", "64KiB", "--machine", "tpu_v5e", "--slice", "2x2", "--algorithm", "ring"}},
      {{"run", "psum_scatter", "64KiB", "v5e-4", "--algorithm", "ring"}, {"run", "--collective", "reduce-scatter", "--bytes", "64KiB", "--machine", "tpu_v5e", "--slice", "2x2", "--algorithm", "ring"}},
      {{"run", "ppermute", "64KiB", "v5e-4", "--axis", "row", "--shift", "1"}, {"run", "--collective", "permute", "--bytes", "64KiB", "--machine", "tpu_v5e", "--slice", "2x2", "--axis", "row", "--shift", "1"}},
      {{"check", "gemm", "64,64,64", "--mesh", "row=2,col=2", "--algorithm", "summa", "--quiet"}, {"check", "--gemm", "64,64,64", "--mesh", "row=2,col=2", "--algorithm", "summa", "--quiet"}},
  };
  for (const auto& [words, options] : same) {
    const auto left = test::run_words(words), right = test::run_words(options);
    EXPECT_EQ(left.status, 0) << left.err;
    EXPECT_EQ(left.status, right.status);
    EXPECT_EQ(left.err, right.err);
    EXPECT_FALSE(left.out.empty());
    if (words.front() == "run") {
      EXPECT_EQ(test::without_wall_time(left.out), test::without_wall_time(right.out)) << words[1];  // comparisons name their variants as they were asked for; checks print times
    }
  }
}

TEST(Kinds, AWordThatSaysNothingIsNotTaken) {
  EXPECT_THAT(test::podsim("run all-reduce 1M nowhere").err, HasSubstr("expected options only, found \"nowhere\""));
  EXPECT_THAT(test::podsim("run all-reduce 1M 2M h100:1x8").err, HasSubstr("expected options only, found \"2M\""));
  EXPECT_THAT(test::podsim("run llama3-8b 1M h100:1x8").err, HasSubstr("expected options only, found \"1M\"")) << "a step has no bytes";
  EXPECT_THAT(test::podsim("run all-reduce 1M h100:1x8 --machine tpu_v4").err, HasSubstr("option '--machine' cannot be specified more than once"));
}

TEST(Kinds, WordsOfOtherProgramsNameWhatIsMeant) {
  const std::string topology = PODSIM_SOURCE_DIR "/topologies/nccl/testdata/ibm_h100.xml";
  const std::vector<std::pair<std::string, std::string>> meant{{"run all-reduce 1M h100:1x8 --json", "did you mean `--format json`?"},
                                                               {"run all-reduce 1M h100 --gpus 8", "did you mean `--slice 1x8`?"},
                                                               {"run llama3-8b h100:1x8 --batch 8 --fsdp 8", "did you mean `--mesh fsdp=8`?"},
                                                               {"run all-reduce 1M h100:1x8 --profile t.json", "did you mean `--trace`?"},
                                                               {"run all-reduce 1M 8xH100", "did you mean `H100:8`?"},
                                                               {"run all-reduce 1M mi300x:1x8", "unknown machine \"mi300x\", expected one of "},
                                                               {"run all-reduce 1M topo.xml", "did you mean `--topology topo.xml`?"},
                                                               {"run all-reduce 1M --topology " + topology, "--machine is missing; the GPUs of " + topology + " are those of dgx_h100"},
                                                               {"run all-reduce 1M h100:1x8 --algorithm nvls", "there is no collective algorithm \"nvls\", expected one of "},
                                                               {"all_reduce_perf -b 8 -e 128M", "did you mean `podsim compare all-reduce -b 8 -e 128M -f 2 h100:1x8`?"},
                                                               {"all-reduce 1M h100:1x8", "did you mean `podsim run all-reduce`?"},
                                                               {"explain all-reduce 1M", "did you mean `podsim run ... --explain`?"}};
  for (const auto& [line, message] : meant) {
    const auto outcome = test::podsim(line);
    EXPECT_EQ(outcome.status, 2) << line;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << line;
  }
}

TEST(Kinds, MeasurementsMayBeFollowedByTheirMachine) {
  const std::string log = PODSIM_SOURCE_DIR "/validation/calibration/importers/testdata/rccl_tests.json";
  const auto words = test::run_words({"validate", log, "h100:1x4", "--format", "json"}), options = test::run_words({"validate", "--observations", log, "--machine", "h100", "--slice", "1x4", "--format", "json"});
  EXPECT_EQ(words.status, options.status);
  EXPECT_EQ(words.out, options.out);
  EXPECT_FALSE(words.out.empty()) << words.err;
}

TEST(Kinds, ARangeOfSizesIsThatOfNcclTests) {
  const auto asked = [](const std::string& options) {
    std::vector<std::int64_t> found;
    const auto json = test::json_of("compare all-reduce --machine h100:1x8 --algorithm ring " + options);
    for (const auto& row : json["rows"]) found.push_back(row["bytes"].get<std::int64_t>());
    return found;
  };
  const auto sizes = [&asked](const std::string& bytes) { return asked("--bytes " + bytes); };
  EXPECT_EQ(sizes("1K..16K"), (std::vector<std::int64_t>{1024, 2048, 4096, 8192, 16384}));
  EXPECT_EQ(sizes("1600..6500"), (std::vector<std::int64_t>{1600, 3200, 6400}));
  EXPECT_EQ(sizes("1M..1M,64K"), (std::vector<std::int64_t>{1 << 20, 1 << 16}));
  EXPECT_EQ(asked("-b 16M"), (std::vector<std::int64_t>{1 << 24, 1 << 25})) << "up to 32M where no end is given";
  EXPECT_EQ(sizes("1K..1M:32"), (std::vector<std::int64_t>{1 << 10, 1 << 15, 1 << 20}));
  for (const auto& [bytes, told] : {std::pair{"8..4", "expected FROM..TO with FROM above 0 and at most TO, found \"8..4\""}, {"0..4", "FROM above 0"}, {"8..64:1", "expected a whole number from 2 to 1024, got \"1\""},
                                    {"8..", "expected FROM..TO"}, {"..8", "expected FROM..TO"}, {"8..64x", "got \"64x\""}})
    EXPECT_THAT(test::podsim(std::string{"compare all-reduce --machine h100:1x8 --bytes "} + bytes).err, HasSubstr(told)) << bytes;
  EXPECT_THAT(test::podsim("run all-reduce --machine h100:1x8 --bytes 8..16").err, HasSubstr("expected one amount of data, found the range \"8..16\"; `podsim compare` takes several"));
}

TEST(Kinds, AMachineMaySayItsSlice) {
  const auto asked = [](const std::string& machine, const std::string& slice) {
    Words words{"run", "all-reduce", "--bytes", "1M", "--machine", machine};
    if (!slice.empty()) words.insert(words.end(), {"--slice", slice});
    return out(words);
  };
  EXPECT_EQ(asked("tpu_v4:2x2x4", ""), asked("tpu_v4", "2x2x4"));
  EXPECT_EQ(asked("v5p-512", ""), asked("tpu_v5p", "v5p-512"));
  EXPECT_EQ(asked("h100:64", ""), asked("dgx_h100", "8x8")) << "chips: the first slice of so many that is offered";
  EXPECT_THAT(test::run_words({"run", "all-reduce", "--bytes", "1M", "--machine", "h100:no"}).err, HasSubstr("unknown machine \"h100:no\""));
}

TEST(Kinds, AxesOfATrainingStepAreCalledAsFrameworksCallThem) {
  const Words step{"run", "training", "llama3-8b", "--machine", "h100:2x8", "--batch", "16", "--remat", "full", "--mesh"};
  const auto on = [&](const std::string& mesh) {
    Words words = step;
    words.push_back(mesh);
    return out(words);
  };
  EXPECT_EQ(on("dp=2,tp=8"), on("data=2,col=8"));
  EXPECT_EQ(on("pipeline=2,model=8"), on("stage=2,col=8"));
  EXPECT_FALSE(on("dp=2,tp=8").empty());
}

TEST(Kinds, HelpOfAKindHasItsOptionsAndNoOthers) {
  const std::string training = out({"help", "run", "training"});
  EXPECT_THAT(training, StartsWith("usage: podsim run training NAME|FILE.textproto "));
  EXPECT_THAT(training, HasSubstr("\n  --microbatches M "));
  EXPECT_THAT(training, Not(HasSubstr("\n  --axis ")));
  EXPECT_THAT(training, HasSubstr("\n  podsim run training llama3-70b "));
  EXPECT_EQ(training, out({"run", "train", "--help"}));
  const std::string collective = out({"help", "run", "all-reduce"});
  EXPECT_THAT(collective, HasSubstr("\n  --axis NAME"));
  EXPECT_THAT(collective, Not(HasSubstr("\n  --microbatches ")));
}

TEST(Kinds, HelpIsAScreenWideAndAllHasEveryOption) {
  for (const Words& words : {Words{"help", "run"}, {"help", "run", "training"}, {"help", "run", "all"}, {"help", "compare"}, {"help", "tune"}, {"help", "check", "gemm"}}) {
    std::istringstream lines{out(words)};
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
  const std::string all = out({"help", "run", "all"});
  for (const FieldKind& field : scenario_fields())
    if (field.group != FieldKind::Group::check) {
      EXPECT_THAT(all, HasSubstr("\n  --" + option_of(field.name))) << field.name;
    }
}

TEST(Kinds, AFirstWordThatIsNoneNamesTheNearOnes) {
  EXPECT_THAT(test::run_words({"run", "trainin"}).err, HasSubstr("found \"trainin\", did you mean \"training\"?"));
  EXPECT_EQ(test::run_words({"run", "trainin"}).status, 2);
  EXPECT_THAT(test::run_words({"run", "tpu_v4"}).err, HasSubstr("did you mean `--machine tpu_v4`?"));
}

}  // namespace
}  // namespace podsim
