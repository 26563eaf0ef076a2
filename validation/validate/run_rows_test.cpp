// Measured runs: what is predicted of them is what `podsim run` gives.
#include "validation/validate/run_rows.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <utility>

#include "sim/base/test_files.hpp"
#include "tools/command/test_command.hpp"
#include "topologies/machines.hpp"
#include "validation/validate/validate.hpp"

namespace podsim {
namespace {

const std::string study = R"(format_version: 1
machine: "ideal"
system { slice: "4x4" }
case { name: "c" rung: composite bound { median: 0.5 p95: 0.6 } }
run { name: "gemm" scenario { slice: "4x4" gemm: "m=512,n=512,k=512,dtype=f32" algorithm: "meshslice" slice_count: 4 degrade: "0.0-0.1=0.5" } }
run { name: "pipeline" scenario { slice: "4" mesh: "stage=4" training: "layers.textproto" batch: 8 microbatches: 4 pipeline: "zero-bubble" straggler: "2=0.5" } }
run { name: "wrong" scenario { slice: "4" gemm: "m=512,n=512" } }
)";
const std::string model = R"(format_version: 1 name: "layers" layers: 4 width: 64 heads: 4 mlp: 256 sequence: 16)";

/// A dataset in a folder of its own.
std::string dataset(const test::Folder& folder, const std::string& rows) {
  (void)folder.file("observations.csv", "op,devices,bytes,seconds,run,spread\n" + rows);
  (void)folder.file("validation.textproto", study);
  (void)folder.file("layers.textproto", model);
  return folder.file("");
}

TEST(RunRows, WhatIsPredictedOfARowIsWhatRunGives) {
  const test::Folder folder;
  const std::string path = dataset(folder, "run,16,,0.001,gemm,0.01\nrun,4,,0.001,pipeline,0.03\n");
  const auto found = find_dataset(path);
  ASSERT_TRUE(found) << to_text(found.error());
  const std::vector<std::string> lines{"run --machine ideal --slice 4x4 --gemm m=512,n=512,k=512,dtype=f32 --algorithm meshslice --slice-count 4 --degrade 0.0-0.1=0.5",
                                       "run --machine ideal --slice 4 --mesh stage=4 --training " + path + "layers.textproto --batch 8 --microbatches 4 --pipeline zero-bubble --straggler 2=0.5"};
  for (std::size_t r = 0; r < lines.size(); ++r) {
    const auto predicted = predict_run(found->observations[r], found->study, found->machine);
    ASSERT_TRUE(predicted) << to_text(predicted.error());
    const test::Outcome run = test::podsim(lines[r] + " --format json");
    ASSERT_EQ(run.status, exit_done) << run.err;
    EXPECT_EQ(run.json()["makespan_s"].get<double>(), predicted->count()) << lines[r];
  }
  const auto validated = validate({*found});
  ASSERT_TRUE(validated) << to_text(validated.error());
  EXPECT_EQ(validated->front().cases.front().spread, 0.02) << "the median of both rows";
  EXPECT_TRUE(counted_errors(validated->front()).empty()) << "whole programs have bounds of their own";
}

TEST(RunRows, NamesWhatItCannotPredict) {
  const test::Folder folder;
  const auto error_of = [&](const std::string& row) {
    const auto found = find_dataset(dataset(folder, row));
    EXPECT_TRUE(found) << to_text(found.error());
    return to_text(validate({*found}).error());
  };
  const std::string path = folder.file("");
  EXPECT_EQ(error_of("run,16,,1,other,\n"), path + "observations.csv:2:1: the study has no run \"other\"");
  EXPECT_EQ(error_of("run,8,,1,gemm,\n"), path + "observations.csv:2:1: expected 16 devices, those of the run, found 8");
  EXPECT_EQ(error_of("run,4,,1,wrong,\n").substr(0, (path + "validation.textproto:7:").size()), path + "validation.textproto:7:");
  dataset(folder, "run,4,,1,pipeline,\n");
  std::filesystem::remove(path + "layers.textproto");
  EXPECT_EQ(to_text(find_dataset(path).error()), path + "layers.textproto: cannot read the file: No such file or directory");
}

// Streams of short messages tell the latency of each, a whole message and flows that share a cable the rate.
const std::string survey = R"(format_version: 1
machine: "tpu_v4"
run { name: "whole" scenario { slice: "2" collective: "broadcast" axis: "row" bytes: "256KiB" algorithm: "ring" chunks: 1 } }
run { name: "stream" scenario { slice: "2" collective: "broadcast" axis: "row" bytes: "256KiB" algorithm: "ring" chunks: 128 } }
run { name: "two flows" scenario { slice: "4" wrap: "none" program: "shard_map { Y = ppermute(X, row, [(0, 2), (1, 3)]) as row,- }" shape: "X=4096x256" shard: "X=row,-" } }
)";

TEST(RunRows, AMachineIsFoundAgainFromItsRuns) {
  const test::Folder folder;
  const std::string described = folder.file("runs.textproto", survey);
  const auto study = read_steps(survey, described);
  ASSERT_TRUE(study) << to_text(study.error());
  Machine truth = *find_machine("tpu_v4:spec");
  for (const auto& [path, value] : {std::pair{"link.bandwidth", "20 GB/s"}, std::pair{"link.latency", "3 us"}}) ASSERT_TRUE(set_machine_value(truth, path, value, "a test", {}));
  std::string rows = "op,devices,bytes,seconds,run\n";
  for (const StudyRun& run : study->runs) {
    Observation row;
    row.op = ObservedOp::run, row.run = run.name, row.devices = run.name == "two flows" ? 4 : 2;
    const auto time = predict_run(row, *study, truth);
    ASSERT_TRUE(time) << to_text(time.error());
    rows += fmt::format("run,{},,{:.12f},{}\n", row.devices, time->count(), run.name);
  }
  const std::string fit = "calibrate " + folder.file("rows.csv", rows) + " --base tpu_v4:spec --slice 2 --format json";
  const auto fitted = [&](const std::string& words) {
    const test::Outcome ended = test::podsim(fit + words);
    EXPECT_EQ(ended.status, exit_done) << ended.err;
    std::map<std::string, double> values;
    const auto json = ended.json();
    for (const auto& value : json["parameters"]) values[value["path"]] = value["value"];
    return values;
  };
  for (const std::string only : {"", " --only link.bandwidth --only link.latency"}) {
    const auto values = fitted(" --steps " + described + only);
    EXPECT_NEAR(values.at("link.bandwidth"), 20e9, 0.02e9) << only;
    if (only.empty()) continue;  // an overhead per message explains the streams as well
    EXPECT_NEAR(values.at("link.latency"), 3e-6, 0.02e-6);
  }
  const test::Outcome without = test::podsim(fit);
  EXPECT_EQ(without.status, exit_bad_input);
  EXPECT_NE(without.err.find("rows.csv:2:1: expected a description of the steps and runs that rows name: --steps FILE"), std::string::npos) << without.err;
  const test::Outcome other = test::podsim(fit + " --steps " + described + " --only chip.attention_efficiency");
  EXPECT_NE(other.err.find("expected a value that training steps and runs are fitted to, "), std::string::npos) << other.err;
}

}  // namespace
}  // namespace podsim
