// Training steps as schedules: their numbers against one device in float64, and mistakes made on purpose.
#include "workloads/training/step_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "algorithms/collectives/collectives.hpp"
#include "algorithms/pipeline/pipeline.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/numeric/numeric_engine.hpp"
#include "sim/schedule/calls.hpp"
#include "sim/schedule/lower.hpp"
#include "sim/schedule/touches.hpp"
#include "workloads/training/counts.hpp"
#include "workloads/training/test_proofs.hpp"
#include "workloads/training/testing.hpp"

namespace podsim {
namespace {

using testing::bytes_by_kind;
using testing::claimed;
using testing::expect_one_device;
using testing::lowered_step;
using testing::plan_of;
using testing::small_mlp;
using testing::small_model;
using testing::small_step;

TEST(TrainingSchedule, EveryAxisGivesTheNumbersOfOneDevice) {
  for (const TrainingMesh& mesh : {TrainingMesh{}, {.data = 2}, {.fsdp = 2}, {.col = 2}, {.row = 2}, {.slice = 2}, {.stage = 2}, {.slice = 2, .stage = 2}, {.slice = 2, .data = 2}, {.slice = 2, .data = 2, .fsdp = 2}}) {
    TrainingStep step = small_step(mesh, "1f1b", 2);
    step.model.layers = 2;
    expect_one_device(step, 2);
  }
}

struct ScheduleCase {
  std::string pipeline;
  TrainingMesh mesh;
};

std::vector<ScheduleCase> every_schedule() {
  const TrainingMesh four{.stage = 4}, two{.stage = 2, .fsdp = 2}, tensor{.stage = 2, .row = 2, .col = 2};
  return {{"gpipe", four},  {"gpipe", two},           {"1f1b", tensor},     {"1f1b", four},      {"eager-1f1b", two},   {"interleaved-1f1b", tensor}, {"interleaved-1f1b", two},
          {"kimi-k2", two}, {"zero-bubble", four},    {"zero-bubble", two}, {"dual-pipe-v", two}, {"dual-pipe-v", tensor}};
}

/// Four layers, three steps with AdamW; 4 or 8 microbatches, with and without recomputation, MLP and transformer in turn.
TEST(TrainingSchedule, SevenPipelinesGiveTheNumbersOfOneDevice) {
  std::size_t turn = 0;
  for (const auto& [pipeline, mesh] : every_schedule()) {
    TrainingStep step = small_step(mesh, pipeline, turn % 3 == 1 ? 8 : 4);
    if (turn % 2 == 0) step.remat.kind = Remat::Kind::full;
    if (turn % 4 == 3) step.model = small_mlp();
    ++turn;
    expect_one_device(step, 3);
  }
}

TEST(TrainingSchedule, OptionsChangeNoNumbers) {
  const auto changed = [](const std::function<void(TrainingStep&)>& change) {
    TrainingStep step = small_step({.stage = 2, .fsdp = 2}, "1f1b", 2);
    step.model.layers = 2;
    change(step);
    expect_one_device(step, 2);
  };
  changed([](TrainingStep& step) { step.model.tied = true; });
  changed([](TrainingStep& step) { step.scan = true; });
  changed([](TrainingStep& step) { step.loss_chunks = 2; });
  changed([](TrainingStep& step) { step.optimizer = Optimizer::sgd; });
  changed([](TrainingStep& step) { step.remat = {Remat::Kind::selected, {{"in_proj", false}, {"ff1", false}}}; });
  changed([](TrainingStep& step) { step.remat.kind = Remat::Kind::layer; });
  changed([](TrainingStep& step) { step.embedding_by_product = true; });
  changed([](TrainingStep& step) { step.mesh = {.row = 2, .col = 2}, step.embedding_by_product = true, step.pipeline = {}; });
  changed([](TrainingStep& step) { step.model.gated = true, step.model.norm = Norm::rms, step.model.kv_heads = 2; });
  changed([](TrainingStep& step) { step.mesh = {.col = 2}, step.model.tied = true, step.pipeline = {}; });
  // Three tokens, which two devices along col cannot share in the sums of norms.
  changed([](TrainingStep& step) { step.mesh = {.col = 2}, step.model.sequence = 3, step.batch = 2, step.pipeline = {}; });
}

/// Two steps: the second one uses weights that were gathered from the parts that the first one updated.
TEST(TrainingSchedule, AnOptimizerDividedOverDataGivesTheNumbersOfOneDevice) {
  const auto sharded = [](const TrainingMesh& mesh, std::int64_t microbatches, const std::function<void(TrainingStep&)>& change = [](TrainingStep&) {}) {
    TrainingStep step = small_step(mesh, "1f1b", microbatches);
    step.model.layers = 2, step.shard_optimizer_over_data = true;
    change(step);
    expect_one_device(step, 2);
  };
  sharded({.data = 2}, 1);
  sharded({.data = 4}, 2);
  sharded({.data = 2, .fsdp = 2}, 2);
  sharded({.data = 2, .col = 2}, 2);
  sharded({.data = 2, .row = 2}, 2, [](TrainingStep& step) { step.scan = true; });
  sharded({.slice = 2, .data = 2}, 2);
  sharded({.slice = 2, .data = 2, .fsdp = 2}, 1, [](TrainingStep& step) { step.optimizer = Optimizer::sgd; });
  for (const bool tied : {false, true}) sharded({.stage = 2, .data = 2}, 4, [&](TrainingStep& step) { step.model.tied = tied, step.model.positions = 4; });
  sharded({.stage = 2, .data = 2}, 4, [](TrainingStep& step) { step.pipeline = "zero-bubble", step.remat.kind = Remat::Kind::full; });
  sharded({.stage = 2, .data = 2}, 4, [](TrainingStep& step) { step.model.layers = 4, step.virtual_stages = 2, step.pipeline = "interleaved-1f1b"; });
}

TEST(TrainingSchedule, EachDeviceOfDataHasItsPartOfADividedOptimizer) {
  TrainingStep step = small_step({.data = 4}, "", 2);
  step.model.weights = step.model.gradients = step.model.activations = DType::bf16, step.model.master_weights = true;
  auto whole = bytes_by_kind(step);
  step.shard_optimizer_over_data = true;
  auto parts = bytes_by_kind(step);
  EXPECT_EQ(whole[MemoryKind::optimizer], 6 * whole[MemoryKind::weights]) << "two moments and a copy, all of them float32";
  EXPECT_EQ(parts[MemoryKind::optimizer], whole[MemoryKind::optimizer] / 4);
  EXPECT_EQ(parts[MemoryKind::weights], whole[MemoryKind::weights]);
  step.shard_optimizer_over_data = false, step.model.moments = DType::bf16;
  EXPECT_EQ(bytes_by_kind(step)[MemoryKind::optimizer], 4 * whole[MemoryKind::weights]) << "moments as wide as the weights";
  EXPECT_EQ(parts[MemoryKind::gradients], whole[MemoryKind::gradients] * 5 / 4) << "sums over microbatches, and a part of what they come to";
}

/// More positions than a sequence has, and sequences of two or more on a device.
TEST(TrainingSchedule, LearnedPositionsGiveTheNumbersOfOneDevice) {
  const auto positions = [](const TrainingMesh& mesh, std::int64_t count, bool tied, std::int64_t sequences) {
    TrainingStep step = small_step(mesh, "1f1b", 2);
    step.model.layers = 2, step.model.positions = count, step.model.tied = tied;
    step.batch *= sequences;
    expect_one_device(step, 2);
  };
  positions({}, 2, true, 3);
  positions({.data = 2}, 5, false, 2);
  positions({.fsdp = 2}, 3, true, 2);
  positions({.row = 2, .col = 2}, 2, false, 1);
  positions({.row = 2, .col = 2}, 7, true, 2);
  positions({.slice = 2, .stage = 2}, 4, true, 1);
}

TEST(TrainingSchedule, WhatIsKeptOnTheHostComesBackUnchanged) {
  const auto on_host = [](const TrainingMesh& mesh, const std::string& pipeline, std::int64_t microbatches, const std::string& remat) {
    TrainingStep step = small_step(mesh, pipeline, microbatches);
    step.remat = *parse_remat("selected:" + remat, {});
    expect_one_device(step, 2);
  };
  on_host({}, "", 2, "in_proj@host");
  on_host({.fsdp = 2}, "", 2, "in_proj@host,ff1");
  on_host({.row = 2, .col = 2}, "", 1, "in_proj@host,out_proj@host,ff1@host,ff2@host");
  on_host({.stage = 2, .fsdp = 2}, "1f1b", 1, "norm1@host,in_proj@host");  // a backward pass right behind its forward pass
  on_host({.stage = 2}, "zero-bubble", 4, "in_proj@host,attention@host,activation@host");
  on_host({.stage = 2}, "interleaved-1f1b", 4, "in_proj@host");
}

/// Copies to and from the host run beside the work: nothing of a call waits for them, and they wait for no more than they copy.
TEST(TrainingSchedule, CopiesToTheHostWaitForWhatTheyCopyAlone) {
  TrainingStep step = small_step({.fsdp = 2}, "", 2);
  step.remat = *parse_remat("selected:in_proj@host", {});
  int offloads = 0, retrievals = 0, alone = 0;
  for (const Function& function : claimed(step, 1).functions)
    for (const Task& task : function.body.tasks) {
      const auto* local = std::get_if<Local>(&task.op);
      for (const Edge& edge : task.after) {
        const Task& before = function.body.tasks[edge.task.index()];
        if (task.label == "offload in_proj.Y")
          EXPECT_TRUE(before.label.starts_with("in_proj: ")) << before.label;
        else
          EXPECT_THAT(before.label, ::testing::Not(::testing::AnyOf("offload in_proj.Y", "retrieve in_proj.Y"))) << task.label;
      }
      if (task.label == "offload in_proj.Y") {
        ++offloads;
        EXPECT_TRUE(local->unit == Unit::dma && local->kind == LocalKind::to_host);
      }
      if (task.label != "retrieve in_proj.Y") continue;
      ++retrievals;
      if (function.body.tasks.size() == 1) ++alone;
      EXPECT_TRUE(local->unit == Unit::dma && local->kind == LocalKind::from_host && task.after.empty());
    }
  EXPECT_GE(offloads, 1);
  EXPECT_GE(retrievals, 2) << "in the loss, for the last layer, and in backward passes, for the layer before";
  EXPECT_EQ(alone, 0) << "no call waits for the host";
}

/// The products that a backward pass computes again.
TEST(TrainingSchedule, TheWholeLayerHasItsLastProductAgain) {
  const auto again = [](Remat::Kind kind) {
    TrainingStep step = small_step({.fsdp = 2}, "", 1);
    step.remat.kind = kind;
    std::vector<std::string> labels;
    const Schedule schedule = claimed(step, 1);
    const auto backward =
        std::ranges::find_if(schedule.functions, [](const Function& function) { return function.name.starts_with("small: layer backward"); });
    EXPECT_NE(backward, schedule.functions.end());
    for (const Task& task : backward->body.tasks)
      if (task.recompute && std::holds_alternative<Matmul>(task.op)) labels.push_back(task.label.substr(0, task.label.find(':')));
    return labels;
  };
  EXPECT_THAT(again(Remat::Kind::none), ::testing::IsEmpty());
  EXPECT_THAT(again(Remat::Kind::full), ::testing::UnorderedElementsAre("again in_proj", "again out_proj", "again ff1"));
  EXPECT_THAT(again(Remat::Kind::layer), ::testing::UnorderedElementsAre("again in_proj", "again out_proj", "again ff1", "again ff2"));
}

TEST(TrainingSchedule, AnEmbeddingByProductHasTheProductsThatAreCounted) {
  TrainingStep step = small_step({}, "", 2);
  step.embedding_by_product = true;
  const auto embedding = [](const TrainingStep& of) {
    const Schedule schedule = inline_calls(claimed(of, 1));
    double flops = 0;
    for (const Task& task : schedule.programs[0].tasks)
      if (const auto* matmul = std::get_if<Matmul>(&task.op); matmul != nullptr && (task.label.ends_with("embed"))) {
        const MatmulExtents extents = extents_of(*matmul);
        flops += 2.0 * static_cast<double>(extents.m * extents.n * extents.k);
      }
    return flops;
  };
  double counted = 0;
  for (const PartCount& part : counts_of(step).parts)
    if (part.name == "embedding_product") counted = (part.forward + part.backward).count();
  EXPECT_EQ(embedding(step), counted);
  step.embedding_by_product = false;
  EXPECT_EQ(embedding(step), 0);
}

/// One order of additions, whatever else differs in the schedule: the same bits.
TEST(TrainingSchedule, PipelinesWithTheSameOrderOfMicrobatchesGiveTheSameBits) {
  const auto outputs = [](const std::string& pipeline) {
    const Schedule lowered = lowered_step(claimed(small_step({.stage = 2}, pipeline, 4), 2));
    NumericOptions options;
    options.filling = Filling::uniform;
    auto tensors = make_numeric_engine(options)->run(lowered);
    EXPECT_TRUE(tensors);
    std::map<std::pair<std::size_t, std::string>, std::vector<float>> values;  // by device and output
    for (std::size_t d = 0; d < tensors->values.size(); ++d) {
      const Program& program = lowered.programs[*program_of(lowered, DeviceId{d})];
      for (std::size_t b = 0; b < program.buffers.size(); ++b)
        if (program.buffers[b].role == Role::output) values[{d, program.buffers[b].tensor}] = tensors->values[d][b];
    }
    return values;
  };
  const auto expected = outputs("gpipe");
  EXPECT_FALSE(expected.empty());
  for (const char* pipeline : {"1f1b", "eager-1f1b", "zero-bubble"}) EXPECT_EQ(outputs(pipeline), expected) << pipeline;
}

/// What a mistake in a schedule gives.
bool is_found(const std::function<void(Schedule&)>& mistake, const TrainingStep& step = small_step({.stage = 2, .fsdp = 2}, "1f1b", 4), int steps = 1) {
  Schedule schedule = claimed(step, steps);
  mistake(schedule);
  const auto lowered = lower(schedule, ring_or_line());
  if (!lowered) return true;
  CheckOptions options;
  options.random_orders = 0;
  const auto report = check(*lowered, options);
  return !report || !report->ok;
}

Task& task_named(Program& program, const std::string& label) {
  for (Task& task : program.tasks)
    if (task.label == label) return task;
  ADD_FAILURE() << "no task " << label;
  return program.tasks.front();
}

TEST(TrainingSchedule, MistakesAreFound) {
  EXPECT_FALSE(is_found([](Schedule&) {}));
  EXPECT_TRUE(is_found([](Schedule& schedule) {  // microbatches in another order
    for (Program& program : schedule.programs)
      for (Task& task : program.tasks)
        if (task.label == "send act_0__1 to 1") std::swap(std::get<Send>(task.op).source, std::get<Send>(task_named(program, "send act_0__2 to 1").op).source);
  }));
  EXPECT_TRUE(is_found([](Schedule& schedule) {  // a transfer that is missing
    task_named(schedule.programs[0], "send act_0__2 to 1").op = Local{LocalKind::join, {}, {}, 1, Unit::dma};
  }));
  EXPECT_TRUE(is_found([](Schedule& schedule) {  // a gradient added twice
    for (Function& function : schedule.functions)
      for (Task& task : function.body.tasks)
        if (auto* local = std::get_if<Local>(&task.op); local != nullptr && task.label == "add d ff1") local->reads[0] = local->reads[1];
  }));
  EXPECT_TRUE(is_found([](Schedule& schedule) {  // weights of another layer
    auto& arguments = std::get<Call>(task_named(schedule.programs[1], "update layer 2").op).arguments;
    std::swap(arguments, std::get<Call>(task_named(schedule.programs[1], "update layer 3").op).arguments);
    std::swap(arguments[1], std::get<Call>(task_named(schedule.programs[1], "update layer 3").op).arguments[1]);
  }));
  EXPECT_TRUE(is_found([](Schedule& schedule) {  // gradients of one device alone
    for (Function& function : schedule.functions)
      for (Task& task : function.body.tasks)
        if (auto* collective = std::get_if<Collective>(&task.op); collective != nullptr && task.label == "scatter d ff2")
          task.op = Local{LocalKind::copy, {with(collective->input, static_cast<std::size_t>(collective->dim), block(own(collective->axes[0]), lengths_of(collective->output)[static_cast<std::size_t>(collective->dim)]))}, {collective->output}};
  }));
  TrainingStep sharded = small_step({.data = 2}, "", 2);
  sharded.shard_optimizer_over_data = true;
  EXPECT_FALSE(is_found([](Schedule&) {}, sharded, 2));
  EXPECT_TRUE(is_found([](Schedule& schedule) {  // weights of the step before
    for (Task& task : schedule.programs.front().tasks)
      if (task.label == "gather updated layer1.ff1") task.op = Local{LocalKind::join, {}, {}, 1, Unit::dma};
  }, sharded, 2));
}

/// A reduce-scatter adds up in an input that is scratch, as every parameter of a function is. Walks a body in its order.
class PartialSums {
 public:
  explicit PartialSums(const Schedule& schedule) {
    for (const Function& function : schedule.functions) {
      std::vector<Use> uses = walk(function.body, true);
      uses.resize(static_cast<std::size_t>(function.parameters));
      functions_.push_back(std::move(uses));
    }
    for (const Program& program : schedule.programs) walk(program, false);
  }
  [[nodiscard]] const std::vector<std::string>& readers() const { return readers_; }  // of what a reduction before them left
  [[nodiscard]] int reductions() const { return reductions_; }

