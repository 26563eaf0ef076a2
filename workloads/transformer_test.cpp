// Transformer blocks: what a file may say, what is shipped, and the stages and parameters that follow.
#include "workloads/transformer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace podsim {
namespace {

using ::testing::HasSubstr;

constexpr const char* smallest = "format_version: 1\nname: \"b\"\nheads: 4\nhead_dim: 8\nff: 64\n";

TransformerBlock block_of(const std::string& text) {
  const auto block = read_transformer_block(text, "f");
  EXPECT_TRUE(block) << to_text(block.error());
  return block ? *block : TransformerBlock{};
}
std::string error_of(const std::string& text) {
  const auto block = read_transformer_block(text, "f");
  return block ? "" : to_text(block.error());
}

TEST(TransformerBlock, WhatIsLeftOutFollows) {
  const TransformerBlock block = block_of(smallest);
  EXPECT_EQ(block.hidden, 32) << "heads * head_dim";
  EXPECT_EQ(block.kv_heads, 4) << "as many as heads";
  EXPECT_EQ(block.batch, 0) << "as many as devices";
  EXPECT_EQ(block.norm, Norm::layer);
  EXPECT_EQ(block.dtype, DType::bf16);
  EXPECT_EQ(block.layers, 1);
  EXPECT_EQ(block.sequence, 2048);
  EXPECT_EQ(block.optimizer_bytes, 12);
  EXPECT_TRUE(block.residuals && block.attention && block.causal && !block.gated);
}

TEST(TransformerBlock, ReadsWhatIsSaid) {
  const TransformerBlock block =
      block_of(std::string{smallest} +
               "kv_heads: 2\nhidden: 48\ngated: true\nnorm: rms\nresiduals: false\nattention: false\ncausal: false\n"
               "sequence: 16\nbatch: 3\nlayers: 5\ndtype: \"f32\"\noptimizer_bytes_per_parameter: 0\ndescription: \"d\"\n");
  TransformerBlock expected;
  expected.name = "b", expected.description = "d";
  expected.hidden = 48, expected.heads = 4, expected.kv_heads = 2, expected.head_dim = 8, expected.ff = 64;
  expected.gated = true, expected.residuals = expected.attention = expected.causal = false, expected.norm = Norm::rms;
  expected.sequence = 16, expected.batch = 3, expected.layers = 5, expected.dtype = DType::f32, expected.optimizer_bytes = 0;
  EXPECT_EQ(block, expected);
}

TEST(TransformerBlock, SaysWhereAFileIsWrong) {
  const std::string text = smallest;
  EXPECT_THAT(error_of(text + "wings: 2\n"), HasSubstr("f:6:"));
  EXPECT_THAT(error_of(text + "wings: 2\n"), HasSubstr("wings"));
  EXPECT_EQ(error_of(text + "kv_heads: 3\n"), "f:6:1: must divide the 4 heads, found 3");
  EXPECT_EQ(error_of(text + "  batch: 0\n"), "f:6:3: expected a whole number from 1 to 1073741824, found 0");
  EXPECT_EQ(error_of(text + "sequence: 1073741825\n"), "f:6:1: expected a whole number from 1 to 1073741824, found 1073741825");
  EXPECT_EQ(error_of(text + "kv_heads: -4\n"), "f:6:1: expected a whole number from 1 to 1073741824, found -4");
  EXPECT_EQ(error_of(text + "dtype: \"int8\"\n"), "f:6:1: expected bf16 or f32, found \"int8\"");
  EXPECT_EQ(error_of(text + "optimizer_bytes_per_parameter: -1\n"), "f:6:1: expected 0 to 1024, found -1");
  EXPECT_THAT(error_of(text + "norm: batch\n"), HasSubstr("f:6:"));
  EXPECT_THAT(error_of("format_version: 2\nname: \"b\"\nheads: 4\nhead_dim: 8\nff: 64\n"), HasSubstr("f:1:1: "));
  EXPECT_THAT(error_of("format_version: 1\nname: \"\"\nheads: 4\nhead_dim: 8\nff: 64\n"), HasSubstr("f:2:1: expected a name"));
  EXPECT_THAT(error_of("format_version: 1\nname: \"b\"\nhead_dim: 8\nff: 64\n"), HasSubstr("heads"));
  EXPECT_THAT(error_of("format_version: 1\nname: \"b\"\nheads: 0\nhead_dim: 8\nff: 64\n"), HasSubstr("f:3:1: "));
}

TEST(TransformerBlock, EveryShippedOneReads) {
  const std::vector<std::string> names = shipped_transformer_blocks();
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("gpt3-block", "megatron-nlg-block", "llama3-8b-block", "llama3-70b-block", "llama3-405b-block"));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    const auto block = find_transformer_block(name);
    ASSERT_TRUE(block) << to_text(block.error());
    EXPECT_EQ(block->name, name);
    EXPECT_FALSE(block->description.empty());
    EXPECT_TRUE(workload_of(*block, 64));
  }
}

