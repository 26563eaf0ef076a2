// `podsim tune --training` and `--maxtext`: contract, bad input, plans that run as they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/base/test_files.hpp"
#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::json_of;
using test::Outcome;
using test::podsim;
using ::testing::HasSubstr;

class TuneTraining : public ::testing::Test {
 protected:
  test::Folder folder;
  const std::string model =
      " --training " +
      folder.file(
          "tiny.textproto",
          R"(format_version: 1 name: "tiny" layers: 4 width: 512 heads: 8 mlp: 2048 vocabulary: 4096 tied: true biases: true norm: layer sequence: 256)") +
      " ";
  const std::string keys_file = folder.file("tiny.yml", R"(base_emb_dim: 512
base_num_query_heads: 4
base_num_kv_heads: 4
base_mlp_dim: 2048
base_num_decoder_layers: 4
vocab_size: 4096
max_target_length: 256
ici_fsdp_parallelism: 64
)");
};

const std::string on_8 = " --machine tpu_v4 --chips 8 ";

std::string without_podsim(const std::string& line) {
  EXPECT_EQ(line.rfind("podsim ", 0), 0U) << line;
  return line.substr(7);
}

TEST_F(TuneTraining, JsonHasWhatTheContractNames) {
  const auto json = json_of("tune" + on_8 + model + "--batch 16 --remat full");
  for (const char* key : {"plans", "candidates", "pruned", "simulated", "wall_s", "excluded"}) EXPECT_TRUE(json.contains(key)) << key;
  ASSERT_FALSE(json["plans"].empty());
  const auto& plan = json["plans"][0];
  for (const char* key :
       {"rank", "slice", "mesh", "microbatches", "pipeline", "virtual_stages", "remat", "step_s", "mfu", "memory_bytes", "binding", "maxtext", "run"})
    EXPECT_TRUE(plan.contains(key)) << key;
  EXPECT_EQ(test::keys(plan["mesh"]), (std::vector<std::string>{"slice", "stage", "data", "fsdp", "expert", "row", "col"}));
  int devices = 1;
  for (const auto& [axis, size] : plan["mesh"].items()) devices *= size.get<int>();
  EXPECT_EQ(devices, 8);
}

TEST_F(TuneTraining, PlansOfExpertsRunInTheTimeThatTheySay) {
  const std::string experts = " --training " + folder.file("experts.textproto", R"(format_version: 1 name: "experts" layers: 4 width: 512 heads: 8 mlp: 1024 gated: true sequence: 256 vocabulary: 4096 experts: 8 experts_per_token: 2)");
  for (const std::string& machine : {std::string{" --machine tpu_v5e --chips 8"}, std::string{" --machine dgx_h100 --slice 1x8"}}) {
    const auto json = json_of("tune" + machine + experts + " --batch 16 --microbatches 1,2 --remat full --top 3");
    ASSERT_FALSE(json["plans"].empty());
    bool divides_experts = false;
    for (const auto& plan : json["plans"]) {
      divides_experts |= plan["mesh"]["expert"] > 1;
      const auto run = json_of(without_podsim(plan["run"]));
      EXPECT_EQ(run["makespan_s"], plan["step_s"]) << plan["run"];
    }
    EXPECT_TRUE(divides_experts) << machine;
  }
}

TEST_F(TuneTraining, TheCommandLineOfEveryPlanTakesWhatThePlanSays) {
  const auto json = json_of("tune" + on_8 + model + "--batch 16 --microbatches 2 --pipeline 1f1b --virtual-stages 1 --remat full --set link.bandwidth=20GB/s --optimizer sgd --top 4");
  ASSERT_GE(json["plans"].size(), 3U);
  for (const auto& plan : json["plans"]) {
    const auto run = json_of(without_podsim(plan["run"].get<std::string>()));
    for (const char* key : {"step_s", "mfu", "layers_by", "split", "memory_bytes"}) EXPECT_EQ(run[key], plan[key]) << plan["run"] << " " << key;
  }
}

TEST_F(TuneTraining, KeysOfMaxTextGiveThePlanBack) {
  const std::string maxtext = "tune --machine tpu_v5e --chips 8 --microbatches 1 --pipeline 1f1b --virtual-stages 1 --remat full --top 3 --maxtext " + keys_file + " per_device_batch_size=2";
  const auto json = json_of(maxtext);
  int written = 0;
  for (const auto& plan : json["plans"]) {
    EXPECT_EQ(plan["maxtext"].is_null(), !plan["maxtext_reason"].is_null());
    if (plan["maxtext"].is_null()) continue;
    ++written;
    const auto run = json_of(without_podsim(plan["run"].get<std::string>()));
    EXPECT_EQ(run["step_s"], plan["step_s"]);
  }
  EXPECT_GT(written, 0);
}

TEST_F(TuneTraining, AConfigurationWithoutAMeshTakesTheChipsThatAreSearched) {
  const std::string model_file = folder.file("model.yml", "base_config: base.yml\nbase_emb_dim: 512\nbase_num_query_heads: 4\nbase_num_kv_heads: 4\nbase_mlp_dim: 2048\nbase_num_decoder_layers: 4\nmax_target_length: 256\n");
  const auto json = json_of("tune --machine tpu_v5e --chips 8 --microbatches 1 --pipeline 1f1b --virtual-stages 1 --remat full --top 1 --maxtext " + model_file + " per_device_batch_size=2");
  EXPECT_EQ(json["plans"].size(), 1U);
}

