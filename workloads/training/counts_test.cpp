#include "workloads/training/counts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace podsim {
namespace {

TrainingModel shipped(const std::string& name) {
  const auto model = find_training_model(name);
  EXPECT_TRUE(model) << name;
  return model ? *model : TrainingModel{};
}

TrainingStep step_of(const TrainingModel& model, std::int64_t batch, const std::string& remat = "none") {
  TrainingStep step;
  step.model = model;
  step.batch = batch;
  step.remat = *parse_remat(remat, {});
  return step;
}

double billions(const std::string& name) { return static_cast<double>(counts_of(step_of(shipped(name), 1)).parameters()) / 1e9; }

TEST(TrainingCounts, ParametersAreThePublishedOnes) {
  EXPECT_NEAR(billions("gpt3-175b"), 174.6, 0.05);   // Brown et al. 2020, appendix D: 174,600 M
  EXPECT_NEAR(billions("palm-540b"), 540.35, 0.01);  // Chowdhery et al. 2022, table 1
  EXPECT_NEAR(billions("llama3-8b"), 8.03, 0.005);   // the published weights
  EXPECT_NEAR(billions("llama3-70b"), 70.55, 0.005);
  EXPECT_NEAR(billions("llama3-405b"), 405.85, 0.005);
  EXPECT_NEAR(billions("llama2-7b"), 6.74, 0.005);  // the published weights
  EXPECT_NEAR(billions("llama2-13b"), 13.02, 0.005);
  EXPECT_NEAR(billions("llama2-70b"), 68.98, 0.005);
  EXPECT_NEAR(billions("llama3.2-1b"), 1.24, 0.005);  // its model card: 1.23B; safetensors 1.24B
  EXPECT_NEAR(billions("llama3.2-3b"), 3.21, 0.005);
  EXPECT_NEAR(billions("gemma-2b"), 1.982 + 0.525, 0.001);  // Gemma Team 2024, table 2: others and embedding, the latter with padded rows
  EXPECT_NEAR(billions("gemma-7b"), 7.751 + 0.787, 0.001);
  EXPECT_NEAR(billions("mistral-7b"), 7.24, 0.005);
}

TEST(TrainingCounts, ParametersApartFromEmbeddingsAreThePublishedOnes) {
  const auto others = [](const std::string& name) {
    const TrainingModel model = shipped(name);
    return billions(name) - static_cast<double>((model.tied ? 1 : 2) * model.vocabulary * model.width) / 1e9;
  };
  EXPECT_NEAR(others("qwen3-0.6b"), 0.44, 0.005);  // Qwen's model cards, "Number of Paramaters (Non-Embedding)"
  EXPECT_NEAR(others("qwen3-1.7b"), 1.4, 0.05);
  EXPECT_NEAR(others("qwen3-4b"), 3.6, 0.05);
  EXPECT_NEAR(others("qwen3-8b"), 6.95, 0.005);
  EXPECT_NEAR(others("qwen3-14b"), 13.2, 0.05);
  EXPECT_NEAR(others("qwen3-32b"), 31.2, 0.05);
  EXPECT_NEAR(others("nemotron4-15b"), 12.5, 0.05);  // Parmar et al. 2024, section 2
  EXPECT_NEAR(others("nemotron4-340b"), 331.6, 0.05);  // NVIDIA 2024, section 2
}

TEST(TrainingCounts, ParametersOfExpertsAreThePublishedOnes) {
  const auto active = [](const std::string& name) { return static_cast<double>(active_parameters(step_of(shipped(name), 1))) / 1e9; };
  EXPECT_NEAR(billions("mixtral-8x7b"), 46.7, 0.05);  // mistral.ai, 2023-12-11: 46.7B in all, 12.9B for each token
  EXPECT_NEAR(active("mixtral-8x7b"), 12.9, 0.05);
  EXPECT_NEAR(billions("mixtral-8x22b"), 141, 0.5);  // mistral.ai, 2024-04-17: 39B of 141B
  EXPECT_NEAR(active("mixtral-8x22b"), 39, 0.5);
  EXPECT_NEAR(billions("qwen3-30b-a3b"), 30.5, 0.05);  // Qwen's model cards: 30.5B and 3.3B, 235B and 22B
  EXPECT_NEAR(active("qwen3-30b-a3b"), 3.3, 0.06);
  EXPECT_NEAR(billions("qwen3-235b-a22b"), 235, 0.5);
  EXPECT_NEAR(active("qwen3-235b-a22b"), 22, 0.5);
  EXPECT_EQ(active("llama3-8b"), billions("llama3-8b"));
}

// Rates that published rows have both in tokens and in TFLOP/s: their quotient is the FLOPs of a token, without anything simulated.
TEST(TrainingCounts, FlopsOfATokenAreThoseOfPublishedRowsOfExperts) {
  const auto of_token = [](const std::string& name, std::int64_t sequence, AttentionFlops attention) {
    TrainingStep step = step_of(shipped(name), 1);
    step.model.sequence = sequence;
    EXPECT_NEAR(maxtext_flops(step, attention).count() / counts_of(step, attention).model_flops().count(), 1, 1e-12);
    return counts_of(step, attention).model_flops().count() / static_cast<double>(step.tokens());
  };
  // MaxText, docs/reference/models/tiering.md at e591f30c: Mixtral 8x7B on v5p, 241.3 TFLOP/s and 2,909 tokens/s a device, attention counted whole
  EXPECT_NEAR(of_token("mixtral-8x7b", 4096, AttentionFlops::whole) / (241.3e12 / 2909), 1, 0.003);
  // Megatron-Bridge, docs/performance-summary-archive.md at 067f987d, lines 132 and 258: 203 TFLOP/s and 8,826 tokens/s; 253 and 1,712. Whole numbers of TFLOP/s
  EXPECT_NEAR(of_token("qwen3-30b-a3b", 4096, AttentionFlops::causal) / (203e12 / 8826), 1, 0.005);
  EXPECT_NEAR(of_token("qwen3-235b-a22b", 4096, AttentionFlops::causal) / (253e12 / 1712), 1, 0.005);
}

TEST(TrainingCounts, ExpertsHaveTheFlopsOfTheTokensThatTheyTake) {
  TrainingModel dense = shipped("mixtral-8x7b");
  dense.experts = dense.experts_per_token = 0;
  TrainingModel experts = dense;
  experts.experts = 8, experts.experts_per_token = 1;
  const double router = 6.0 * 32 * 4096 * 4096 * 8;  // of one sequence
  EXPECT_EQ(counts_of(step_of(experts, 1)).model_flops().count() - counts_of(step_of(dense, 1)).model_flops().count(), router);
  EXPECT_EQ(counts_of(step_of(experts, 1)).parameters() - counts_of(step_of(dense, 1)).parameters(), std::int64_t{32} * (7 * 3 * std::int64_t{4096} * 14336 + 4096 * 8));
}

TEST(TrainingCounts, MegatronsMeetItsFormula) {  // Narayanan et al. 2021, equation 2: 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)); without the last norm
  for (const char* name : {"megatron-22b", "megatron-175b", "megatron-530b", "megatron-1t"}) {
    const TrainingModel model = shipped(name);
    const std::int64_t l = model.layers, h = model.width;
    EXPECT_EQ(counts_of(step_of(model, 1)).parameters(), 12 * l * h * h + 13 * l * h + (model.vocabulary + model.sequence) * h + 2 * h) << name;
  }
  EXPECT_NEAR(billions("megatron-175b"), 174.6, 0.05);  // table 1 there
  EXPECT_NEAR(billions("megatron-530b"), 529.6, 0.05);
  EXPECT_NEAR(billions("megatron-1t"), 1008.0, 0.05);
  EXPECT_NEAR(billions("megatron-22b"), 22.07, 0.01);
}

TEST(TrainingCounts, ModelFlopsOfMegatronMeetItsFormula) {  // Korthikanti et al. 2022, equation 7: 72 B l s h^2 (1 + s / (6 h) + V / (12 h l))
  const TrainingModel model = shipped("megatron-530b");
  const double B = 280, l = static_cast<double>(model.layers), s = static_cast<double>(model.sequence), h = static_cast<double>(model.width),
               V = static_cast<double>(model.vocabulary);
  const double formula = 72 * B * l * s * h * h * (1 + s / (6 * h) + V / (12 * h * l));
  EXPECT_NEAR(counts_of(step_of(model, 280)).model_flops().count() / formula, 1, 1e-12);
}

TEST(TrainingCounts, PalmsTokensPerSecondAreItsUtilisation) {  // 238.3K tokens/s on 6144 chips of 275 TFLOP/s: MFU 46.2 %, 45.7 % without attention
  const TrainingStep step = step_of(shipped("palm-540b"), 2048);
  const TrainingCounts counts = counts_of(step);
  const double steps_per_second = 238.3e3 / static_cast<double>(step.tokens()), peak = 6144 * 275e12;
  EXPECT_NEAR(counts.model_flops().count() * steps_per_second / peak, 0.462, 0.0005);
  double attention = 0;
  for (const PartCount& part : counts.parts)
    if (part.name == "attention") attention = (part.forward + part.backward).count();
  EXPECT_NEAR((counts.model_flops().count() - attention) * steps_per_second / peak, 0.457, 0.0005);
}

TEST(TrainingCounts, AgreeWithMaxTextsFormulaWhichCountsApart) {
  std::mt19937_64 random{7};
  const auto pick = [&](std::int64_t low, std::int64_t high) { return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1)); };
  for (int round = 0; round < 200; ++round) {
    TrainingModel model;
    model.name = "m";
    model.layers = pick(1, 100), model.width = pick(1, 10000), model.kv_heads = pick(1, 16), model.heads = model.kv_heads * pick(1, 8), model.head_dim = pick(1, 300);
    model.mlp = pick(1, 40000), model.gated = pick(0, 1) == 1, model.vocabulary = pick(1, 300000), model.tied = pick(0, 1) == 1, model.sequence = pick(1, 9000);
    if (pick(0, 1) == 1) model.experts = pick(1, 64), model.experts_per_token = pick(1, model.experts);
    const TrainingStep step = step_of(model, pick(1, 4000), "full");
    for (const AttentionFlops attention : {AttentionFlops::whole, AttentionFlops::causal})
      EXPECT_NEAR(counts_of(step, attention).model_flops().count() / maxtext_flops(step, attention).count(), 1, 1e-12) << round;
  }
}

