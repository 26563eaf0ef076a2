// The verb validate: what it prints and writes, and when it fails.
#include <gmock/gmock.h>

#include "tools/command/test_command.hpp"

namespace podsim::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string h100 = "validate h100_collective_matmul";

TEST(ValidateVerb, JsonHasWhatTheContractNames) {
  const auto json = json_of(h100);
  EXPECT_THAT(keys(json), ElementsAre("datasets", "rungs", "pools", "all_but_sizes", "ok"));
  ASSERT_EQ(json["datasets"].size(), 1U);
  const auto& dataset = json["datasets"][0];
  EXPECT_THAT(keys(dataset), ElementsAre("name", "rows", "cases", "median_abs_error", "p95_abs_error", "bound", "ok"));
  ASSERT_EQ(dataset["rows"].size(), 4U);
  for (const auto& row : dataset["rows"]) {
    for (const char* key : {"op", "devices", "bytes", "measured_s", "predicted_s", "error", "schedule", "case", "rung"})
      EXPECT_TRUE(row.contains(key)) << key;
    EXPECT_NEAR(row["error"].get<double>(), row["predicted_s"].get<double>() / row["measured_s"].get<double>() - 1, 1e-12);
  }
  EXPECT_EQ(dataset["rows"][0]["schedule"], "overlapped");
  EXPECT_EQ(json["rungs"]["composite"]["rows"], 4);
  EXPECT_EQ(json["rungs"]["other sizes"]["rows"], 0);
  EXPECT_EQ(json["all_but_sizes"]["rows"], 4);
}

TEST(ValidateVerb, TheCollectiveMatmulsOfH100AreWithinEightPercent) {
  const auto json = json_of(h100);
  for (const auto& row : json["datasets"][0]["rows"]) EXPECT_LT(std::abs(row["error"].get<double>()), 0.08) << row.dump();
}

TEST(ValidateVerb, TableHasALinePerCaseAndRowsIfAsked) {
  const Outcome table = podsim(h100);
  EXPECT_EQ(table.status, exit_done);
  EXPECT_THAT(table.out, HasSubstr("overlapped, from two devices"));
  EXPECT_THAT(table.out, HasSubstr("(4 rows)"));
  EXPECT_EQ(table.out.find("all-gather 8 MiB"), std::string::npos);
  EXPECT_THAT(podsim(h100 + " --rows").out, HasSubstr("all-gather 8 MiB with 4096x4096x4096 on 4"));
  const Outcome csv = podsim(h100 + " --format csv");
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 5);
}

TEST(ValidateVerb, IsTheSameWithAnyNumberOfThreads) {
  EXPECT_EQ(podsim("validate h100_collective_matmul a100_gemm --format json --threads 1").out,
            podsim("validate h100_collective_matmul a100_gemm --format json --threads 3").out);
}

TEST(ValidateVerb, StatusIsOneAboveTheBoundOfADataset) {
  const Folder folder;
  const std::string rows = "op,devices,bytes,seconds,schedule\nall-gather,4,1048576,1,plain\n";
  const std::string observations = folder.file("observations.csv", rows);
  const std::string study = folder.file("validation.textproto",
                                        "format_version: 1 machine: \"ideal\" system { slice: \"4\" }\n"
                                        "case { name: \"c\" rung: other_scale bound { median: 0.1 p95: 0.1 } }\n");
  const Outcome outcome = podsim("validate " + observations.substr(0, observations.rfind('/')));
  EXPECT_EQ(outcome.status, exit_false) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("above its bound: "));
}

TEST(ValidateVerb, ObservationsOfOnesOwnArePredictedOnAMachine) {
  const Folder folder;
  const std::string csv = folder.file("o.csv", "op,devices,bytes,seconds\nall-gather,4,1048576,15.8e-6\nall-gather,4,2097152,31.4e-6\n");
  const std::string line = "validate --observations " + csv + " --machine ideal --slice 4";
  const auto json = json_of(line);
  ASSERT_EQ(json["datasets"][0]["rows"].size(), 2U);
  EXPECT_NEAR(json["datasets"][0]["rows"][0]["predicted_s"].get<double>(), 3 * 1048576.0 / 2 / 100e9, 1e-12);
  EXPECT_EQ(podsim(line + " --bound 5%").status, exit_done);
  EXPECT_EQ(podsim(line + " --bound 0.1%").status, exit_false);
}

TEST(ValidateVerb, DrawsEveryRowTwice) {
  const Folder folder;
  const std::string picture = folder.file("p.svg");
  EXPECT_EQ(podsim(h100 + " --plot " + picture).status, exit_done);
  const std::string svg = bytes_of_file(picture);
  std::size_t circles = 0;
  for (std::size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++circles;
  EXPECT_EQ(circles, 2U * 4 + 1) << "and one in the legend";
  EXPECT_THAT(svg, HasSubstr("measured 212 us, predicted"));
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

TEST(ValidateVerb, CtrlCIsSaidAndHasItsStatus) {
  const std::atomic<bool> interrupted{true};
  std::ostringstream out, err;
  Console console{out, err, false, &interrupted};
  EXPECT_EQ(run_command({"validate", "a100_gemm"}, console), exit_interrupted);
  EXPECT_EQ(err.str(), "podsim: interrupted\n");
  EXPECT_EQ(out.str(), "");
}

TEST(ValidateVerb, NamesWhatItCannotUse) {
  const auto error = [](const std::string& line) {
    const Outcome outcome = podsim(line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    return outcome.err;
  };
  EXPECT_THAT(error("validate a100_gem"), HasSubstr("did you mean \"a100_gemm\""));
  EXPECT_THAT(error("validate a100_gemm --machine ideal"), HasSubstr("belongs to --observations"));
  EXPECT_THAT(error("validate a100_gemm --observations x.csv"), HasSubstr("found both"));
  EXPECT_THAT(error("validate --observations /nowhere.csv --machine ideal --slice 4"), HasSubstr("/nowhere.csv"));
  const Folder folder;
  const std::string csv = folder.file("o.csv", "op,devices,bytes,seconds\nall-gather,4,1048576,1\n");
  EXPECT_THAT(error("validate --observations " + csv), HasSubstr("--machine is missing"));
  EXPECT_THAT(error("validate --observations " + csv + " --machine ideal --slice 4 --bound lots"), HasSubstr("--bound"));
  EXPECT_THAT(error("validate --observations " + csv + " --machine ideal --slice 8"), HasSubstr("o.csv:2:1: "));
}

}  // namespace
}  // namespace podsim::test
