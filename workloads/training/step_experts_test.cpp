// Layers with experts in training steps: their numbers against one device in float64, on the axis expert and others; times of both event engines.
#include <gtest/gtest.h>

#include <vector>

#include "workloads/training/counts.hpp"
#include "workloads/training/proof_testing.hpp"

namespace podsim {
namespace {

using testing::claimed;
using testing::expect_one_device;
using testing::lowered_step;
using testing::report_of;
using testing::small_step;

/// Four experts, of which a token takes two or one; 8 tokens on each device.
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
    TrainingStep step = small_step(mesh, "1f1b", 2);
    step.model.layers = 2, step.model.sequence = 8, step.model.experts = 4, step.model.experts_per_token = each, step.model.gated = gated;
    step.remat = remat;
    SCOPED_TRACE(each);
    expect_one_device(step, 1);  // behind a step of AdamW, whose divisions enlarge them, the errors of float32 are up to 9e-5
  }
  TrainingStep split = small_step({.stage = 2, .expert = 2}, "zero-bubble", 4);  // the backward pass in two halves
  split.model.sequence = 8, split.model.experts = 4, split.model.experts_per_token = 2;
  expect_one_device(split, 1);
  EXPECT_TRUE(report_of(claimed(split, 3)).ok);
}

/// Router, dispatch, combine: a mistake in any of them shows.
TEST(TrainingExperts, MistakesAreFound) {
  TrainingStep step = small_step({.expert = 2}, "1f1b", 1);
  step.model.layers = 1, step.model.sequence = 8, step.model.experts = 4, step.model.experts_per_token = 2;
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

/// Dispatch and combine, of the forward pass, of what is computed again, and of the backward pass: copies of tokens, of which all but a device's own travel.
TEST(TrainingExperts, AllToAllsCarryTheCopiesOfTokens) {
  for (const auto& [remat, passes] : std::vector<std::pair<Remat, int>>{{{}, 2}, {{Remat::Kind::full, {}}, 3}}) {
    TrainingStep step = small_step({.expert = 2}, "1f1b", 1);
    step.model.layers = 1, step.model.sequence = 8, step.model.experts = 4, step.model.experts_per_token = 2;
    step.remat = remat;
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