TEST(TrainingCounts, AProductPerOneHotEmbeddingIsNoWorkOfTheModel) {
  TrainingStep step = step_of(shipped("maxtext-default"), 4);
  const TrainingCounts gather = counts_of(step);
  step.embedding_by_product = true;
  const TrainingCounts product = counts_of(step);
  EXPECT_EQ(product.model_flops(), gather.model_flops());
  EXPECT_EQ(product.hardware_flops().count() - gather.hardware_flops().count(), 4.0 * 4 * 2048 * 32000 * 2048);  // forward and dW
}

TEST(Recomputation, IsWhatTheBackwardPassNeeds) {
  using Names = std::vector<std::string>;
  const TrainingModel serial = shipped("llama3-8b"), parallel = shipped("palm-540b");
  const auto again = [](const TrainingModel& model, const std::string& remat) { return recomputed_stages(model, *parse_remat(remat, {})); };
  EXPECT_EQ(again(serial, "none"), Names{});
  // Not the last product: its output only goes on to the next layer, whose input is kept.
  EXPECT_EQ(again(serial, "full"), (Names{"norm1", "in_proj", "attention", "out_proj", "residual1", "norm2", "ff1", "activation"}));
  EXPECT_EQ(again(serial, "selected:in_proj"), (Names{"norm1", "attention", "out_proj", "residual1", "norm2", "ff1", "activation"}));
  // The sum of the residual is enough for the second half, so that out_proj is not computed again.
  EXPECT_EQ(again(serial, "selected:residual1"), (Names{"norm1", "in_proj", "attention", "norm2", "ff1", "activation"}));
  EXPECT_EQ(again(serial, "selected:in_proj,attention,out_proj,ff1,ff2@host"), (Names{"norm1", "residual1", "norm2", "activation"}));
  // The whole layer has its last product, too.
  EXPECT_EQ(again(serial, "layer"),
            (Names{"norm1", "in_proj", "attention", "out_proj", "residual1", "norm2", "ff1", "activation", "ff2", "residual2"}));
  // Behind experts, the gradient of the weights with which combine adds up needs what it adds up.
  EXPECT_EQ(again(shipped("mixtral-8x7b"), "full"),
            (Names{"norm1", "in_proj", "attention", "out_proj", "residual1", "norm2", "router", "dispatch", "ff1", "activation", "ff2"}));
  // A parallel layer adds its branches up at the end: neither last product is needed.
  EXPECT_EQ(again(parallel, "full"), (Names{"norm1", "in_proj", "attention", "ff1", "activation"}));
}

