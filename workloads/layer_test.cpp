// A layer as functions: called one after the other they compute what the block computes, in its time.
#include "workloads/layer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/engine/numeric/check.hpp"
#include "sim/engine/table/testing.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/lower.hpp"
#include "sim/schedule/program_builder.hpp"
#include "workloads/block_reference.hpp"
#include "workloads/test_blocks.hpp"

namespace podsim {
namespace {

using testing::mesh_of;
using testing::plans_for;
using ::testing::Contains;
using ::testing::HasSubstr;

/// The functions one after the other on every device.
Schedule called(const Submesh& submesh, const Workload& workload, const Plan& plan, const std::vector<const TensorFunction*>& functions) {
  ProgramBuilder program{submesh.mesh, submesh.devices};
  std::map<std::string, BufferId> buffers;
  Schedule schedule{"layer", submesh.mesh, {}, block_reference(workload, plan, submesh, Pass::both)};
  Edges after;
  for (const TensorFunction* of : functions) {
    Call op{static_cast<int>(schedule.functions.size()), {}};
    schedule.functions.push_back(of->function);
    for (const Buffer& parameter : of->parameters) {
      const auto [known, added] = buffers.try_emplace(parameter.tensor);
      if (added) {
        Buffer buffer = parameter;
        const bool final = parameter.tensor == "Y" || parameter.tensor == "dX" || parameter.tensor.ends_with(".dW");
        if (buffer.role == Role::output && !final) buffer.role = Role::scratch, buffer.tensor.clear(), buffer.sharding.clear();
        known->second = program.add_buffer(buffer);
      }
      op.arguments.push_back(known->second);
    }
    after = program.step(of->function.name, op, std::move(after));
  }
  schedule.programs.push_back(std::move(program).finish());
  return schedule;
}

Schedule called(const Submesh& submesh, const Workload& workload, const Plan& plan, const LayerFunctions& layer) {
  return called(submesh, workload, plan, {&layer.forward, &layer.backward});
}

Picoseconds makespan(const Mesh& mesh, const Schedule& schedule) {
  const auto pod = testing::small_system(testing::ideal_machine(), {mesh.axes()[0].size, mesh.axes()[1].size}, true, {{"row", mesh.axes()[0].size}, {"col", mesh.axes()[1].size}});
  const auto lowered = lower(schedule, ring_or_line(in_chunks(2)));
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  const auto timeline = testing::run(pod, *lowered, "des");
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline->makespan;
}

TEST(LayerFunctions, ComputeTheBlockAndItsGradientsInItsTime) {
  int plans = 0;
  for (const TransformerBlock& block : {testing::small_block(), testing::small_gated_block()})
    for (const Mesh& mesh : {mesh_of(2, 2), mesh_of(1, 4)}) {
      const Workload workload = *workload_of(block, mesh.devices());
      const Submesh submesh = *workload_submesh(mesh);
      for (const auto& named : plans_for(workload)) {
        const auto layer = layer_functions(submesh, workload, named.plan);
        if (!layer) continue;  // as block_schedule()
        SCOPED_TRACE(block.name + ", " + named.name + " on " + to_text(mesh));
        ++plans;
        const Schedule schedule = called(submesh, workload, named.plan, *layer);
        const auto lowered = lower(schedule, ring_or_line(in_chunks(2)));
        ASSERT_TRUE(lowered) << to_text(lowered.error());
        const auto report = check(*lowered, {});
        ASSERT_TRUE(report) << to_text(report.error());
        EXPECT_TRUE(report->ok) << to_text(report->problems);
        EXPECT_EQ(makespan(mesh, schedule), makespan(mesh, *block_schedule(mesh, workload, named.plan, Pass::both)));
      }
    }
  EXPECT_GT(plans, 12);
}

TEST(LayerFunctions, KeepWhatTheBackwardPassReads) {
  const Mesh mesh = mesh_of(2, 2);
  const Workload workload = *workload_of(testing::small_block(), mesh.devices());
  const auto layer = layer_functions(*workload_submesh(mesh), workload, plans_for(workload).front().plan);
  ASSERT_TRUE(layer) << to_text(layer.error());
  std::map<std::string, Buffer> made;
  for (const Buffer& parameter : layer->forward.parameters) made.emplace(parameter.tensor, parameter);
  for (const Buffer& parameter : layer->backward.parameters) {
    if (parameter.tensor == "dY" || parameter.role == Role::output) continue;
    ASSERT_TRUE(made.contains(parameter.tensor)) << parameter.tensor;
    EXPECT_EQ(made.at(parameter.tensor).extents, parameter.extents) << parameter.tensor;
  }
  EXPECT_EQ(made.at("in_proj.Y").role, Role::output) << "attention's gradient reads it";
  EXPECT_FALSE(made.contains("out_proj.Y")) << "only the residual reads it";
}

TEST(LayerFunctions, SayWhatTheirParametersAre) {
  const Mesh mesh = mesh_of(2, 2);
  const Workload workload = *workload_of(testing::small_block(), mesh.devices());
  const auto layer = layer_functions(*workload_submesh(mesh), workload, plans_for(workload).front().plan);
  ASSERT_TRUE(layer) << to_text(layer.error());
  using Use = LayerTensor::Use;
  for (const TensorFunction* function : {&layer->forward, &layer->backward, &layer->backward_inputs, &layer->backward_weights})
    for (const Buffer& parameter : function->parameters) EXPECT_TRUE(layer->tensors.contains(parameter.tensor)) << parameter.tensor;
  const auto uses = [&](const std::string& tensor, Use use, const std::string& stage) {
    const auto found = layer->tensors.find(tensor);
    return found != layer->tensors.end() && found->second.use == use && found->second.stage == stage;
  };
  EXPECT_TRUE(uses("X", Use::input, "") && uses("Y", Use::output, "") && uses("dY", Use::output_gradient, "") && uses("dX", Use::input_gradient, ""));
  EXPECT_TRUE(uses("ff1.W", Use::weight, "ff1") && uses("ff1.dW", Use::weight_gradient, "ff1"));
  EXPECT_TRUE(uses("in_proj.Y", Use::kept, "in_proj") && uses("norm1.sums", Use::kept, "")) << "an output of a stage, and what is none";
}

std::vector<std::string> labels_of(const TensorFunction& function, std::string_view begin) {
  std::vector<std::string> labels;
  for (const Task& task : function.function.body.tasks)
    if (task.label.starts_with(begin)) labels.push_back(task.label);
  return labels;
}

bool has_parameter(const TensorFunction& function, const std::string& tensor) {
  return std::any_of(function.parameters.begin(), function.parameters.end(), [&](const Buffer& parameter) { return parameter.tensor == tensor; });
}

/// Whole or split, computed again or kept: the same numbers.
TEST(LayerFunctions, ComputeTheSameGradientsHoweverTheyAreCut) {
  int cases = 0;
  for (const TransformerBlock& block : {testing::small_block(), testing::small_gated_block()})
    for (const Mesh& mesh : {mesh_of(2, 2), mesh_of(1, 4)}) {
      const Workload workload = *workload_of(block, mesh.devices());
      const Submesh submesh = *workload_submesh(mesh);
      for (const auto& named : plans_for(workload))
        for (const LayerOptions& options : {LayerOptions{}, LayerOptions{true, {}}, LayerOptions{true, {"in_proj", "ff1"}}}) {
          const auto layer = layer_functions(submesh, workload, named.plan, options);
          if (!layer) continue;  // as block_schedule()
          SCOPED_TRACE(block.name + ", " + named.name + " on " + to_text(mesh));
          for (const auto& functions : {std::vector{&layer->forward, &layer->backward}, {&layer->forward, &layer->backward_inputs, &layer->backward_weights}}) {
            ++cases;
            const auto lowered = lower(called(submesh, workload, named.plan, functions), ring_or_line(in_chunks(2)));
            ASSERT_TRUE(lowered) << to_text(lowered.error());
            const auto report = check(*lowered, {});
            ASSERT_TRUE(report) << to_text(report.error());
            EXPECT_TRUE(report->ok) << to_text(report->problems);
          }
        }
    }
  EXPECT_GT(cases, 60);
}

TEST(LayerFunctions, ComputeAgainWhatTheBackwardPassNeedsAndWasNotKept) {
  const Mesh mesh = mesh_of(2, 2);
  const Workload workload = *workload_of(testing::small_block(), mesh.devices());
  const auto functions = [&](const LayerOptions& options) { return *layer_functions(*workload_submesh(mesh), workload, plans_for(workload).front().plan, options); };
  const LayerFunctions full = functions({true, {}});
  EXPECT_THAT(labels_of(full.backward, "again ff1"), ::testing::Not(::testing::IsEmpty()));
  EXPECT_THAT(labels_of(full.backward, "again ff2"), ::testing::IsEmpty()) << "nothing needs the output of the last product";
  EXPECT_FALSE(has_parameter(full.forward, "in_proj.Y"));
  EXPECT_FALSE(has_parameter(full.backward, "in_proj.Y"));
  EXPECT_FALSE(has_parameter(full.forward, "norm1.Y")) << "what the first half computes again for the second";
  EXPECT_THAT(labels_of(full.backward_weights, "again"), ::testing::IsEmpty()) << "the first half hands it over";
  EXPECT_TRUE(has_parameter(full.backward_inputs, "norm1.Y"));
  const LayerFunctions whole = functions({true, {}, true});
  for (const TensorFunction* backward : {&whole.backward, &whole.backward_inputs})
    for (const char* stage : {"again in_proj", "again ff2", "again residual2"})
      EXPECT_THAT(labels_of(*backward, stage), ::testing::Not(::testing::IsEmpty())) << stage;
  EXPECT_THAT(labels_of(whole.backward_weights, "again"), ::testing::IsEmpty());
  EXPECT_EQ(whole.forward.parameters, full.forward.parameters) << "it keeps no more";
  const LayerFunctions some = functions({true, {"in_proj"}});
  EXPECT_TRUE(has_parameter(some.forward, "in_proj.Y"));
  EXPECT_THAT(labels_of(some.backward, "again in_proj"), ::testing::IsEmpty());
  EXPECT_THAT(labels_of(some.backward, "again attention"), ::testing::Not(::testing::IsEmpty()));
}

TEST(LayerFunctions, NeedStagesThatFollowOneAnother) {
  const Workload products = *workload_of({NamedProduct{8, 8, 8, DType::f32}});
  const auto layer = layer_functions(*workload_submesh(mesh_of(2, 2)), products, plans_for(products).front().plan);
  ASSERT_FALSE(layer);
  EXPECT_THAT(to_text(layer.error()), HasSubstr("its stages do not follow one another"));
}

}  // namespace
}  // namespace podsim
