#include "workloads/training/step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace podsim {
namespace {

using ::testing::HasSubstr;

TrainingStep small_step() {
  TrainingStep step;
  step.model = {.name = "small", .description = "", .layers = 8, .width = 64, .heads = 8, .kv_heads = 4, .head_dim = 8, .mlp = 256, .vocabulary = 1000, .sequence = 32};
  step.batch = 16;
  return step;
}

std::string problem_of_step(const TrainingStep& step) {
  const auto result = divided(step);
  return result ? "" : to_text(result.error());
}

TEST(TrainingMesh, ReadsAndPrints) {
  const auto mesh = parse_training_mesh("fsdp=4,stage=2", {"--mesh", 1, 1});
  ASSERT_TRUE(mesh);
  EXPECT_EQ(*mesh, (TrainingMesh{.stage = 2, .fsdp = 4}));
  EXPECT_EQ(to_text(*mesh), "stage=2,fsdp=4");
  EXPECT_EQ(mesh->devices(), 8);
  EXPECT_EQ(to_text(TrainingMesh{}), "1");
  ASSERT_TRUE(parse_training_mesh("1", {}));
  const auto told = [](const std::string& text) {
    const auto wrong = parse_training_mesh(text, {"--mesh", 1, 1});
    return wrong ? "" : to_text(wrong.error());
  };
  EXPECT_EQ(told("stage=2,stage=2"), "--mesh:1:9: expected every axis once, found stage again");
  EXPECT_EQ(told("stage=2,colum=2"), "--mesh:1:9: expected sizes of the axes slice, stage, data, fsdp, expert, row, col, as in stage=2,fsdp=4, found \"colum=2\", did you mean \"col\"?");
  EXPECT_THAT(told("fsdp"), HasSubstr("--mesh:1:1: expected sizes of the axes"));
  EXPECT_THAT(told(""), HasSubstr("--mesh:1:1: expected sizes of the axes"));
  EXPECT_THAT(told("fsdp=0"), HasSubstr("--mesh:1:6: "));
  EXPECT_THAT(told("data=4096,fsdp=4096,row=2"), HasSubstr("--mesh:1:21: expected at most 16777216 devices"));
}

TEST(Remat, ReadsAndPrints) {
  for (const char* text : {"none", "full", "layer", "selected:in_proj", "selected:in_proj@host,attention,ff2"}) {
    const auto remat = parse_remat(text, {});
    ASSERT_TRUE(remat) << text;
    EXPECT_EQ(to_text(*remat), text);
  }
  EXPECT_EQ(to_text(*parse_remat("selected:ff1,in_proj", {})), "selected:in_proj,ff1");  // in the order of the layer
  const auto told = [](const std::string& text) {
    const auto wrong = parse_remat(text, {"--remat", 1, 1});
    return wrong ? "" : to_text(wrong.error());
  };
  EXPECT_EQ(told("all"), "--remat:1:1: expected none, full, layer or selected:STAGE,..., found \"all\"");
  EXPECT_EQ(told("selected:ff1,ff1"), "--remat:1:14: expected every stage once, found \"ff1\" again");
  EXPECT_THAT(told("selected:inproj"), HasSubstr("--remat:1:10: expected stages of a layer, norm1, in_proj"));
  EXPECT_THAT(told("selected:residual2"), HasSubstr("found \"residual2\""));
  EXPECT_THAT(told("selected:"), HasSubstr("found \"\""));
}

TEST(Divided, NamesTheMultiple) {
  TrainingStep step = small_step();
  EXPECT_EQ(problem_of_step(step), "");
  step.mesh.stage = 3, step.pipeline = "1f1b";
  EXPECT_EQ(problem_of_step(step), "layers: expected a multiple of 3 (stage=3 x virtual_stages=1), found 8; the next is 9");
  step = small_step(), step.microbatches = 4, step.mesh.data = 8;
  EXPECT_EQ(problem_of_step(step), "batch: expected a multiple of 32 (microbatches=4 x data=8), found 16; the next is 32, or `pad`");
  step = small_step(), step.mesh.col = 16;
  EXPECT_EQ(problem_of_step(step), "heads: expected a multiple of 16 (col=16), found 8; the next is 16, or `pad`\n"
                            "`vocabulary`: expected a multiple of 16 (col=16), found 1000; the next is 1008, or `pad`");
  step = small_step(), step.mesh.fsdp = 16, step.mesh.col = 8;
  EXPECT_EQ(problem_of_step(step), "width: expected a multiple of 128 (fsdp=16 x col=8), found 64; the next is 128, or `pad`");
  step = small_step(), step.mesh.stage = 2;
  EXPECT_EQ(problem_of_step(step), "pipeline: 2 stages need the name of a schedule");
  step = small_step(), step.virtual_stages = 2;
  EXPECT_EQ(problem_of_step(step), "virtual_stages: expected 1 with one stage, found 2");
  step = small_step(), step.batch = 0;
  EXPECT_THAT(problem_of_step(step), HasSubstr("batch: expected a whole number from 1"));
  step = small_step(), step.mesh.row = 0;
  EXPECT_THAT(problem_of_step(step), HasSubstr("mesh: expected row from 1"));
  step = small_step(), step.model.parallel = true, step.remat = *parse_remat("selected:norm2", {});
  EXPECT_THAT(problem_of_step(step), HasSubstr("remat: small has no stage \"norm2\", it has norm1"));
  step = small_step(), step.batch = std::int64_t{1} << 39;
  EXPECT_THAT(problem_of_step(step), HasSubstr("batch: expected at most 2^40 tokens"));
}

TEST(Divided, PadsAMicrobatchOfTwoOverFourDevicesToFour) {  // as FSDP does in the JAX pipeline tutorial
  TrainingStep step;
  const auto model = find_training_model("jax-pipeline-tutorial");
  ASSERT_TRUE(model);
  step.model = *model;
  step.batch = 8, step.microbatches = 4, step.mesh.fsdp = 4, step.pad = true;
  const auto result = divided(step);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->paddings, (std::vector<Padding>{{"batch", 8, 16}}));
  EXPECT_EQ(result->step.batch, 16);
}

