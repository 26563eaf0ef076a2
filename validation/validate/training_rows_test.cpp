// Measured training steps: what is predicted of them, and that a machine is found again from its own steps.
#include "validation/validate/training_rows.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/test_cases.hpp"
#include "sim/machine/machine_fields.hpp"
#include "tools/command/test_command.hpp"
#include "topologies/machines.hpp"
#include "validation/validate/datasets.hpp"
#include "validation/validate/described_rows.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/training/counts.hpp"

namespace podsim {
namespace {

const std::string small_study = R"(format_version: 1
machine: "tpu_v4"
system { slice: "2x2x1" }
step {
  name: "small"
  maxtext: "base_emb_dim=512 base_num_query_heads=4 base_num_kv_heads=4 base_mlp_dim=2048 base_num_decoder_layers=4 vocab_size=1024 per_device_batch_size=1"
  maxtext: "ici_fsdp_parallelism=4 dcn_data_parallelism=-1"
}
case { name: "c" rung: other_scale fit { step: "small" pods: 1 pods: 2 } predict { step: "small" pods: 4 } value: "chip.matmul_efficiency" no_bound: "a test" }
)";

Observation row_of(const std::string& step, int pods, int devices) {
  Observation row;
  row.op = ObservedOp::training_step;
  row.step = step, row.pods = pods, row.devices = devices;
  row.where = {"rows", 2, 1};
  return row;
}

struct Bench {
  Study study;
  System base;
};
Bench bench() {
  auto study = read_study(small_study, "s");
  EXPECT_TRUE(study) << to_text(study.error());
  auto base = read_system(*study->system, *find_machine("tpu_v4"));
  EXPECT_TRUE(base) << to_text(base.error());
  return {*std::move(study), *std::move(base)};
}

Machine with(Machine machine, const std::string& path, const std::string& value) {
  EXPECT_TRUE(set_machine_value(machine, path, value, "a test", {}));
  return machine;
}

TEST(TrainingRows, AMachineIsFoundAgainFromItsOwnSteps) {
  const Bench given = bench();
  System truth = given.base;
  truth.machine = with(with(with(truth.machine, "chip.matmul_efficiency", "0.7"), "dcn.nic_bandwidth", "10 GB/s"), "dcn.sync", "200 us");
  std::vector<Observation> rows{row_of("small", 1, 4), row_of("small", 2, 8), row_of("small", 8, 32)};
  for (Observation& row : rows) {
    row.where.line += static_cast<int>(&row - rows.data());
    const auto time = predict_step(row, given.study, truth);
    ASSERT_TRUE(time) << to_text(time.error());
    row.time = *time;
  }
  EXPECT_LT(rows[0].time, rows[1].time);
  EXPECT_LT(rows[1].time, rows[2].time);
  CalibrateOptions options;
  options.described_time = described_time(given.study, given.base);
  options.only = {"chip.matmul_efficiency", "dcn.nic_bandwidth", "dcn.sync"};
  const auto found = calibrate(rows, given.base, options);
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_NEAR(found->machine.chip.matmul_efficiency, 0.7, 0.007);
  EXPECT_NEAR(found->machine.dcn.nic_bandwidth.count(), 10e9, 0.3e9);
  EXPECT_NEAR(found->machine.dcn.sync.count(), 200e-6, 6e-6);
  for (const Residual& residual : found->residuals) EXPECT_NEAR(residual.error, 0, 2e-3);
}

TEST(TrainingRows, NamesWhatItCannotPredictOrFit) {
  const Bench given = bench();
  const auto error = [&](const Observation& row) {
    const auto time = predict_step(row, given.study, given.base);
    return time ? "none" : to_text(time.error());
  };
  EXPECT_EQ(error(row_of("large", 1, 4)), "rows:2:1: the study has no step \"large\"");
  EXPECT_EQ(error(row_of("small", 2, 4)), "rows:2:1: expected 8 devices, those of the mesh slice=2,fsdp=4, found 4");
  Observation row = row_of("small", 1, 4);
  row.time = Seconds{1};
  const auto fit = [&](const CalibrateOptions& options) {
    const auto found = calibrate({row}, given.base, options);
    return found ? "none" : to_text(found.error());
  };
  CalibrateOptions options;
  EXPECT_EQ(fit(options), "rows:2:1: expected a description of the steps and runs that rows name");
  options.described_time = described_time(given.study, given.base);
  options.only = {"link.bandwidth"};
  EXPECT_EQ(fit(options), "expected a value that training steps and runs are fitted to, chip.matmul_efficiency, chip.attention_efficiency, software.core_share[all-gather], "
                          "software.core_share[reduce-scatter], found \"link.bandwidth\"");
}

/// `podsim run` of a row's step, as a user would write it.
std::string command_of(const Observation& row, const Study& study, const test::Folder& folder) {
  std::string line = "run --machine " + study.machine + " --slice " + (row.slice.empty() ? study.system->text("slice") : row.slice);
  if (row.pods > 1) line += " --pods " + std::to_string(row.pods);
  for (const StudyValue& set : study.values) line += " --set '" + set.path + "=" + set.value + "'";
  const auto named = std::find_if(study.steps.begin(), study.steps.end(), [&](const StudyStep& step) { return step.name == row.step; });
  if (!named->maxtext.empty()) {
    line += " --maxtext " + folder.file("empty.yml", "");
    for (const std::string& key : named->maxtext) line += " " + key;
    return line;
  }
  const TrainingStep& step = named->step;
  const std::vector<std::string> shipped = shipped_training_models();
  const bool own = std::ranges::find(shipped, step.model.name) == shipped.end();
  line += " --training " + (own ? folder.file("model.textproto", write_training_model(step.model)) : step.model.name) + " --mesh " + to_text(step.mesh) + " --batch " + std::to_string(step.batch) + " --microbatches " +
          std::to_string(step.microbatches) + " --remat " + to_text(step.remat);
  if (!step.pipeline.empty()) line += " --pipeline " + step.pipeline + " --virtual-stages " + std::to_string(step.virtual_stages);
  if (!named->products.empty()) line += " --algorithm " + named->products;
  if (step.shard_optimizer_over_data) line += " --shard-optimizer-over-data on";
  return line + (step.pad ? " --pad" : "");
}

TEST(TrainingRows, WhatIsPredictedOfARowIsWhatRunGives) {
  const test::Folder folder;
  const std::vector<std::tuple<std::string, std::string, int>> some{{"tpu_v4_training", "22B", 1},  {"tpu_v4_training", "52B", 2}, {"tpu_v5e_training", "16B", 2},
                                                                    {"tpu_v5e_training", "128B", 1}, {"tpu_v5p_training", "32B", 2}, {"megatron_a100", "22B full", 1},
                                                                    {"nemo_h100", "15B tensor 4 16 GPUs", 1}};
  for (const auto& [name, step, pods] : std::span{some}.first(test::cases<std::size_t>(some.size(), 2))) {
    const auto dataset = find_dataset(name);
    ASSERT_TRUE(dataset) << to_text(dataset.error());
    const auto base = read_system(*dataset->study.system, dataset->machine);
    ASSERT_TRUE(base) << to_text(base.error());
    const auto row = std::find_if(dataset->observations.begin(), dataset->observations.end(),
                                  [&, step = step, pods = pods](const Observation& o) { return o.step == step && o.pods == pods; });
    ASSERT_NE(row, dataset->observations.end()) << name << " " << step;
    const auto predicted = predict_step(*row, dataset->study, *base);
    ASSERT_TRUE(predicted) << to_text(predicted.error());
    const std::string line = command_of(*row, dataset->study, folder);
    const test::Outcome run = test::podsim(line + " --format json");
    ASSERT_EQ(run.status, exit_done) << line << "\n" << run.err;
    EXPECT_EQ(run.json()["makespan_s"].get<double>(), predicted->count()) << line;
  }
}

/// Seconds in the tables are derived from what was published: TFLOP/s per chip by MaxText's own formula.
TEST(TrainingRows, SecondsOfMaxTextsStepsAreItsFlopsOverWhatItPublished) {
  for (const char* name : {"tpu_v4_training", "tpu_v5e_training"}) {
    const auto dataset = find_dataset(name);
    ASSERT_TRUE(dataset) << to_text(dataset.error());
    const auto base = read_system(*dataset->study.system, dataset->machine);
    ASSERT_TRUE(base) << to_text(base.error());
    for (const Observation& row : dataset->observations) {
      const auto step = step_of(row, dataset->study, *base);
      ASSERT_TRUE(step) << to_text(step.error());
      const double published = std::stod(row.source), rate = maxtext_flops(*step, AttentionFlops::whole).count() / row.devices / row.time.count();
      const double of_source = row.source.find('%') == std::string::npos ? published * 1e12 : published / 100 * 197e12;
      EXPECT_NEAR(rate, of_source, 1e-3 * of_source) << row.source;
    }
  }
}

}  // namespace
}  // namespace podsim