std::int64_t parameters(const std::string& name) { return parameters_of(*workload_of(*find_transformer_block(name), 1)); }

TEST(TransformerBlock, ParametersAreThePublishedOnes) {
  EXPECT_EQ(parameters("gpt3-block"), 12 * std::int64_t{12288} * 12288);
  EXPECT_EQ(parameters("megatron-nlg-block"), 12 * std::int64_t{20480} * 20480);
  // Queries and output, keys and values of 8 heads, gate, up and down.
  const auto llama = [](std::int64_t hidden, std::int64_t ff) { return 2 * hidden * hidden + 2 * hidden * 8 * 128 + 3 * hidden * ff; };
  EXPECT_EQ(parameters("llama3-8b-block"), llama(4096, 14336));
  EXPECT_EQ(parameters("llama3-70b-block"), llama(8192, 28672));
  EXPECT_EQ(parameters("llama3-405b-block"), llama(16384, 53248));
  EXPECT_EQ(parameters("gpt3-mlp"), 8 * std::int64_t{12288} * 12288);
  EXPECT_EQ(parameters("llama3-70b-mlp"), std::int64_t{3} * 8192 * 28672);
}

TEST(TransformerBlock, WithMlpInPlaceOfBlockTheMlpAlone) {
  const auto block = find_transformer_block("llama3-70b-mlp");
  ASSERT_TRUE(block) << to_text(block.error());
  EXPECT_EQ(block->name, "llama3-70b-mlp");
  EXPECT_FALSE(block->attention);
  std::vector<std::string> names;
  const auto workload = workload_of(*block, 4);
  for (const Stage& stage : workload->stages) names.push_back(stage.name);
  EXPECT_EQ(names, (std::vector<std::string>{"norm2", "ff1", "activation", "ff2", "residual2"}));
}

TEST(TransformerBlock, NamesThatAreNear) {
  const auto near = find_transformer_block("gpt3-blok");
  ASSERT_FALSE(near);
  EXPECT_THAT(to_text(near.error()), HasSubstr("there is no workload \"gpt3-blok\""));
  EXPECT_THAT(to_text(near.error()), HasSubstr("did you mean \"gpt3-block\""));
  const auto far = find_transformer_block("resnet");
  ASSERT_FALSE(far);
  EXPECT_THAT(to_text(far.error()), HasSubstr("shipped are gpt3-block, llama3-405b-block, "));
  const auto no_mlp = find_transformer_block("gpt4-mlp");
  ASSERT_FALSE(no_mlp);
  EXPECT_THAT(to_text(no_mlp.error()), HasSubstr("there is no workload \"gpt4-mlp\""));
  for (const char* path : {"no/such/file", "nothing.textproto"}) {
    const auto missing = find_transformer_block(path);
    ASSERT_FALSE(missing);
    EXPECT_THAT(to_text(missing.error()), HasSubstr("cannot read the file: No such file or directory"));
  }
}

TEST(TransformerBlock, IsReadFromAFile) {
  const std::string path = ::testing::TempDir() + "podsim_block.textproto";
  std::ofstream{path} << smallest << "kv_heads: 3\n";
  const auto wrong = find_transformer_block(path);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(to_text(wrong.error()), path + ":6:1: must divide the 4 heads, found 3");
  std::ofstream{path} << smallest;
  const auto block = find_transformer_block(path);
  ASSERT_TRUE(block) << to_text(block.error());
  EXPECT_EQ(block->name, "b");
}

// ---- Stages ---------------------------------------------------------------------------------------------------------------------------

std::vector<std::string> stages_of(const Workload& workload) {
  std::vector<std::string> lines;
  for (const Stage& s : workload.stages)
    lines.push_back(s.name + " " + std::to_string(s.tokens) + "x" + std::to_string(s.inputs) + "->" + std::to_string(s.outputs));
  return lines;
}