TEST(Divided, FewerHeadsOfKeysAndValuesThanDevicesAreCopied) {
  TrainingStep step = small_step();
  step.mesh.col = 8;  // 4 heads of keys and values
  EXPECT_EQ(problem_of_step(step), "");
  step.mesh.col = 3, step.pad = true;
  const auto result = divided(step);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->step.model.kv_heads, 6);
  EXPECT_EQ(result->step.model.heads, 12);  // groups keep their size
}

TEST(Divided, ExpertsAreDividedOverTheirAxis) {
  TrainingStep step = small_step();
  step.model.experts = 8, step.model.experts_per_token = 2;
  step.mesh = {.expert = 4}, step.batch = 4 * step.microbatches, step.pad = true;
  EXPECT_TRUE(divided(step)) << to_text(divided(step).error());
  step.mesh.expert = 3;
  EXPECT_EQ(divided(step).error().message, "expected experts that expert=3 divides, found 8");
  step.model.experts = step.model.experts_per_token = 0;
  EXPECT_EQ(divided(step).error().message, "expected experts that expert=3 divides, found none");
  EXPECT_EQ(training_axis("ep"), "expert");
}

TEST(Divided, WhatIsPaddedIsDividedAndNothingElseChanges) {
  std::mt19937_64 random{1};
  const auto pick = [&](std::int64_t low, std::int64_t high) { return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1)); };
  int padded = 0;
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    TrainingStep step = small_step();
    step.pad = true;
    step.model.kv_heads = pick(1, 6);
    step.model.heads = step.model.kv_heads * pick(1, 4);
    step.model.head_dim = pick(1, 20);
    step.model.width = pick(1, 200);
    step.model.mlp = pick(1, 500);
    step.batch = pick(1, 40);
    step.microbatches = pick(1, 5);
    step.mesh = {pick(1, 3), 1, pick(1, 3), pick(1, 4), 1, pick(1, 4), pick(1, 6)};
    const auto result = divided(step);
    ASSERT_TRUE(result) << to_text(result.error());
    padded += result->paddings.empty() ? 0 : 1;
    TrainingStep exact = result->step;
    exact.pad = false;
    const auto again = divided(exact);  // no further padding is needed
    ASSERT_TRUE(again) << to_text(again.error());
    EXPECT_TRUE(again->paddings.empty());
    EXPECT_GE(exact.batch, step.batch);
    EXPECT_LT(exact.batch, step.batch + step.microbatches * step.mesh.batch_parts());
    EXPECT_LT(exact.model.width, step.model.width + step.mesh.fsdp * step.mesh.row * step.mesh.col);
    EXPECT_EQ(result->paddings.empty(), result->step == step);
  }
  EXPECT_GT(padded, 100);
}

}  // namespace
}  // namespace podsim
