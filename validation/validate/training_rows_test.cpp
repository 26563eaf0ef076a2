// Measured training steps: what is predicted of them, and that a machine is found again from its own steps.
#include "validation/validate/training_rows.hpp"

#include <gtest/gtest.h>

#include "sim/machine/machine_fields.hpp"
#include "topologies/machines.hpp"
#include "validation/validate/datasets.hpp"
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
    const auto time = predict_step(row, given.study, truth);
    ASSERT_TRUE(time) << to_text(time.error());
    row.time = *time;
  }
  EXPECT_LT(rows[0].time, rows[1].time);
  EXPECT_LT(rows[1].time, rows[2].time);
  const auto found = fit_to_steps(rows, given.study, given.base, {"chip.matmul_efficiency", "dcn.nic_bandwidth", "dcn.sync"});
  ASSERT_TRUE(found) << to_text(found.error());
  EXPECT_NEAR(found->chip.matmul_efficiency, 0.7, 0.007);
  EXPECT_NEAR(found->dcn.nic_bandwidth.count(), 10e9, 0.3e9);
  EXPECT_NEAR(found->dcn.sync.count(), 200e-6, 6e-6);
}

TEST(TrainingRows, NamesWhatItCannotPredictOrFit) {
  const Bench given = bench();
  const auto error = [&](const Observation& row) {
    const auto time = predict_step(row, given.study, given.base);
    return time ? "none" : to_text(time.error());
  };
  EXPECT_EQ(error(row_of("large", 1, 4)), "rows:2:1: the study has no step \"large\"");
  EXPECT_EQ(error(row_of("small", 2, 4)), "rows:2:1: expected 8 devices, those of the mesh slice=2,fsdp=4, found 4");
  const std::vector<Observation> rows{row_of("small", 1, 4)};
  const auto fit = [&](const std::vector<std::string>& paths) {
    const auto machine = fit_to_steps(rows, given.study, given.base, paths);
    return machine ? "none" : to_text(machine.error());
  };
  EXPECT_EQ(fit({}), "expected a value to fit for each row or fewer, found 0 values and 1 rows");
  EXPECT_EQ(fit({"chip.matmul_eficiency"}), "expected a number of the machine, above 0 if it is no time, found \"chip.matmul_eficiency\"");
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
