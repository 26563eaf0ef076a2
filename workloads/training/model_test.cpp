#include "workloads/training/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace podsim {
namespace {

using ::testing::HasSubstr;

const std::string head = "format_version: 1\nname: \"m\"\n";

std::string problem_of_file(const std::string& fields) {
  const auto model = read_training_model(head + fields, "m.textproto");
  return model ? "" : to_text(model.error());
}

TEST(TrainingModel, LeftOutFieldsHaveDefaults) {
  const auto model = read_training_model(head + "layers: 2\nwidth: 64\nheads: 4\nmlp: 256\n", "m");
  ASSERT_TRUE(model) << to_text(model.error());
  EXPECT_EQ(model->kv_heads, 4);
  EXPECT_EQ(model->head_dim, 16);
  EXPECT_EQ(model->vocabulary, 0);
  EXPECT_EQ(model->sequence, 2048);
  EXPECT_TRUE(model->causal);
  EXPECT_TRUE(model->master_weights);  // weights are bf16
  EXPECT_EQ(model->moments, DType::f32);
}

TEST(TrainingModel, MistakesAreToldWithTheirPlace) {
  const std::string rest = "layers: 2\nwidth: 64\nheads: 4\nmlp: 256\n";
  EXPECT_EQ(problem_of_file("layers: 0\nwidth: 64\nheads: 4\nmlp: 256\n"), "m.textproto:3:1: expected a whole number from 1 to 1073741824, found 0");
  EXPECT_EQ(problem_of_file(rest + "kv_heads: 3\n"), "m.textproto:7:1: must divide the 4 heads, found 3");
  EXPECT_EQ(problem_of_file("layers: 2\nwidth: 63\nheads: 4\nmlp: 256\n"), "m.textproto:5:1: must divide the width 63 where head_dim is left out, found 4");
  EXPECT_EQ(problem_of_file(rest + "tied: true\n"), "m.textproto:7:1: needs a vocabulary, whose embedding gives the logits");
  EXPECT_EQ(problem_of_file(rest + "positions: 100\n"), "m.textproto:7:1: expected at least the 2048 of the sequence, found 100");
  EXPECT_EQ(problem_of_file(rest + "weights: \"f16\"\n"), "m.textproto:7:1: expected bf16 or f32, found \"f16\"");
  EXPECT_EQ(problem_of_file(rest + "vocabulary: 0\n"), "m.textproto:7:1: expected a whole number from 1 to 1073741824, found 0; leave it out for a model without one");
  EXPECT_THAT(problem_of_file(rest + "expert: 8\n"), HasSubstr("m.textproto:7:1"));
  EXPECT_THAT(problem_of_file(rest + "experts: 8\n"), HasSubstr("expected a whole number from 1 to 1073741824, found 0"));
  EXPECT_EQ(problem_of_file(rest + "experts: 8\nexperts_per_token: 9\n"), "m.textproto:8:1: expected at most the 8 experts, found 9");
  EXPECT_EQ(problem_of_file(rest + "experts_per_token: 2\n"), "m.textproto:7:1: needs experts, found 2");
  EXPECT_EQ(problem_of_file(rest + "experts: 0\n"), "m.textproto:7:1: expected at least 1, found 0; leave it out for a model without a router");
  EXPECT_THAT(problem_of_file(rest + "experts: 8\nexperts_per_token: 2\nparallel: true\n"), HasSubstr("expected layers whose MLP reads attention's output"));
  EXPECT_THAT(problem_of_file("width: 64\nheads: 4\nmlp: 256\n"), HasSubstr("layers"));
  EXPECT_THAT(problem_of_file("layers: 1073741824\nwidth: 1073741824\nheads: 1\nhead_dim: 1\nmlp: 1073741824\n"), HasSubstr("at most 1e17 parameters"));
}

TEST(TrainingModel, IsReadAsItWasWritten) {
  std::vector<TrainingModel> models;
  for (const std::string& name : shipped_training_models()) models.push_back(*find_training_model(name));
  TrainingModel own = models.front();  // no field has its default
  own.heads = 6, own.kv_heads = 3, own.head_dim = 40, own.gated = !own.gated, own.parallel = true, own.causal = false, own.norm = Norm::none, own.biases = true;
  own.vocabulary = 96, own.tied = true, own.sequence = 128, own.positions = 256;
  own.weights = own.gradients = own.activations = DType::f32, own.moments = DType::bf16, own.master_weights = true;
  models.push_back(own);
  own.heads = own.kv_heads = own.head_dim = 0, own.vocabulary = own.positions = 0, own.tied = own.master_weights = false;
  models.push_back(own);
  own = models.front();
  own.parallel = false, own.experts = 16, own.experts_per_token = 4;
  models.push_back(own);
  for (const TrainingModel& model : models) {
    const auto again = read_training_model(write_training_model(model), "again");
    ASSERT_TRUE(again) << to_text(again.error());
    EXPECT_EQ(*again, model) << write_training_model(model);
  }
}

TEST(TrainingModel, ShippedOnesAreWhatTheirNamesSay) {
  std::set<std::string> descriptions;
  ASSERT_EQ(shipped_training_models().size(), 31U);
  for (const std::string& name : shipped_training_models()) {
    const auto model = find_training_model(name);
    ASSERT_TRUE(model) << to_text(model.error());
    EXPECT_EQ(model->name, name);
    EXPECT_TRUE(descriptions.insert(model->description).second) << name;
  }
  const auto none = find_training_model("gpt3-175");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("there is no model \"gpt3-175\", did you mean \"gpt3-175b\""));
  EXPECT_FALSE(find_training_model("no/such/file.textproto"));
}

TEST(TrainingModel, ALayerIsABlockOfTheSameStages) {
  const auto llama = find_training_model("llama3-8b");
  ASSERT_TRUE(llama);
  const TransformerBlock block = layer_of(*llama, 3, 5);
  EXPECT_EQ(block.hidden, 4096);
  EXPECT_EQ(block.batch, 3);
  EXPECT_EQ(block.layers, 5);
  EXPECT_EQ(block.optimizer_bytes, 12);
  const auto workload = workload_of(block, 1);
  ASSERT_TRUE(workload);
  EXPECT_EQ(workload->stages, layer_stages(*llama, 3));
  const auto palm = find_training_model("palm-540b");
  ASSERT_TRUE(palm);
  const auto mixtral = find_training_model("mixtral-8x7b");
  ASSERT_TRUE(mixtral);
  for (const Stage& stage : layer_stages(*mixtral)) {
    const bool expert = stage.name == "ff1" || stage.name == "ff2", copied = expert || stage.name == "dispatch" || stage.name == "activation";
    EXPECT_EQ(stage.tokens, copied ? 2 * 4096 : 4096) << stage.name;
    EXPECT_EQ(stage.experts, expert ? 8 : 1) << stage.name;
  }
  std::vector<std::string> names;
  for (const Stage& stage : layer_stages(*palm)) names.push_back(stage.name);
  EXPECT_EQ(names, (std::vector<std::string>{"norm1", "in_proj", "attention", "out_proj", "ff1", "activation", "ff2", "residual2"}));
}

}  // namespace
}  // namespace podsim