TEST_F(TuneTraining, WhatIsFixedStaysFixed) {
  const auto json =
      json_of("tune" + on_8 + model + "--batch 16 --mesh stage=2,fsdp=4 --microbatches 4,8 --pipeline gpipe,1f1b --remat selected:in_proj");
  ASSERT_EQ(json["plans"].size(), 1U) << "one mesh, one plan";
  EXPECT_EQ(json["plans"][0]["mesh"]["stage"], 2);
  EXPECT_EQ(json["plans"][0]["mesh"]["fsdp"], 4);
  EXPECT_EQ(json["plans"][0]["remat"], "selected:in_proj");
  EXPECT_THAT(json["plans"][0]["pipeline"], ::testing::AnyOf("gpipe", "1f1b"));
  EXPECT_THAT(json["plans"][0]["microbatches"], ::testing::AnyOf(4, 8));
}

TEST_F(TuneTraining, TheOptimizerIsDividedOverDataUnlessTheOptionSaysOtherwise) {
  const std::string line = "tune" + on_8 + model + "--batch 16 --mesh data=8 --microbatches 2 --remat full";
  const auto open = json_of(line)["plans"][0], on = json_of(line + " --shard-optimizer-over-data on")["plans"][0], off = json_of(line + " --shard-optimizer-over-data off")["plans"][0];
  EXPECT_EQ(on["shard_optimizer_over_data"], true);
  EXPECT_EQ(off["shard_optimizer_over_data"], false);
  EXPECT_EQ(open["step_s"].get<double>(), std::min(on["step_s"].get<double>(), off["step_s"].get<double>()));
  EXPECT_LT(on["memory_bytes"]["total"], off["memory_bytes"]["total"]);
  EXPECT_THAT(on["run"].get<std::string>(), HasSubstr(" --shard-optimizer-over-data on"));
  EXPECT_THAT(off["run"].get<std::string>(), ::testing::Not(HasSubstr("--shard-optimizer-over-data")));
  EXPECT_EQ(json_of(without_podsim(on["run"].get<std::string>()))["step_s"], on["step_s"]);
}

TEST_F(TuneTraining, SaysWhichConstraintBinds) {
  const std::string few = "tune --machine tpu_v4 --chips 4" + model + "--batch 8 --pipeline 1f1b --microbatches 2 --virtual-stages 1 --remat full --top 1";
  const auto json = json_of(few + " --set chip.hbm=80MB");
  ASSERT_FALSE(json["plans"].empty());
  EXPECT_EQ(json["plans"][0]["binding"], "memory");
  const auto roomy = json_of(few);
  EXPECT_NE(roomy["plans"][0]["binding"], "memory") << "everything fits 32 GB";
}

TEST_F(TuneTraining, BadInputIsToldWithWhatIsExpected) {
  const auto told = [](const std::string& rest) {
    const Outcome outcome = podsim("tune " + rest);
    EXPECT_EQ(outcome.status, exit_bad_input) << rest;
    return outcome.err;
  };
  EXPECT_THAT(told("--machine tpu_v4 --chips 8" + model + "--pipeline 1f2b"), HasSubstr("1f1b"));
  EXPECT_THAT(told("--machine tpu_v4 --chips 24" + model), HasSubstr("offers no slice of 24 chips"));
  EXPECT_THAT(told("--machine tpu_v4 --chips 8" + model + "--gemm m=8,n=8,k=8"), HasSubstr("belongs to --workload and --gemm"));
  EXPECT_THAT(told("--machine tpu_v4 --chips 8 --gemm m=8,n=8,k=8 --remat full"), HasSubstr("belongs to --training and --maxtext"));
  EXPECT_THAT(told("--machine tpu_v4 --chips 8" + model + "--microbatches 2,x"), HasSubstr("microbatches"));
  EXPECT_THAT(told("--machine tpu_v4 --chips 8" + model + "--remat some"), HasSubstr("expected none, full"));
  EXPECT_THAT(told("--machine tpu_v4 --chips 8" + model + "--shard-optimizer-over-data yes"), HasSubstr("expected on or off, found \"yes\""));
  EXPECT_THAT(told("--machine tpu_v4 --chips 8" + model + "--mesh stage=2,rows=4"), HasSubstr("expected axes of a training step"));
  EXPECT_THAT(told("--machine tpu_v4 --chips 8" + model + "--batch 3 --mesh fsdp=8"), HasSubstr("no mesh divides the model and its batch"));
}

TEST_F(TuneTraining, WhereNothingFitsTheNearestIsToldByKind) {
  const Outcome outcome = podsim("tune" + on_8 + model + "--batch 16 --set chip.hbm=1MB");
  EXPECT_EQ(outcome.status, exit_bad_input);
  for (const char* part : {"no plan fits", "weights", "gradients", "optimizer", "activations", "what would help"})
    EXPECT_THAT(outcome.err, HasSubstr(part));
}

}  // namespace
}  // namespace podsim
