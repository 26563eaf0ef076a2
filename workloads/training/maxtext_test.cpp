#include "workloads/training/maxtext.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include <random>

#include "sim/base/text.hpp"
#include "workloads/training/counts.hpp"
#include "workloads/training/maxtext_models.hpp"

namespace podsim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

const MaxTextSystem four{.devices = 4, .slices = {}};

TrainingStep read(const std::string& yaml, const Words& overrides = {}, const MaxTextSystem& system = four) {
  const auto step = read_maxtext(yaml, "m.yml", overrides, system);
  EXPECT_TRUE(step) << to_text(step.error());
  return step ? *step : TrainingStep{};
}
std::string error_of(const std::string& yaml, const Words& overrides = {}, const MaxTextSystem& system = four) {
  const auto step = read_maxtext(yaml, "m.yml", overrides, system);
  return step ? "" : to_text(step.error());
}

TEST(MaxText, WhatNobodySaysIsAsInItsOwnFile) {
  const TrainingStep step = read("");
  const auto shipped = find_training_model("maxtext-default");
  ASSERT_TRUE(shipped);
  TrainingModel expected = *shipped;
  expected.name = "maxtext", expected.description = "";
  EXPECT_EQ(step.model, expected);
  EXPECT_EQ(step.batch, 48);
  EXPECT_EQ(step.mesh, (TrainingMesh{.fsdp = 4}));
  EXPECT_EQ(to_text(step.remat), "full");
  EXPECT_TRUE(step.scan);
}

// A file of MaxText, whole; the figures are those of Qwen/Qwen3-8B's config.json, as in the shipped model.
TEST(MaxText, AConfigurationOfItsModelsIsReadAsItIsPublished) {
  std::ifstream file{PODSIM_SOURCE_DIR "/workloads/training/testdata/maxtext_qwen3-8b.yml"};
  const TrainingStep step = read(std::string{std::istreambuf_iterator<char>{file}, {}}, {"max_target_length=4096"});
  const auto shipped = find_training_model("qwen3-8b");
  ASSERT_TRUE(shipped);
  TrainingModel expected = step.model;
  expected.layers = shipped->layers, expected.width = shipped->width, expected.heads = shipped->heads, expected.kv_heads = shipped->kv_heads, expected.head_dim = shipped->head_dim,
  expected.mlp = shipped->mlp, expected.vocabulary = shipped->vocabulary, expected.tied = shipped->tied, expected.gated = shipped->gated, expected.sequence = shipped->sequence;
  EXPECT_EQ(step.model, expected);
}

TEST(MaxText, ConfigurationsOfItsModelsAreOnTopOfBaseYml) {
  const TrainingStep qwen = read("base_config: \"base.yml\"\ndecoder_block: \"qwen3\"\nuse_qk_norm: true\nopt_type: \"adam_pax\"\n");
  EXPECT_EQ(qwen.model.description, "norms of queries and keys are left out");
  EXPECT_EQ(qwen.optimizer, Optimizer::adamw);
  EXPECT_EQ(error_of("use_qk_norm: true\n"), "m.yml:1:14: expected use_qk_norm to be false with a decoder_block other than qwen3 and qwen3_moe, found true: further norms");
  EXPECT_THAT(error_of("base_config: \"mine.yml\"\n"), HasSubstr("other defaults than base.yml's"));
}

TEST(MaxText, ReadsKeysAndOverrides) {
  const TrainingStep step = read(R"(
run_name: "a-b"          # a comment
base_emb_dim: 1_024
base_num_query_heads: 8
base_num_kv_heads: 2
mlp_activations: ["gelu"]
logits_via_embedding: True
steps: 10_000
dataset_path: gs://somewhere
logical_axis_rules: [['batch', ['data', 'fsdp']], ['mlp', 'tensor']]
ici_tensor_parallelism: 2
max_num_checkpoints_to_keep: None
quantization: null
dropout_rate: 0
)", {"per_device_batch_size=0.5", "base_emb_dim=512", "remat_policy=minimal_offloaded", "use_iota_embed=true", "opt_type=sgd", "learning_rate=1e-8"});
  EXPECT_EQ(step.model.name, "a-b");
  EXPECT_EQ(step.model.width, 512);  // the override
  EXPECT_EQ(step.model.kv_heads, 2);
  EXPECT_FALSE(step.model.gated);
  EXPECT_TRUE(step.model.tied);
  EXPECT_EQ(step.batch, 2);
  EXPECT_EQ(step.mesh, (TrainingMesh{.fsdp = 2, .col = 2}));
  EXPECT_EQ(to_text(step.remat), "selected:in_proj@host,out_proj@host,ff1@host,ff2@host");
  EXPECT_TRUE(step.embedding_by_product);
  EXPECT_EQ(step.optimizer, Optimizer::sgd);
}