// The profile of MaxText on TPU v5p with remat_policy=full (tpu_v5p_2x2_maxtext_hlo_ops.csv) has eight large products in its backward loop: two of gate and
// up again, six gradients. Down is not among those computed again.
TEST(Recomputation, OfMaxTextsFullPolicyLeavesOutTheLastProduct) {
  const TrainingStep step = step_of(shipped("maxtext-default"), 4, "full");
  double again = 0, one = 0;
  for (const PartCount& part : counts_of(step).parts) {
    if (part.name == "ff1") again += part.recomputed.count(), one = part.forward.count() / 2;
    if (part.name == "ff2") again += part.recomputed.count();
  }
  EXPECT_EQ(again, 2 * one);
}

TEST(TrainingMemory, OfAReplicatedModelIsItsParametersAndActivations) {
  TrainingModel model{.name = "m", .description = "", .layers = 3, .width = 8, .heads = 2, .kv_heads = 1, .head_dim = 4, .mlp = 32, .vocabulary = 100, .norm = Norm::rms, .sequence = 16};
  model.master_weights = true;
  TrainingStep step = step_of(model, 64);
  const std::int64_t layer = 8 * 16 + 8 * 8 + 2 * 8 * 32 + 2 * 8, parameters = 3 * layer + 2 * 100 * 8 + 8;
  EXPECT_EQ(counts_of(step).parameters(), parameters);
  TrainingMemory memory = memory_of(step, {}, 1);
  EXPECT_EQ(memory.weights, Bytes{2 * parameters});
  EXPECT_EQ(memory.gradients, Bytes{}) << "the peak is at the loss";
  EXPECT_EQ(memory.optimizer, Bytes{12 * parameters});
  // Per token: input, norm1, q k v, attention, residual1, norm2, ff1, activation.
  const std::int64_t kept = 8 + 8 + 16 + 8 + 8 + 8 + 32 + 32, tokens = 64 * 16;
  EXPECT_EQ(memory.activations, Bytes{2 * tokens * (3 * kept + 8)});
  EXPECT_EQ(memory.working,
            Bytes{2 * (tokens * 100 + 100 * 8 + 2 * tokens * 8)});  // logits, their weights' gradient, the final norm's output and its gradient
  step.microbatches = 2;
  EXPECT_EQ(memory_of(step, {}, 1).gradients, Bytes{2 * parameters}) << "those of the microbatches before are kept";
  step.microbatches = 1;
  step.remat = *parse_remat("full", {});
  EXPECT_EQ(memory_of(step, {}, 1).activations, Bytes{2 * tokens * (3 * 8 + 8)});
  step.remat = *parse_remat("selected:in_proj,ff1@host", {});
  EXPECT_EQ(memory_of(step, {}, 1).activations, Bytes{2 * tokens * (3 * (8 + 16) + 8)});
  step.optimizer = Optimizer::sgd;
  EXPECT_EQ(memory_of(step, {}, 1).optimizer, Bytes{4 * parameters});
  step.mesh.data = 8, step.shard_optimizer_over_data = true;
  EXPECT_EQ(memory_of(step, {}, 1).optimizer, Bytes{4 * parameters / 8});
}

