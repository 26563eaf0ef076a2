// `podsim show training`: what it prints adds up, and what a wrong step is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/command/test_command.hpp"

namespace podsim {
namespace {

using test::Folder;
using test::json_of;
using test::podsim;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string gpt3 = "show training gpt3-175b --mesh stage=8,col=8 --pad --batch 64 --microbatches 64 --pipeline 1f1b --remat full ";

TEST(ShowTraining, PartsSumToTheWhole) {
  const auto json = json_of(gpt3);
  double parameters = 0, model = 0, hardware = 0;
  for (const auto& part : json["parts"]) {
    const double own = part["forward_flops"].get<double>() + part["backward_flops"].get<double>();
    parameters += part["parameters"].get<double>();
    if (part["in_model"].get<bool>()) model += own;
    hardware += own + part["recomputed_flops"].get<double>();
  }
  EXPECT_EQ(json["parameters"].get<double>(), parameters);
  EXPECT_NEAR(json["model_flops"].get<double>() / model, 1, 1e-12);
  EXPECT_NEAR(json["hardware_flops"].get<double>() / hardware, 1, 1e-12);
  ASSERT_EQ(json["memory"].size(), 3U);
  for (const auto& rank : json["memory"]) {
    const auto& bytes = rank["memory_bytes"];
    std::int64_t sum = 0;
    for (const char* kind : {"weights", "gradients", "optimizer", "activations", "working"}) sum += bytes[kind].get<std::int64_t>();
    EXPECT_EQ(bytes["total"].get<std::int64_t>(), sum);
    EXPECT_EQ(rank["live_forwards"], 64);  // all of them, where no schedule says how many
  }
  EXPECT_EQ(json["mesh"].dump(), R"({"stage":8,"col":8})");
  EXPECT_EQ(json["padding"].dump(), R"([{"extent":"vocabulary","from":50257,"to":50264}])");
  EXPECT_TRUE(json["maxtext"].is_null());  // another pipeline than MaxText's
}

TEST(ShowTraining, TheKeysThatItPrintsGiveTheSameStep) {
  const auto json = json_of("show training llama3-8b --mesh slice=2,fsdp=16,col=4 --batch-per-device 0.5 --microbatches 1 --remat selected:in_proj@host --scan on");
  EXPECT_TRUE(json["maxtext"].is_null());  // MaxText has no float32 copy of bf16 weights
  const auto of_maxtext = json_of("show training maxtext-default --mesh slice=2,fsdp=16,col=4 --batch-per-device 0.5 --remat selected:in_proj@host --scan on");
  const Folder folder;
  auto again = json_of("show training --maxtext " + folder.file("empty.yml", "") + " " + of_maxtext["maxtext"].get<std::string>());
  again["description"] = of_maxtext["description"];
  EXPECT_EQ(again.dump(1), of_maxtext.dump(1));
}

TEST(ShowTraining, MemoryIsThePeakOfTheRunWithinTwoPercent) {
  const std::vector<std::pair<std::string, std::string>> plans{
      {"4x4", "llama3-8b --mesh fsdp=16 --batch-per-device 1 --remat full"},
      {"4x4", "llama3-8b --mesh fsdp=16 --batch-per-device 4 --microbatches 4 --remat full"},
      {"4x4", "llama3-8b --mesh data=4,col=4 --batch-per-device 1 --remat full"},
      {"4x4", "llama3-8b --mesh fsdp=4,row=4 --batch-per-device 1 --remat full"},
      {"4x4", "maxtext-default --mesh fsdp=16 --batch-per-device 1 --remat none"},
      {"4x4", "llama3-8b --mesh stage=4,fsdp=4 --batch 32 --microbatches 8 --remat full --pipeline 1f1b"},
  };
  for (const auto& [slice, plan] : plans) {
    const bool pipelined = plan.find("stage") != std::string::npos;
    const auto shown = json_of("show training " + plan + (pipelined ? " --live-forwards 4" : ""));
    const double estimate = shown["memory"][0]["memory_bytes"]["total"].get<double>();  // of the first rank, the only one with so many live forwards
    const auto run = json_of("run --machine tpu_v5p --slice " + slice + "x1 --training " + plan);
    EXPECT_NEAR(estimate / run["stages"][0]["peak_memory_bytes"].get<double>(), 1, 0.02) << plan;
  }
  const std::string split = "show training llama3-8b --mesh stage=4 --batch 8 --microbatches 8 --pipeline zero-bubble";
  EXPECT_THAT(podsim(split).out, HasSubstr("left out: what zero-bubble keeps between the halves of its backward passes"));
}

/// Steps of MaxText that ran on TPU v5e (validation/datasets/tpu_v5e_training) are not said to be too large.
TEST(RunTraining, StepsThatRanFitTheirMemory) {
  const Folder folder;
  const std::string common = " head_dim=256 mlp_activations=[relu] vocab_size=32768 logits_via_embedding=true max_target_length=2048 ici_fsdp_parallelism=256 remat_policy=full attention=flash use_iota_embed=true";
  for (const char* size : {"base_emb_dim=6144 base_num_query_heads=24 base_num_kv_heads=24 base_mlp_dim=24576 base_num_decoder_layers=36 per_device_batch_size=6",
                           "base_emb_dim=8192 base_num_query_heads=32 base_num_kv_heads=32 base_mlp_dim=32768 base_num_decoder_layers=40 per_device_batch_size=4",
                           "base_emb_dim=10240 base_num_query_heads=32 base_num_kv_heads=32 base_mlp_dim=32768 base_num_decoder_layers=64 per_device_batch_size=2"}) {
    const auto run = json_of("run --machine tpu_v5e --slice 16x16 --maxtext " + folder.file("empty.yml", "") + " " + size + common);
    EXPECT_LE(run["memory_bytes"]["total"].get<double>(), run["memory_bytes"]["hbm"].get<double>()) << size;
  }
}

/// A shipped model, taken out, edited, and trained: what the options of a model do too.
TEST(ShowTraining, WritesTheModelToBeEdited) {
  const Folder folder;
  const std::string file = folder.file("mine.textproto"), step = " --machine tpu_v5p --slice 2x2x1 --mesh fsdp=4 --batch 4 --remat full";
  const auto outcome = podsim("show training llama3-8b --mesh fsdp=4 --layers 2 --seq 1024 -o " + file);
  ASSERT_EQ(outcome.status, exit_done) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  std::string text = test::bytes_of_file(file);
  EXPECT_THAT(text, HasSubstr("layers: 2\n"));
  EXPECT_EQ(json_of("show training " + file)["parameters"], json_of("show training llama3-8b --layers 2 --seq 1024")["parameters"]);
  const std::string two = "run --training " + file + step, options = "run --training llama3-8b --layers 2 --seq 1024" + step;
  EXPECT_EQ(json_of(two)["step_s"], json_of(options)["step_s"]);
  EXPECT_EQ(json_of(options)["tokens"], 4 * 1024);
  text.replace(text.find("layers: 2"), 9, "layers: 3");
  const std::string three = folder.file("three.textproto", text);
  EXPECT_GT(json_of("run --training " + three + step)["step_s"], json_of(two)["step_s"]);
}

TEST(ShowTraining, OptionsChangeTheModel) {
  const auto model = [](const std::string& options) { return json_of("show training llama3-8b " + options)["model"]; };
  const auto wide = model("--heads 64");  // the width follows, and the MLP grows with it
  EXPECT_EQ(wide["width"], 2 * 4096);
  EXPECT_EQ(wide["mlp"], 2 * 14336);
  EXPECT_EQ(model("--heads 64 --ff 1000")["mlp"], 1000);
  EXPECT_EQ(model("--kv-heads 32")["kv_heads"], 32);
  EXPECT_EQ(json_of("show training gpt3-175b --seq 8192")["model"]["positions"], 8192);
  EXPECT_EQ(podsim("show training llama3-8b --kv-heads 5").err, "podsim: error: --kv-heads: must divide the 32 heads, found 5\n");
  EXPECT_EQ(podsim("show training -o x.textproto").err, "podsim: error: --output: a model file is written of --training or --maxtext, which are missing\n");
}

TEST(ShowTraining, MistakesAreTold) {
  const auto told = [](const std::string& line) {
    const auto outcome = podsim("show training " + line);
    EXPECT_EQ(outcome.status, exit_bad_input) << line;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(told("gpt3"), StartsWith("podsim: error: there is no model \"gpt3\", did you mean \"gpt3-175b\"?"));
  EXPECT_EQ(told("llama3-8b --mesh stage=3 --pipeline 1f1b"), "podsim: error: --layers: expected a multiple of 3 (stage=3 x virtual_stages=1), found 32; the next is 33\n");
  EXPECT_EQ(told("llama3-8b --mesh data=4 --batch 6"), "podsim: error: --batch: expected a multiple of 4 (microbatches=1 x data=4), found 6; the next is 8, or --pad\n");
  EXPECT_EQ(told("llama3-8b --mesh data=4,data=2"), "podsim: error: --mesh: expected every axis once, found data again\n");
  EXPECT_EQ(told("llama3-8b --mesh data=2 --pipeline 1f1b"), "podsim: error: --pipeline: expected several stages, as stage=4 in the mesh, found data=2\n");
  EXPECT_EQ(told("llama3-8b --batch-per-device 0.3"), "podsim: error: --batch-per-device: expected a whole number of sequences on 1 devices, found 0.3\n");
  EXPECT_EQ(told("llama3-8b --remat some"), "podsim: error: --remat: expected none, full, layer or selected:STAGE,..., found \"some\"\n");
  EXPECT_EQ(told("llama3-8b --batch 3 --batch-per-device 1"), "podsim: error: --batch-per-device: says what --batch says; expected one of them\n");
  EXPECT_EQ(told("llama3-8b gpt3-175b"), "podsim: error: --training: expected one model, found \"llama3-8b\" and \"gpt3-175b\"\n");
  EXPECT_EQ(told("--mesh stage=2"), "podsim: error: --mesh needs a model: podsim show training lists those shipped\n");
  EXPECT_EQ(told("llama3-8b --chips 4"), "podsim: error: --chips: belongs to --maxtext; --mesh says the devices\n");
  EXPECT_EQ(told("llama3-8b --live-forwards 2"), "podsim: error: --live-forwards: expected a whole number from 1 to 1, got \"2\"\n");
  const Folder folder;
  const std::string good = folder.file("good.yml", "base_emb_dim: 2048\n"), bad = folder.file("bad.yml", "base_emb_dim: [1\n"), deep = folder.file("deep.yml", std::string(100'000, '['));
  EXPECT_THAT(told("--maxtext " + bad), StartsWith(bad + ":2:1: expected YAML: "));
  EXPECT_THAT(told("--maxtext " + deep), StartsWith(deep + ":1:"));
  EXPECT_THAT(told("--maxtext " + good), HasSubstr("ici_fsdp_parallelism is -1, the rest of how many devices of a slice?"));
  EXPECT_EQ(told("--maxtext " + good + " --chips 4 --mesh fsdp=4"), "podsim: error: --mesh: MaxText's keys say this; expected KEY=VALUE\n");
  EXPECT_EQ(told("--maxtext " + good + " --chips 4 base_emb_dm=3"),
            "base_emb_dm:1:1: expected a key of MaxText, found \"base_emb_dm\", did you mean \"base_emb_dim\", \"base_mlp_dim\" or \"base_moe_mlp_dim\"?; unknown keys may change the "
            "computation\n");
  EXPECT_EQ(told("--maxtext " + good + " --chips 4 ici_tensor_parallelism=4 vocab_size=32001"),
            "podsim: error: vocabulary: expected a multiple of 4 (col=4), found 32001; the next is 32004, or --pad\n");
  EXPECT_THAT(told("--maxtext no/such.yml"), HasSubstr("no/such.yml"));
}

}  // namespace
}  // namespace podsim