// The extents in MaxText's own files, configs/models/NAME.yml at commit e591f30c.
TEST(MaxText, ModelsByNameAreThoseOfItsFiles) {
  struct Case {
    const char* name;
    std::int64_t layers, width, heads, kv_heads, head_dim, mlp, vocabulary;
    bool tied;
  };
  for (const Case& entry : std::vector<Case>{{"llama2-7b", 32, 4096, 32, 32, 128, 11008, 32000, false},
                                             {"llama2-13b", 40, 5120, 40, 40, 128, 13824, 32000, false},
                                             {"llama2-70b", 80, 8192, 64, 8, 128, 28672, 32000, false},
                                             {"llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256, false},
                                             {"llama3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256, false},
                                             {"llama3.1-405b-Instruct", 126, 16384, 128, 8, 128, 53248, 128256, false},
                                             {"mistral-7b", 32, 4096, 32, 8, 128, 14336, 32000, false},
                                             {"gemma-2b", 18, 2048, 8, 1, 256, 16384, 256128, true},
                                             {"gemma-7b", 28, 3072, 16, 16, 256, 24576, 256128, true},
                                             {"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, true},
                                             {"qwen3-1.7b", 28, 2048, 16, 8, 128, 6144, 151936, true},
                                             {"qwen3-4b", 36, 2560, 32, 8, 128, 9728, 151936, true},
                                             {"qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936, false},
                                             {"qwen3-14b-base", 40, 5120, 40, 8, 128, 17408, 151936, false},
                                             {"qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936, false},
                                             {"gpt3-175b", 96, 12288, 96, 96, 128, 49152, 50304, true}}) {
    SCOPED_TRACE(entry.name);
    const TrainingModel model = read("", {std::string{"model_name="} + entry.name}).model;
    EXPECT_EQ(model.layers, entry.layers);
    EXPECT_EQ(model.width, entry.width);
    EXPECT_EQ(model.heads, entry.heads);
    EXPECT_EQ(model.kv_heads, entry.kv_heads);
    EXPECT_EQ(model.head_dim, entry.head_dim);
    EXPECT_EQ(model.mlp, entry.mlp);
    EXPECT_EQ(model.vocabulary, entry.vocabulary);
    EXPECT_EQ(model.tied, entry.tied);
    EXPECT_EQ(model.gated, entry.name != std::string{"gpt3-175b"});
    EXPECT_EQ(model.name, entry.name);
    EXPECT_FALSE(model.description.empty());
    EXPECT_EQ(model.sequence, 2048);  // of base.yml, as the dtypes
    EXPECT_EQ(model.weights, DType::f32);
  }
  for (const std::string& name : maxtext_model_names()) EXPECT_TRUE(read_maxtext("", "", {"model_name=" + name}, four)) << name;
  const TrainingStep gpt3 = read("", {"model_name=gpt3-175b"});
  EXPECT_EQ(gpt3.model.positions, 16384);
  EXPECT_TRUE(gpt3.embedding_by_product);
  EXPECT_TRUE(gpt3.model.biases);
}

TEST(MaxText, ReadsExperts) {
  const TrainingModel mixtral = read("", {"model_name=mixtral-8x7b"}).model;
  EXPECT_EQ(mixtral.experts, 8);
  EXPECT_EQ(mixtral.experts_per_token, 2);
  EXPECT_EQ(mixtral.mlp, 14336);
  const TrainingModel qwen = read("", {"model_name=qwen3-30b-a3b"}).model;
  EXPECT_EQ(qwen.experts, 128);
  EXPECT_EQ(qwen.experts_per_token, 8);
  EXPECT_EQ(qwen.mlp, 768);
  const std::string moe = "decoder_block: mixtral\nnum_experts: 16\nnum_experts_per_tok: 4\nbase_moe_mlp_dim: 7168\n";
  EXPECT_EQ(read(moe).model.experts, 16);
  EXPECT_EQ(read(moe).model.experts_per_token, 4);
  EXPECT_EQ(read(moe + "global_parameter_scale: 2\n").model.mlp, 14336);
  EXPECT_EQ(read("capacity_factor: 1.0\nsparse_matmul: false\n").model.experts, 0);  // of a dense model they change nothing
  EXPECT_EQ(error_of(moe + "capacity_factor: 1.25\n"), "m.yml:5:18: expected capacity_factor to be -1 with experts, found \"1.25\": tokens that no expert takes");
  EXPECT_THAT(error_of(moe + "sparse_matmul: false\n"), HasSubstr("m.yml:5:16: expected sparse_matmul to be true with experts"));
  EXPECT_THAT(error_of(moe + "shared_experts: 1\n"), HasSubstr("expected shared_experts to be 0 with experts"));
  EXPECT_THAT(error_of(moe + "base_mlp_dim: 512\n"), HasSubstr("m.yml:4:19: expected base_moe_mlp_dim to be base_mlp_dim"));
  EXPECT_THAT(error_of("decoder_block: mixtral\nnum_experts: 4\nnum_experts_per_tok: 5\n"), HasSubstr("m.yml:3:22: num_experts_per_tok: expected at most the 4 experts, found 5"));
}

TEST(MaxText, AModelByNameReplacesTheFileAndMeetsOverrides) {
  EXPECT_EQ(read("base_emb_dim: 512\nmodel_name: llama2-7b\n").model.width, 4096);  // as when base.yml itself is the file
  EXPECT_EQ(read("model_name: llama2-7b\n", {"run_name=r", "base_emb_dim=4096", "max_target_length=4096"}).model.name, "r");
  EXPECT_EQ(error_of("model_name: llama2-7b\n", {"base_emb_dim=512"}),
            "base_emb_dim:1:14: expected base_emb_dim to be 4096 as in llama2-7b, found \"512\"; override_model_config=true lets it differ");
  const TrainingModel changed = read("model_name: llama2-7b\n", {"base_num_decoder_layers=4", "override_model_config=true"}).model;
  EXPECT_EQ(changed.layers, 4);
  EXPECT_EQ(changed.mlp, 11008);
  EXPECT_EQ(read("model_name: default\n").model, read("").model);
  EXPECT_THAT(error_of("model_name: llama3.1-8\n"), StartsWith("m.yml:1:13: expected model_name to be default or one of llama2-7b, "));
  EXPECT_THAT(error_of("model_name: llama3.1-8\n"), HasSubstr("did you mean \"llama3.1-8b\""));
  EXPECT_THAT(error_of("model_name: [llama2-7b]\n"), HasSubstr("m.yml:1:13: expected model_name to be default or one of"));
  EXPECT_THAT(error_of("model_name: models/llama3-8b.textproto\n"), HasSubstr("expected model_name to be default or one of"));
}

TEST(MaxText, ScalesBothHeadsAndMlpThenWidthThenLayers) {
  struct Case {
    std::int64_t scale, heads, width, layers;
  };
  for (const Case& entry : std::vector<Case>{{1, 1, 1, 1}, {2, 2, 1, 1}, {4, 2, 2, 1}, {8, 2, 2, 2}, {16, 4, 2, 2}, {32, 4, 4, 2}, {64, 4, 4, 4}, {128, 8, 4, 4}}) {
    const TrainingStep step = read("", {"global_parameter_scale=" + std::to_string(entry.scale)});
    EXPECT_EQ(step.model.heads, 16 * entry.heads) << entry.scale;
    EXPECT_EQ(step.model.kv_heads, 16 * entry.heads) << entry.scale;
    EXPECT_EQ(step.model.mlp, 7168 * entry.heads) << entry.scale;
    EXPECT_EQ(step.model.width, 2048 * entry.width) << entry.scale;
    EXPECT_EQ(step.model.layers, 16 * entry.layers) << entry.scale;
  }
  EXPECT_EQ(error_of("global_parameter_scale: 3\n"), "m.yml:1:25: expected global_parameter_scale to be a power of two, found 3");
  EXPECT_EQ(error_of("", {"global_parameter_scale=6"}), "global_parameter_scale:1:24: expected global_parameter_scale to be a power of two, found 6");
}

TEST(MaxText, AxesOfMinusOneAreTheRest) {
  EXPECT_EQ(read("ici_tensor_parallelism: 16\n", {}, {.devices = 256, .slices = 8}).mesh, (TrainingMesh{.slice = 8, .fsdp = 16, .col = 16}));
  EXPECT_EQ(read("compile_topology: v5e-256\ncompile_topology_num_slices: 2\n", {}, {}).mesh, (TrainingMesh{.slice = 2, .fsdp = 256}));
  EXPECT_EQ(read("compile_topology: v4-128\n", {}, {}).mesh, (TrainingMesh{.fsdp = 64}));  // cores, of which a device has two
  EXPECT_EQ(read("ici_fsdp_parallelism: 8\n", {}, {}).mesh, (TrainingMesh{.fsdp = 8}));
  EXPECT_EQ(read("ici_fsdp_parallelism: 8\ndcn_data_parallelism: 4\n", {}, {}).mesh, (TrainingMesh{.slice = 4, .fsdp = 8}));
  EXPECT_EQ(error_of("", {}, {}), "ici_fsdp_parallelism is -1, the rest of how many devices of a slice? The number of chips or compile_topology=v5e-256 says it");
  const std::string axes = "ici_pipeline_parallelism x ici_data_parallelism x ici_fsdp_parallelism x ici_expert_parallelism x ici_tensor_parallelism";
  EXPECT_EQ(error_of("ici_tensor_parallelism: 3\n"), "expected " + axes + " whose product divides the 4 devices of a slice, found 3");
  EXPECT_EQ(error_of("ici_fsdp_parallelism: 8\n"), "m.yml:1:23: expected " + axes + " whose product is the 4 devices of a slice, found 8");
  EXPECT_EQ(error_of("ici_tensor_parallelism: -1\n"), "m.yml:1:25: expected one axis of -1 at most, found ici_fsdp_parallelism and ici_tensor_parallelism");
}

TEST(MaxText, PipelinesAreItsLoopOverMicrobatches) {
  const TrainingStep step = read("ici_pipeline_parallelism: 4\nici_fsdp_parallelism: 1\nnum_layers_per_pipeline_stage: 2\n");
  EXPECT_EQ(step.pipeline, "gpipe");
  EXPECT_EQ(step.mesh.stage, 4);
  EXPECT_EQ(step.microbatches, 4);  // as many as stages
  EXPECT_EQ(step.virtual_stages, 2);
  EXPECT_EQ(read("gradient_accumulation_steps: 3\n").microbatches, 3);
  EXPECT_EQ(read("gradient_accumulation_steps: 3\n").batch, 144);
  EXPECT_THAT(error_of("ici_pipeline_parallelism: 4\nici_fsdp_parallelism: 1\nnum_layers_per_pipeline_stage: 3\n"), HasSubstr("m.yml:3:32: expected the 16 layers to be a multiple of 4 stages x 3"));
}

TEST(MaxText, CustomRematerialisation) {
  EXPECT_EQ(to_text(read("remat_policy: custom\ncontext: device\nmlpwo: offload\nmlpwi: remat\n").remat), "selected:attention,ff2@host");
  EXPECT_EQ(to_text(read("remat_policy: custom\n").remat), "full");
  EXPECT_THAT(error_of("remat_policy: custom\nquery_proj: device\nkey_proj: offload\n"), HasSubstr("m.yml:3:11: expected query_proj, key_proj, value_proj, qkv_proj alike"));
  EXPECT_THAT(error_of("remat_policy: minimum\n"), HasSubstr("did you mean \"minimal\""));
}

TEST(MaxText, UnknownKeysAndOtherComputationsAreErrors) {
  EXPECT_EQ(error_of("steps: 3\nbase_mpl_dim: 8\n"),
            "m.yml:2:1: expected a key of MaxText, found \"base_mpl_dim\", did you mean \"base_mlp_dim\", \"base_emb_dim\" or \"base_moe_mlp_dim\"?; unknown keys may change the computation");
  EXPECT_EQ(error_of("num_experts: 8\n"), "m.yml:1:14: expected num_experts to be 1, found \"8\": experts are those of decoder_block mixtral and qwen3_moe");
  EXPECT_EQ(error_of("quantization: int8\n"), "m.yml:1:15: expected quantization to be nothing or none or null, found \"int8\": quantised products");
  EXPECT_THAT(error_of("", {"dcn_fsdp_parallelism=2"}), StartsWith("dcn_fsdp_parallelism:1:22: expected dcn_fsdp_parallelism to be 1, found \"2\""));
  EXPECT_THAT(error_of("", {"logical_axis_rules=[]"}), HasSubstr("logical_axis_rules cannot be overridden"));
  EXPECT_THAT(error_of("mu_dtype: bfloat16\n"), HasSubstr("m.yml:1:11: expected mu_dtype to be as weight_dtype"));
  EXPECT_THAT(error_of("base_num_kv_heads: 5\n"), HasSubstr("m.yml:1:20: base_num_kv_heads: must divide the 16 heads, found 5"));
  EXPECT_THAT(error_of("base_emb_dim: many\n"), HasSubstr("m.yml:1:15: expected base_emb_dim to be a whole number from 1 to 1073741824, found \"many\""));
  EXPECT_THAT(error_of("base_emb_dim: [1]\n"), HasSubstr("found a list of 1"));
  EXPECT_THAT(error_of("per_device_batch_size: 0.3\n"), HasSubstr("m.yml:1:24: expected a whole number of sequences on 4 devices, found 0.3 on each, 1.2 in all"));
  EXPECT_THAT(error_of("scan_layers: 3\n"), HasSubstr("expected scan_layers to be true or false"));
  EXPECT_EQ(error_of("", {"base_emb_dim"}), "expected KEY=VALUE with a key of MaxText, found \"base_emb_dim\"");
  EXPECT_EQ(error_of("", {"steps=1", "steps=2"}), "steps:1:1: expected every key once, found \"steps=2\"");
  EXPECT_EQ(error_of("base_emb_dim: 0\nhead_dim: 0\n"), "m.yml:1:15: expected base_emb_dim to be a whole number from 1 to 1073741824, found \"0\"\n"
                                                        "m.yml:2:11: expected head_dim to be a whole number from 1 to 1073741824, found \"0\"");
}

TEST(MaxText, WhatIsNoYamlIsToldWithItsPlace) {
  EXPECT_EQ(error_of("a: b: c\n"), "m.yml:1:5: expected YAML: illegal map value");
  EXPECT_THAT(error_of("steps: [1, 2\n"), StartsWith("m.yml:"));
  EXPECT_THAT(error_of("- a\n- b\n"), HasSubstr("m.yml:1:1: expected a mapping of keys to values, found a scalar or a list"));
  EXPECT_THAT(error_of("just words\n"), HasSubstr("found a scalar or a list"));
  EXPECT_THAT(error_of("# nothing\n"), HasSubstr("m.yml:1:1: expected a mapping of keys to values, found nothing"));
  EXPECT_THAT(error_of("steps: 1\nsteps: 2\n"), HasSubstr("m.yml:2:1: expected every key once, found \"steps\" again"));
  EXPECT_THAT(error_of("steps: 1\n---\nsteps: 2\n"), HasSubstr("m.yml:2:1: expected one document, found another"));
  EXPECT_THAT(error_of("a: &x [1]\nb: *x\n"), HasSubstr("m.yml:1:4: expected no anchor"));
  EXPECT_THAT(error_of("steps: !!python/object:os.system x\n"), HasSubstr("expected no tag"));
  EXPECT_THAT(error_of("[1, 2]: 3\n"), HasSubstr("m.yml:1:1: expected a key, found a list or a mapping"));
  EXPECT_THAT(error_of(std::string("\x80\xff\0x", 4)), StartsWith("m.yml:"));
  EXPECT_EQ(error_of(std::string(100, '\0')).find('\0'), std::string::npos);
  EXPECT_THAT(error_of("", {"steps=[1"}), StartsWith("steps:1:"));
  EXPECT_THAT(error_of("", {"base_emb_dim={a: b}"}), HasSubstr("expected a scalar or a list, found a mapping"));
}

TEST(MaxText, HostileYamlIsRefusedQuicklyAndDoesNotCrash) {
  const auto repeated = [](const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
  };
  std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'j'; ++c) laughs += fmt::format("{}: &{} [{}]\n", c, c, repeated(fmt::format("*{},", static_cast<char>(c - 1)), 9));
  for (const std::string& text :
       {repeated("[", 100'000), repeated("{", 100'000), "a: " + repeated("[", 100'000), repeated("- ", 100'000), repeated("? ", 100'000), repeated("{a: ", 50'000), repeated("!", 100'000), laughs,
        repeated("a", 2'000'000), "a: \"" + repeated("\\x41", 100'000), repeated("a: b\n", 100'000), repeated("\"", 99'999), repeated("%", 100'000), repeated("\n", 500'000) + "[",
        repeated("a\n ", 100'000), repeated("- - ", 1000) + repeated("\n", 1000), repeated("&a ", 50'000), repeated("---\n", 50'000), repeated("\t", 100'000), "a: |\n" + repeated(" x\n", 200'000) + "b"})
    EXPECT_NE(error_of(text), "") << text.substr(0, 40);
}

TEST(MaxText, RandomBytesNeverCrash) {
  std::mt19937_64 random{3};
  const std::string start = "base_emb_dim: 512\nmlp_activations: [\"silu\", \"linear\"]\nsteps: {a: [1, 2]}\nrun_name: 'x'\nprompt: |\n  a\n  b\n";
  const std::string bytes = "[]{}:,-?&*!|>%@`'\"#\n\t ~a0\\\xff\x80";
  for (int round = 0; round < 5'000; ++round) {
    std::string text = start;
    for (std::uint64_t edits = 1 + random() % 6; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0) text.erase(at, 1 + random() % 4);
      else text.insert(at, 1, bytes[random() % bytes.size()]);
      if (text.empty()) text = "a";
    }
    const auto step = read_maxtext(text, "m.yml", {}, four);
    ASSERT_TRUE(step || !step.error().message.empty());
  }
}

TEST(MaxText, WhatIsWrittenReadsAsTheSameStep) {
  std::mt19937_64 random{11};
  const auto pick = [&](std::int64_t low, std::int64_t high) { return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1)); };
  const Words remats{"none", "full", "selected:in_proj", "selected:in_proj@host", "selected:in_proj,out_proj,ff1,ff2", "selected:attention@host,ff1", "selected:out_proj,ff2@host"};
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    TrainingStep step;
    TrainingModel& model = step.model;
    model.name = pick(0, 1) == 1 ? "maxtext" : fmt::format("run-{}", pick(0, 99));
    model.width = pick(1, 20000), model.kv_heads = pick(1, 16), model.heads = model.kv_heads * pick(1, 16), model.head_dim = pick(1, 256), model.mlp = pick(1, 60000);
    model.gated = pick(0, 1) == 1, model.vocabulary = pick(1, 300000), model.tied = pick(0, 1) == 1, model.sequence = pick(1, 10000);
    model.biases = pick(0, 1) == 1, model.norm = model.biases ? Norm::layer : Norm::rms;
    if (!model.biases && pick(0, 1) == 1) model.experts = pick(1, 256), model.experts_per_token = pick(1, model.experts);
    if (pick(0, 2) == 0) model.positions = model.sequence + pick(0, 5);
    model.weights = model.moments = pick(0, 1) == 1 ? DType::f32 : DType::bf16;
    model.gradients = pick(0, 1) == 1 ? DType::f32 : DType::bf16, model.activations = pick(0, 1) == 1 ? DType::f32 : DType::bf16;
    step.mesh = {pick(1, 9), pick(1, 3), pick(1, 7), pick(1, 300), pick(1, 3), 1, pick(1, 17)};
    step.virtual_stages = step.mesh.stage > 1 ? pick(1, 4) : 1;
    step.pipeline = step.mesh.stage > 1 ? "gpipe" : "";
    model.layers = step.mesh.stage * step.virtual_stages * pick(1, 9);
    step.batch = pick(1, 5'000'000), step.microbatches = pick(1, 60);
    step.remat = *parse_remat(remats[static_cast<std::size_t>(pick(0, 6))], {});
    step.scan = pick(0, 1) == 1, step.optimizer = pick(0, 1) == 1 ? Optimizer::adamw : Optimizer::sgd;
    step.embedding_by_product = pick(0, 1) == 1, step.loss_chunks = pick(1, 8);
    step.shard_optimizer_over_data = step.mesh.slice == 1 && pick(0, 1) == 1;
    const auto text = to_maxtext(step);
    ASSERT_TRUE(text) << to_text(text.error());
    const auto again = read_maxtext("", "", split(*text, ' '), {});
    ASSERT_TRUE(again) << to_text(again.error()) << "\n" << *text;
    EXPECT_EQ(*again, step) << *text;
  }
}

TEST(MaxText, HasNoKeyForSomeSteps) {
  const TrainingStep step = read("");
  const auto told = [&](auto change) {
    TrainingStep other = step;
    change(other);
    const auto text = to_maxtext(other);
    return text ? "" : text.error().message;
  };
  EXPECT_EQ(told([](TrainingStep&) {}), "");
  EXPECT_EQ(told([](TrainingStep& s) { s.model.parallel = true; }), "MaxText has no key for parallel layers");
  EXPECT_EQ(told([](TrainingStep& s) { s.mesh.row = 2; }), "MaxText has no key for an axis row");
  EXPECT_EQ(told([](TrainingStep& s) { s.mesh.stage = 2, s.pipeline = "1f1b"; }), "MaxText has no key for the pipeline \"1f1b\"");
  EXPECT_EQ(told([](TrainingStep& s) { s.remat = *parse_remat("selected:norm1", {}); }), "MaxText has no key for a saved output of norm1");
  EXPECT_EQ(told([](TrainingStep& s) { s.model.moments = DType::bf16; }), "MaxText has no key for moments of another dtype than the weights");
}

// The model sizes that MaxText's configurations for TPU are named by (README.md), in billions.
TEST(MaxText, NamesOfItsConfigurations) {
  const auto billions = [](const Words& overrides) { return static_cast<double>(counts_of(read("", overrides)).parameters()) / 1e9; };
  const Words v4_22b{"base_emb_dim=6144", "base_mlp_dim=24576", "base_num_query_heads=24", "base_num_kv_heads=24", "base_num_decoder_layers=48"};
  const Words v4_52b{"base_emb_dim=12288", "base_mlp_dim=49152", "base_num_query_heads=32", "base_num_kv_heads=32", "base_num_decoder_layers=32"};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Words wide_heads{"head_dim=256"}, two_matrices{"mlp_activations=[gelu]"}, both{"head_dim=256", "mlp_activations=[gelu]"};
  EXPECT_NEAR(billions(v4_22b), 25.76, 0.01);
  EXPECT_NEAR(billions(with(v4_22b, wide_heads)), 29.38, 0.01);
  EXPECT_NEAR(billions(with(v4_22b, two_matrices)), 18.51, 0.01);
  EXPECT_NEAR(billions(with(v4_22b, both)), 22.14, 0.01);
  EXPECT_NEAR(billions(v4_52b), 65.21, 0.01);
  EXPECT_NEAR(billions(with(v4_52b, both)), 52.33, 0.01);
}

}  // namespace
}  // namespace podsim