TEST(Workload, StagesOfABlock) {
  TransformerBlock block = block_of(std::string{smallest} + "kv_heads: 2\nhidden: 48\ngated: true\nsequence: 16\n");
  const auto whole = workload_of(block, 4);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->block->batch, 4) << "as many sequences as devices";
  EXPECT_THAT(stages_of(*whole),
              ::testing::ElementsAre("norm1 64x48->48", "in_proj 64x48->64", "attention 64x64->32", "out_proj 64x32->48", "residual1 64x48->48",
                                     "norm2 64x48->48", "ff1 64x48->128", "activation 64x128->64", "ff2 64x64->48", "residual2 64x48->48"));
  EXPECT_TRUE(whole->data_flows() && whole->layouts_meet());
  const auto products = workload_of(block, 4, Only::gemm);
  EXPECT_THAT(stages_of(*products), ::testing::ElementsAre("in_proj 64x48->64", "out_proj 64x32->48", "ff1 64x48->128", "ff2 64x64->48"));
  EXPECT_TRUE(!products->data_flows() && products->layouts_meet());
  EXPECT_EQ(workload_of(block, 4, Only::other)->stages.size(), 6U);
  block.norm = Norm::none, block.residuals = false, block.gated = false, block.batch = 3;
  EXPECT_THAT(stages_of(*workload_of(block, 4)), ::testing::ElementsAre("in_proj 48x48->64", "attention 48x64->32", "out_proj 48x32->48",
                                                                        "ff1 48x48->64", "activation 48x64->64", "ff2 48x64->48"));
}

TEST(Workload, HasATokenLimit) {
  TransformerBlock block = block_of(std::string{smallest} + "sequence: 1048576\nbatch: 1048576\n");
  EXPECT_TRUE(workload_of(block, 4));
  block.batch += 1;
  const auto too_many = workload_of(block, 4);
  ASSERT_FALSE(too_many);
  EXPECT_EQ(to_text(too_many.error()), "1048577 sequences of 1048576 are more than 2^40 tokens");
}

TEST(Workload, OfProducts) {
  const auto workload = workload_of(std::vector<NamedProduct>{{2, 3, 4, DType::f32}, {5, 6, 7, DType::f32}});
  ASSERT_TRUE(workload);
  EXPECT_THAT(stages_of(*workload), ::testing::ElementsAre("gemm1 2x4->3", "gemm2 5x7->6"));
  EXPECT_EQ(workload->dtype, DType::f32);
  EXPECT_TRUE(!workload->data_flows() && !workload->layouts_meet());
  EXPECT_EQ(parameters_of(*workload), 4 * 3 + 7 * 6);
  EXPECT_FALSE(workload_of(std::vector<NamedProduct>{}));
  const auto mixed = workload_of(std::vector<NamedProduct>{{2, 3, 4, DType::f32}, {5, 6, 7, DType::bf16}});
  ASSERT_FALSE(mixed);
  EXPECT_THAT(to_text(mixed.error()), HasSubstr("one dtype"));
}

TEST(Workload, OnlyIsNamed) {
  EXPECT_EQ(only_named("gemm"), Only::gemm);
  EXPECT_EQ(only_named("other"), Only::other);
  EXPECT_EQ(only_named("everything"), std::nullopt);
}

// Keys and values of a group are on one device; few kv heads are computed on several.
TEST(AttentionGroups, TheTable) {
  struct Row {
    std::int64_t heads, kv_heads, devices;
    std::optional<std::int64_t> groups;
  };
  for (const Row& row : {Row{64, 8, 1, 8}, Row{64, 8, 4, 8}, Row{64, 8, 8, 8}, Row{64, 8, 16, 16}, Row{64, 8, 64, 64}, Row{64, 8, 128, std::nullopt},
                         Row{64, 8, 12, std::nullopt}, Row{64, 8, 3, std::nullopt}, Row{96, 96, 32, 96}, Row{96, 96, 64, std::nullopt},
                         Row{96, 96, 192, std::nullopt}, Row{12, 4, 6, std::nullopt}, Row{12, 1, 6, 6}, Row{48, 8, 24, 24}}) {
    TransformerBlock block;
    block.heads = row.heads, block.kv_heads = row.kv_heads, block.head_dim = 2;
    EXPECT_EQ(attention_groups(block, row.devices), row.groups)
        << row.heads << " heads, " << row.kv_heads << " groups, " << row.devices << " devices";
    EXPECT_TRUE(!row.groups || qkv_features(block, *row.groups) == (row.heads + 2 * *row.groups) * 2);
  }
}

}  // namespace
}  // namespace podsim
