// Layers with experts in training steps: their numbers against one device in float64, on the axis expert and others; mistakes made on purpose; bytes of their parameters.
#include <gtest/gtest.h>

#include <vector>

#include "workloads/training/counts.hpp"
#include "workloads/training/test_proofs.hpp"

namespace podsim {
namespace {

using testing::claimed;
using testing::error_in_roundings;
using testing::expect_one_device;
using testing::lowered_step;
using testing::report_of;
using testing::small_step;

/// Two layers of four experts, of which a token takes two; 8 tokens on each device and in each microbatch.
TrainingStep step_of_experts(const TrainingMesh& mesh, std::int64_t microbatches = 2) {
  TrainingStep step = small_step(mesh, "1f1b", microbatches);
  step.model.layers = 2, step.model.sequence = 8, step.model.experts = 4, step.model.experts_per_token = 2;
  return step;
}

/// Of the first step to 1e-5. Of the next two to what float32 roundings do to them, which models of random weights enlarge from layer to layer.
void expect_numbers_of_one_device(const TrainingStep& step) {
  expect_one_device(step, 1);
  SCOPED_TRACE(to_text(step.mesh));
  EXPECT_LE(error_in_roundings(claimed(step, 3), 3), 1);
}

/// Of the four experts a token takes two, one or all.
TEST(TrainingExperts, GiveTheNumbersOfOneDevice) {
  struct Case {
    TrainingMesh mesh;
    std::int64_t each;
    bool gated;
    Remat remat;
  };
  const Remat none{}, full{Remat::Kind::full, {}}, layer{Remat::Kind::layer, {}}, selected{Remat::Kind::selected, {{"dispatch", false}, {"ff1", false}}};
  for (const auto& [mesh, each, gated, remat] : std::vector<Case>{{{}, 2, true, none},
                                                                  {{}, 1, false, full},
                                                                  {{}, 4, true, none},
                                                                  {{.expert = 2}, 2, true, none},
                                                                  {{.expert = 4}, 2, true, full},
                                                                  {{.fsdp = 2, .expert = 2}, 2, false, layer},
                                                                  {{.data = 2, .fsdp = 2, .expert = 2}, 2, true, selected},
                                                                  {{.slice = 2, .expert = 2}, 1, true, none},
                                                                  {{.fsdp = 4}, 2, true, full}}) {
    TrainingStep step = step_of_experts(mesh);
    step.model.experts_per_token = each, step.model.gated = gated, step.remat = remat;
    SCOPED_TRACE(each);
    expect_numbers_of_one_device(step);
  }
  TrainingStep split = small_step({.stage = 2, .expert = 2}, "zero-bubble", 4);  // the backward pass in two halves
  split.model.sequence = 8, split.model.experts = 4, split.model.experts_per_token = 2;
  expect_numbers_of_one_device(split);
  EXPECT_TRUE(report_of(claimed(split, 3)).ok);
}

/// An expert's weights are divided over expert and fsdp, its moments over data, too.
TEST(TrainingExperts, WithAnOptimizerDividedOverDataGiveTheNumbersOfOneDevice) {
  for (const TrainingMesh& mesh : {TrainingMesh{.data = 2, .expert = 2}, {.data = 2, .fsdp = 2, .expert = 2}, {.slice = 2, .data = 2, .expert = 2}, {.stage = 2, .data = 2, .expert = 2}})
    for (const bool gated : {false, true}) {
      TrainingStep step = step_of_experts(mesh);
      step.model.gated = gated, step.shard_optimizer_over_data = true;
      if (gated) step.remat.kind = Remat::Kind::full;
      expect_numbers_of_one_device(step);
    }
}

/// Router, dispatch, combine: a mistake in any of them shows.
TEST(TrainingExperts, MistakesAreFound) {
  TrainingStep step = step_of_experts({.expert = 2}, 1);
  step.model.layers = 1;
  const Schedule right = claimed(step, 1);
  ASSERT_TRUE(report_of(right).ok);
  int mistakes = 0;
  for (std::size_t f = 0; f < right.functions.size(); ++f)
    for (std::size_t t = 0; t < right.functions[f].body.tasks.size(); ++t) {
      Schedule wrong = right;
      Op& op = wrong.functions[f].body.tasks[t].op;
      auto* const local = std::get_if<Local>(&op);
      if (local == nullptr) continue;
      if (local->kind == LocalKind::expert_gates || local->kind == LocalKind::expert_gates_grad) *local = {LocalKind::scale, {local->writes[0]}, {local->writes[0]}, 0.5};
      else if (local->kind == LocalKind::expert_combine) *local = {LocalKind::scale, {local->writes[0]}, {local->writes[0]}, 0.5};
      else if (local->kind == LocalKind::expert_combine_grad) std::swap(local->reads[1], local->writes[0]);
      else continue;
      ++mistakes;
      CheckOptions options;
      const auto report = check(lowered_step(wrong), options);
      EXPECT_FALSE(report && report->ok) << f << " " << t;
    }
  EXPECT_GE(mistakes, 4);
}

/// What is wrong is far more than roundings, in the first step and behind it: weights of the step before, on a device that does not gather updated ones.
TEST(TrainingExperts, AMistakeIsMoreThanRoundings) {
  TrainingStep step = step_of_experts({.data = 2, .expert = 2});
  step.shard_optimizer_over_data = true;
  const Schedule right = claimed(step, 2);
  EXPECT_LE(error_in_roundings(right, 2), 1);
  int gathers = 0;
  for (const std::string weight : {"ff1", "ff2", "router"}) {
    Schedule wrong = right;
    for (Program& program : wrong.programs)
      for (Task& task : program.tasks)
        if (task.label == "gather updated layer1." + weight) task.op = Local{LocalKind::join, {}, {}, 1, Unit::dma}, ++gathers;
    EXPECT_GT(error_in_roundings(wrong, 2), 100) << weight;
  }
  EXPECT_EQ(gathers, 2 * 3) << "of three weights, in each of two steps";
  Schedule swapped = right;
  for (Function& function : swapped.functions)
    for (Task& task : function.body.tasks)
      if (auto* const local = std::get_if<Local>(&task.op); local != nullptr && local->kind == LocalKind::expert_gates_grad) std::swap(local->reads[0], local->reads[1]);
  EXPECT_GT(error_in_roundings(swapped, 1), 100);
}

/// Weights, gradients and moments are divided over expert, those of experts and all others; moments over data, too, where they are asked to be.
TEST(TrainingExperts, EachDeviceHasItsPartOfTheParameters) {
  const auto bytes_on = [](const TrainingMesh& mesh, bool shard_optimizer) {
    TrainingStep step = step_of_experts(mesh);
    step.model.weights = step.model.gradients = step.model.activations = DType::bf16, step.model.master_weights = true;
    step.shard_optimizer_over_data = shard_optimizer;
    return testing::bytes_by_kind(step);
  };
  auto one = bytes_on({}, false);
  for (const std::int64_t devices : {2, 4}) {
    auto parts = bytes_on({.expert = devices}, false);
    for (const MemoryKind kind : {MemoryKind::weights, MemoryKind::gradients, MemoryKind::optimizer}) EXPECT_EQ(devices * parts[kind], one[kind]);
  }
  auto whole = bytes_on({.data = 2, .expert = 2}, false), parts = bytes_on({.data = 2, .expert = 2}, true);
  EXPECT_EQ(whole[MemoryKind::optimizer], 6 * whole[MemoryKind::weights]) << "two moments and a copy, all of them float32";
  EXPECT_EQ(parts[MemoryKind::optimizer], whole[MemoryKind::optimizer] / 2);
  EXPECT_EQ(parts[MemoryKind::weights], whole[MemoryKind::weights]);
  EXPECT_EQ(parts[MemoryKind::gradients], whole[MemoryKind::gradients] * 3 / 2) << "sums over microbatches, and a part of what they come to";
}

/// Dispatch and combine, of the forward pass, of what is computed again, and of the backward pass: copies of tokens, of which all but a device's own travel.
TEST(TrainingExperts, AllToAllsCarryTheCopiesOfTokens) {
  for (const auto& [remat, passes] : std::vector<std::pair<Remat, int>>{{{}, 2}, {{Remat::Kind::full, {}}, 3}}) {
    TrainingStep step = step_of_experts({.expert = 2}, 1);
    step.model.layers = 1, step.remat = remat;
    int exchanges = 0;
    for (const Function& function : claimed(step, 1).functions)
      for (const Task& task : function.body.tasks)
        if (const auto* collective = std::get_if<Collective>(&task.op); collective != nullptr && collective->kind == CollectiveKind::all_to_all) {
          ++exchanges;
          EXPECT_EQ(elements_of(collective->input), 2 * 8 * 8);  // copies, tokens of a device, width
        }
    EXPECT_EQ(exchanges, 2 * passes);
  }
}

}  // namespace
}  // namespace podsim