 private:
  struct Use {
    bool is_touched = false, reads_first = false, has_sums = false;
  };

  std::vector<Use> walk(const Program& body, bool in_function) {
    std::vector<Use> uses(body.buffers.size());
    const auto reads = [&](BufferId buffer, const Task& task) {
      Use& use = uses[buffer.index()];
      if (use.has_sums) readers_.push_back(task.label);
      use.reads_first |= !use.is_touched;
      use.is_touched = true;
    };
    for (const Task& task : body.tasks) {
      if (const auto* call = std::get_if<Call>(&task.op)) {
        const std::vector<Use>& of = functions_[static_cast<std::size_t>(call->function)];
        for (std::size_t p = 0; p < of.size(); ++p)
          if (of[p].reads_first) reads(call->arguments[p], task);
        for (std::size_t p = 0; p < of.size(); ++p)
          if (of[p].is_touched && (of[p].has_sums || !of[p].reads_first)) uses[call->arguments[p].index()].has_sums = of[p].has_sums;
      }
      if (const auto* matmul = std::get_if<Matmul>(&task.op); matmul != nullptr && matmul->accumulate) reads(matmul->out.buffer, task);
      for_each_touch(task.op, [&](const Touch& touch) {
        Use& use = uses[touch.region.buffer.index()];
        if (!touch.write) return reads(touch.region.buffer, task);
        use.is_touched = true;
        if (lengths_of(touch.region) == body.buffers[touch.region.buffer.index()].extents) use.has_sums = false;
      });
      const auto* collective = std::get_if<Collective>(&task.op);
      if (collective == nullptr || (collective->kind != CollectiveKind::reduce_scatter && collective->kind != CollectiveKind::reduce)) continue;
      ++reductions_;
      const BufferId input = collective->input.buffer;
      if ((in_function || body.buffers[input.index()].role == Role::scratch) && input != collective->output.buffer) uses[input.index()].has_sums = true;
    }
    return uses;
  }

