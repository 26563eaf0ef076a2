// `podsim calibrate`: from files of measurements to a machine that runs say is fitted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::HasSubstr;

const std::string permutes = std::string{PODSIM_SOURCE_DIR} + "/validation/datasets/tpu_v5p_ppermute/observations.csv";
const std::string on_v5p = " --base tpu_v5p --slice 2x2x1 --mesh row=4 ";

TEST(Calibrate, JsonHasWhatTheContractNames) {
  const auto json = json_of("calibrate " + permutes + on_v5p);
  for (const char* key : {"parameters", "median_abs_error", "p95_abs_error", "undetermined"}) EXPECT_TRUE(json.contains(key)) << key;
  ASSERT_FALSE(json["parameters"].empty());
  for (const char* key : {"path", "value", "unit", "low", "high"}) EXPECT_TRUE(json["parameters"][0].contains(key)) << key;
  ASSERT_FALSE(json["undetermined"].empty());
  EXPECT_FALSE(json["undetermined"][0]["probe"].get<std::string>().empty());
}

TEST(Calibrate, TheMachineItWritesSaysWhatItWasFittedTo) {
  const Folder folder;
  const std::string file = folder.file("fitted.textproto");
  ASSERT_EQ(podsim("calibrate " + permutes + on_v5p + "--dataset permutes -o " + file).status, exit_done);
  const auto run = json_of("run --machine " + file + " --slice 2x2x1 --collective permute --axis row --mesh row=4 --shift 1 --bytes 64MiB");
  EXPECT_EQ(run["trust"]["level"], "fitted");
  EXPECT_EQ(run["trust"]["dataset"], "permutes");
  EXPECT_TRUE(run["trust"]["error"].is_number());
}

TEST(Calibrate, TrustIsOfWhatWasHeldBackWhereThereIsEnough) {
  const std::string many = "validation/datasets/a100_8_nccl/observations.csv --base dgx_a100 --slice 1x8";
  const Folder folder;
  const std::string file = folder.file("fitted.textproto");
  const auto json = json_of("calibrate " PODSIM_SOURCE_DIR "/" + many);
  EXPECT_GT(json["held_back"]["median_abs_error"], json["median_abs_error"]);
  const Outcome table = podsim("calibrate " PODSIM_SOURCE_DIR "/" + many + " -o " + file);
  EXPECT_THAT(table.out, HasSubstr("of what was held back, every other observation in turn: median error "));
  const auto run = json_of("run --machine " + file + " --slice 1x8 --collective all-reduce --bytes 64MiB");
  EXPECT_NEAR(run["trust"]["error"].get<double>(), json["held_back"]["median_abs_error"].get<double>(), 1e-4);
  EXPECT_TRUE(json_of("calibrate " + permutes + on_v5p)["held_back"].is_null());
  EXPECT_THAT(podsim("calibrate " + permutes + on_v5p).out, HasSubstr("nothing could be held back"));
}

TEST(Calibrate, SaysOnceWhatGoesWithTheSameCollective) {
  const Outcome table = podsim("calibrate " + permutes + on_v5p + "--set software.launch=1us");
  EXPECT_THAT(table.out, HasSubstr("software.launch[all-gather], software.launch[reduce-scatter], software.launch[all-reduce]"));
  EXPECT_THAT(table.out, HasSubstr("not observed: it goes with software.launch[permute]"));
}

TEST(Calibrate, ConvertsWithoutFitting) {
  const Outcome outcome = podsim("calibrate " + permutes + " --observations-only --quiet");
  EXPECT_EQ(outcome.status, exit_done) << outcome.err;
  EXPECT_EQ(outcome.out.substr(0, 24), "op,devices,bytes,seconds");
}

TEST(Calibrate, AHeldValueStays) {
  const auto json = json_of("calibrate " + permutes + on_v5p + "--hold link[x].bandwidth --hold link[y].bandwidth");
  for (const auto& parameter : json["parameters"]) EXPECT_THAT(parameter["path"].get<std::string>(), ::testing::Not(HasSubstr("].bandwidth")));
}

TEST(Calibrate, SaysWhatIsWrong) {
  const Folder folder;
  const std::string bad = folder.file("bad.csv", "op,devices,bytes,seconds\nall-gather,4,1024,-1\n");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"calibrate --base tpu_v4 --slice 4x4", "expected files of observations, found none"},
      {"calibrate nowhere.csv --base tpu_v4 --slice 4x4", "nowhere.csv"},
      {"calibrate " + bad + " --base tpu_v4 --slice 4x4", "bad.csv:2:"},
      {"calibrate " + bad + " --base tpu_v4 --slice 4x4", "--from names other forms than csv"},
      {"calibrate --from nccl-tests --op matmul x.txt", "expected a collective of nccl-tests"},
      {"calibrate --from nccl-tests --op all_gather nowhere.txt", "nowhere.txt"},
      {"calibrate " + permutes, "--base is missing"},
      {"calibrate " + permutes + on_v5p + "--from pcap", "pcap"},
      {"calibrate " + permutes + on_v5p + "--machine tpu_v4", "calibrate begins with --base"},
      {"calibrate " + permutes + on_v5p + "--prior link.bandwith=0.1", "link.bandwith"},
      {"calibrate " + permutes + on_v5p + "--prior link.bandwidth=-1", "expected a relative deviation above 0"},
      {"calibrate " + permutes + on_v5p + "--format csv", "calibrate prints table or json"},
  };
  for (const auto& [line, message] : cases) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << line;
  }
}

}  // namespace
}  // namespace podsim
