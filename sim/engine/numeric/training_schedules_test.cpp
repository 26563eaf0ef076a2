// Training steps as schedules: losses over sharded classes, sharded embeddings, whole steps of an MLP, held against one device in float64, and broken
// on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/engine/numeric/test_training.hpp"

namespace podsim {
namespace {

using namespace hand_built;
using ::testing::HasSubstr;

CheckReport training_report(const Schedule& schedule, const CheckOptions& options = {}) {
  const Expected<CheckReport> report = check(schedule, options);
  EXPECT_TRUE(report) << to_text(report.error());
  return report ? *report : CheckReport{};
}

/// The largest error of some outputs on uniform data, relative to the largest element of each output.
double error_of(Schedule schedule, const std::function<bool(const std::string&)>& judged, int threads = 2) {
  auto& program = std::get<ReferenceProgram>(schedule.computes);
  std::erase_if(program.outputs, [&](const auto& output) { return !judged(output.first); });
  NumericOptions options;
  options.filling = Filling::uniform;
  options.threads = threads;
  const auto tensors = make_numeric_engine(options)->run(schedule);
  const auto reference = Reference::make(schedule, options);
  EXPECT_TRUE(tensors && reference);
  return reference->compare(*tensors).max_rel_error;
}
bool is_loss(const std::string& tensor) { return tensor.starts_with("loss"); }
bool is_gradient(const std::string& tensor) { return tensor.starts_with("d"); }
bool is_parameter(const std::string& tensor) { return tensor.starts_with("W"); }

Local& local_labelled(Schedule& schedule, const std::string& label) {
  for (Task& task : schedule.programs[0].tasks)
    if (task.label == label) return std::get<Local>(task.op);
  ADD_FAILURE() << label;
  return std::get<Local>(schedule.programs[0].tasks[0].op);
}

TEST(TrainingSchedules, CrossEntropyOverShardedClassesIsThatOfOneDevice) {
  for (const int P : {1, 2, 4})
    for (const std::int64_t classes : {8, 11, 32})
      for (const DType dtype : {DType::f32, DType::bf16}) {
        SCOPED_TRACE(::testing::Message() << classes << " classes on " << P << " in " << name_of(dtype));
        const Schedule schedule = sharded_cross_entropy(P, 6, classes, dtype);
        const CheckReport report = training_report(schedule);
        EXPECT_TRUE(report.ok) << to_text(report.problems);
        EXPECT_LE(report.proof_tolerance, 1e-4);
        if (dtype == DType::bf16) continue;
        EXPECT_LE(error_of(schedule, is_loss), 1e-6);
        EXPECT_LE(error_of(schedule, is_gradient), 1e-6);
      }
}

TEST(TrainingSchedules, AWrongNumberOfAColumnAMissingStatisticAndAWrongMeanAreFound) {
  const Schedule right = sharded_cross_entropy(4, 6, 32);
  const std::vector<std::pair<std::string, std::function<void(Schedule&)>>> mistakes{
      {"number", [](Schedule& s) { local_labelled(s, "loss").numbering[0].first.terms[0].coefficient = 7; }},
      {"number of the gradient", [](Schedule& s) { local_labelled(s, "gradient").numbering = {{0}}; }},
      {"mean", [](Schedule& s) { local_labelled(s, "gradient").factor = 5; }},
      {"statistic", [](Schedule& s) { std::get<Shift>(s.programs[0].tasks[2].op).target = std::get<Shift>(s.programs[0].tasks[1].op).target; }},
  };
  for (const auto& [what, make] : mistakes) {
    Schedule wrong = right;
    make(wrong);
    EXPECT_FALSE(training_report(wrong).ok) << what;
  }
}

TEST(TrainingSchedules, ATargetThatIsNoClassEndsTheCheck) {
  Schedule schedule = sharded_cross_entropy(2, 64, 8);
  auto& program = std::get<ReferenceProgram>(schedule.computes);
  for (ReferenceNode& node : program.nodes)
    if (node.tensor == "targets") node.below = 9;
  EXPECT_THAT(to_text(training_report(schedule).problems), HasSubstr("node 2 (one-hot): row number 8 is outside 0..7"));
  schedule.computes = std::monostate{};  // then targets are any integers, of either sign
  const auto ran = make_numeric_engine({})->run(schedule);
  ASSERT_FALSE(ran);
  EXPECT_THAT(to_text(ran.error()), HasSubstr("is outside 0..7"));
  EXPECT_EQ(ran.error().cause, Cause::data);
}

TEST(TrainingSchedules, AShardedEmbeddingAndItsGradientAreThoseOfOneDeviceToTheBit) {
  for (const int P : {1, 2, 4})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const InputData data : {InputData::random, InputData::arange, InputData::ones}) {
        SCOPED_TRACE(::testing::Message() << P << " in " << name_of(dtype));
        CheckOptions options;
        options.data = data;
        const CheckReport report = training_report(sharded_embedding(P, 12, 3, 20, dtype), options);
        EXPECT_TRUE(report.ok && report.bit_equal && report.inexact.empty()) << to_text(report.problems) << report.inexact;
      }
  Schedule wrong = sharded_embedding(2, 12, 3, 20);
  local_labelled(wrong, "embed").numbering = {{Affine{{AxisTerm{wrong.mesh.whole(0), 5}}}}};
  EXPECT_FALSE(training_report(wrong).ok);
  wrong = sharded_embedding(2, 12, 3, 20);
  local_labelled(wrong, "gradient").numbering.clear();
  EXPECT_FALSE(training_report(wrong).ok);
}

TEST(TrainingSchedules, ThreeStepsOfAnMlpAreThoseOfFloat64) {
  for (const bool adam : {true, false})
    for (const std::int64_t microbatches : {1, 4})
      for (const bool recompute : {false, true}) {
        SCOPED_TRACE(::testing::Message() << (adam ? "adamw" : "sgd") << ", " << microbatches << " microbatches"
                                          << (recompute ? ", recomputed" : ""));
        MlpTraining of;
        of.widths = {12, 16, 16, 8}, of.samples = 16;
        of.adam = adam, of.microbatches = microbatches, of.recompute = recompute;
        const Schedule schedule = mlp_training(of);
        const CheckReport report = training_report(schedule);
        EXPECT_TRUE(report.ok) << to_text(report.problems);
        EXPECT_EQ(report.orders_tried, 4);
        EXPECT_LE(error_of(schedule, is_loss), 1e-6);
        const double of_gradients = error_of(schedule, is_gradient);
        EXPECT_LE(of_gradients, 1e-5);
        EXPECT_GT(of_gradients, 0) << "float32 rounds";
        EXPECT_LE(error_of(schedule, is_parameter), 1e-5);
      }
}

TEST(TrainingSchedules, InBfloat16ParametersAreThoseOfFloat64WithinTheirRoundings) {
  MlpTraining of;
  of.dtype = DType::bf16, of.microbatches = 2;
  const CheckReport report = training_report(mlp_training(of));
  EXPECT_TRUE(report.ok) << to_text(report.problems);
  EXPECT_LE(report.proof_rel_error, 1e-5) << "the proof runs in float32";
}

TEST(TrainingSchedules, RecomputationAndThreadsChangeNoBit) {
  MlpTraining of;
  of.microbatches = 4;
  const auto outputs_of = [](const Schedule& schedule, int threads) {
    NumericOptions options;
    options.filling = Filling::uniform;
    options.threads = threads;
    const auto tensors = make_numeric_engine(options)->run(schedule);
    EXPECT_TRUE(tensors);
    std::map<std::string, std::vector<float>> outputs;
    for (std::size_t b = 0; b < schedule.programs[0].buffers.size(); ++b)
      if (schedule.programs[0].buffers[b].role == Role::output) outputs[schedule.programs[0].buffers[b].name] = tensors->values[0][b];
    return outputs;
  };
  const auto once = outputs_of(mlp_training(of), 1);
  EXPECT_EQ(outputs_of(mlp_training(of), 3), once);
  of.recompute = true;
  EXPECT_EQ(outputs_of(mlp_training(of), 2), once);
}

TEST(TrainingSchedules, MistakesInATrainingStepAreFound) {
  MlpTraining of;
  of.microbatches = 2;
  const Schedule right = mlp_training(of);
  const auto first_operand_twice = [](Local& add) { add.reads[1] = add.reads[0]; };
  const std::vector<std::pair<std::string, std::function<void(Schedule&)>>> mistakes{
      {"a gradient added twice", [&](Schedule& s) { first_operand_twice(local_labelled(s, "add dW 2 0")); }},
      {"a loss lost", [&](Schedule& s) { local_labelled(s, "add loss 1").kind = LocalKind::subtract; }},
      {"the step of the correction", [](Schedule& s) { local_labelled(s, "update 2 1").optimiser.step = 1; }},
      {"the decay", [](Schedule& s) { local_labelled(s, "update 3 1").optimiser.weight_decay = 0; }},
      {"beta2", [](Schedule& s) { local_labelled(s, "update 1 0").optimiser.beta2 = 0.9; }},
      {"moments of another layer's step",
       [](Schedule& s) { std::swap(local_labelled(s, "update 2 0").reads[2], local_labelled(s, "update 2 0").reads[3]); }},
      {"the other mean", [](Schedule& s) { local_labelled(s, "d loss 3").factor *= 2; }},
  };
  for (const auto& [what, make] : mistakes) {
    Schedule wrong = right;
    make(wrong);
    EXPECT_FALSE(training_report(wrong).ok) << what;
  }
}

}  // namespace
}  // namespace podsim