TEST(TrainingMemory, OfExpertsHasEachCopyOfAToken) {
  TrainingModel model{.name = "m", .description = "", .layers = 3, .width = 8, .heads = 2, .kv_heads = 1, .head_dim = 4, .mlp = 32, .experts = 4, .experts_per_token = 2,
                      .vocabulary = 100, .norm = Norm::rms, .sequence = 16};
  const TrainingMemory memory = memory_of(step_of(model, 64), {}, 1);
  // Per token: input, norm1, q k v, attention, residual1, norm2, router; of both copies dispatch, ff1, activation, ff2.
  const std::int64_t kept = 8 + 8 + 16 + 8 + 8 + 8 + 4 + 2 * (8 + 32 + 32 + 8), tokens = 64 * 16;
  EXPECT_EQ(memory.activations, Bytes{2 * tokens * (3 * kept + 8)});
  EXPECT_EQ(memory.weights, Bytes{2 * (3 * (8 * 16 + 8 * 8 + 8 * 4 + 4 * 2 * 8 * 32 + 2 * 8) + 2 * 100 * 8 + 8)});
}

TEST(TrainingMemory, OfShardsIsTheirPart) {
  TrainingStep step = step_of(shipped("llama3-70b"), 256, "full");
  const std::int64_t whole = counts_of(step).parameters();
  step.mesh = {.slice = 2, .data = 2, .fsdp = 16, .col = 4};
  step.microbatches = 4;
  ASSERT_TRUE(divided(step));
  const TrainingMemory memory = memory_of(step, {}, 1);
  EXPECT_EQ(memory.weights, Bytes{2 * whole / 64});
  // One sequence on each device, its width divided by col.
  EXPECT_EQ(memory.activations, Bytes{std::int64_t{80} * 8192 * 8192 / 4 * 2 + 8192 * 8192 / 4 * 2});
  step.mesh = {.stage = 8};
  step.pipeline = "1f1b", step.virtual_stages = 2;
  ASSERT_TRUE(divided(step));
  TrainingMemory sum;
  for (int rank = 0; rank < 8; ++rank) sum.weights += memory_of(step, {rank == 0, rank == 7}, 1).weights;
  EXPECT_EQ(sum.weights, Bytes{2 * whole});  // nothing is held twice
  const TrainingMemory middle = memory_of(step, {false, false}, 8);
  EXPECT_EQ(middle.activations, Bytes{std::int64_t{8} * 5 * 64 * 8192 * 8192 * 2});  // live forwards x layers x tokens of a microbatch x width
}

TEST(Padding, WasteIsCountedPartByPart) {
  TrainingStep given = step_of(shipped("gpt3-175b"), 8);
  given.mesh.col = 8, given.pad = true;
  const auto result = divided(given);
  ASSERT_TRUE(result);
  const std::vector<PaddedCount> waste = padding_waste(given, result->step);
  ASSERT_EQ(waste.size(), 2U);  // seven more rows of the vocabulary
  EXPECT_EQ(waste[0].name, "embedding");
  EXPECT_EQ(waste[0].parameters, 7 * 12288);
  EXPECT_EQ(waste[1].name, "logits");
  EXPECT_EQ(waste[1].flops.count(), 6.0 * 8 * 2048 * 12288 * 7);
}

}  // namespace
}  // namespace podsim