  std::vector<std::vector<Use>> functions_;
  std::vector<std::string> readers_;
  int reductions_ = 0;
};

TEST(TrainingSchedule, NothingReadsThePartialSumsThatAReduceScatterLeaves) {
  int reductions = 0;
  const auto expect_none = [&](const TrainingStep& step) {
    const PartialSums sums{claimed(step, 2)};
    reductions += sums.reductions();
    EXPECT_THAT(sums.readers(), ::testing::IsEmpty()) << to_text(step.mesh) << " " << step.pipeline;
  };
  for (const auto& [pipeline, mesh] : every_schedule()) expect_none(small_step(mesh, pipeline));
  for (const TrainingMesh& mesh : {TrainingMesh{.fsdp = 4}, {.row = 2, .col = 2}, {.col = 2}, {.slice = 2, .data = 2}, {.slice = 2, .data = 2, .fsdp = 2}})
    for (const bool tied : {false, true}) {
      TrainingStep step = small_step(mesh, "", 2);
      step.model.tied = tied, step.model.positions = 4;
      expect_none(step);
      step.shard_optimizer_over_data = true;
      expect_none(step);
    }
  EXPECT_GT(reductions, 100);
  // A gradient that is clipped behind its reduction.
  Schedule schedule = claimed(small_step({.fsdp = 2}, "", 2), 2);
  for (Function& function : schedule.functions)
    for (std::size_t t = 0; t < function.body.tasks.size(); ++t) {
      if (function.body.tasks[t].label != "scatter d ff2") continue;
      const auto scatter = std::get<Collective>(function.body.tasks[t].op);
      Task clip;
      clip.label = "clip", clip.op = Local{LocalKind::scale, {scatter.input}, {scatter.input}, 0.5}, clip.after = {Edge{TaskId{t}}};
      function.body.tasks.push_back(std::move(clip));
      break;
    }
  EXPECT_THAT(PartialSums{schedule}.readers(), ::testing::Contains("clip"));
}

/// The tasks of a function, by the begin of their labels.
std::vector<std::size_t> tasks_named(const Function& function, const std::string& begin) {
  std::vector<std::size_t> found;
  for (std::size_t t = 0; t < function.body.tasks.size(); ++t)
    if (function.body.tasks[t].label.starts_with(begin)) found.push_back(t);
  return found;
}

std::vector<std::size_t> products_named(const Function& function, const std::string& begin) {
  std::vector<std::size_t> products = tasks_named(function, begin);
  std::erase_if(products, [&](std::size_t t) { return !std::holds_alternative<Matmul>(function.body.tasks[t].op); });
  return products;
}

/// Whether a task names another one, or one that does.
bool waits_for(const Function& function, std::size_t task, std::size_t other) {
  return std::ranges::any_of(function.body.tasks[task].after, [&](const Edge& edge) { return edge.task.index() == other || (edge.task.index() > other && waits_for(function, edge.task.index(), other)); });
}

const Function& function_named(const Schedule& schedule, const std::string& begin) {
  return *std::ranges::find_if(schedule.functions, [&](const Function& function) { return function.name.starts_with(begin); });
}

/// Forward: out_proj beside in_proj, ff1 when in_proj has been used, ff2 when out_proj has, in_proj of the next layer when ff1 has. The core works in program
/// order, so that a conversion is before the product that its gather is to hide behind.
TEST(TrainingSchedule, ALayerGathersItsWeightsOneAhead) {
  TrainingStep step = small_step({.fsdp = 2});
  for (const DType activations : {DType::f32, DType::bf16}) {
    step.model.activations = activations;
    const Schedule schedule = claimed(step, 1);
    const Function& function = function_named(schedule, "small: layer forward + gather for layer forward");
    const std::vector<std::string> products{"in_proj", "out_proj", "ff1", "ff2"};
    for (std::size_t i = 1; i <= products.size(); ++i) {
      const std::string name = products[i % products.size()];
      SCOPED_TRACE(name);
      const std::vector<std::size_t> gather = tasks_named(function, "gather " + name), convert = tasks_named(function, "convert " + name);
      ASSERT_EQ(gather.size(), 1U);
      EXPECT_EQ(convert.size(), activations == DType::bf16 ? 1U : 0U);
      const std::size_t beside = products_named(function, products[i - 1] + ": ").front();
      for (const std::size_t task : convert) EXPECT_LT(task, beside);
      EXPECT_FALSE(waits_for(function, gather.front(), beside));
      if (i > 1) {
        EXPECT_TRUE(waits_for(function, gather.front(), products_named(function, products[i - 2] + ": ").back()));
      }
      if (i < products.size()) {
        EXPECT_TRUE(waits_for(function, products_named(function, name + ": ").front(), gather.front()));
      }
    }
  }
}

/// Backward: each gradient is reduced behind its product and before the work of the layer below ends, but for the last one, which is handed over.
TEST(TrainingSchedule, ALayerReducesItsGradientsAsTheyAreMade) {
  const Schedule schedule = claimed(small_step({.fsdp = 2}), 1);
  const Function& function = function_named(schedule, "small: layer backward");
  const std::vector<std::string> made{"ff2", "ff1", "out_proj"};
  for (std::size_t i = 0; i < made.size(); ++i) {
    SCOPED_TRACE(made[i]);
    const std::vector<std::size_t> scatter = tasks_named(function, "scatter d " + made[i]);
    ASSERT_EQ(scatter.size(), 1U);
    EXPECT_TRUE(waits_for(function, scatter.front(), products_named(function, made[i] + " backward: dW").back()));
    const std::string next = i + 1 < made.size() ? made[i + 1] : "in_proj";
    EXPECT_LT(scatter.front(), products_named(function, next + " backward: ").front());
    EXPECT_FALSE(waits_for(function, products_named(function, next + " backward: dW").back(), scatter.front())) << "the work does not wait";
  }
  int handed_over = 0;
  for (const Buffer& parameter : function.body.buffers) handed_over += parameter.name == "in_proj.dW" ? 1 : 0;
  EXPECT_EQ(handed_over, 1);
}

}  // namespace
}  // namespace podsim
