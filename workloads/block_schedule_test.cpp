// Whole blocks: they are valid, compute a transformer block and its gradients, and take the time of their parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>

#include "sim/base/rng.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "sim/schedule/text.hpp"
#include "topologies/machines.hpp"
#include "workloads/block_reference.hpp"
#include "workloads/collectives.hpp"
#include "workloads/plan.hpp"
#include "workloads/test_blocks.hpp"

namespace podsim {
namespace {

using testing::NamedPlan;
using testing::plans_for;

std::vector<TransformerBlock> blocks() {
  TransformerBlock bare = testing::small_block();
  bare.name = "bare";
  bare.norm = Norm::none, bare.residuals = false, bare.causal = false;
  TransformerBlock mlp = testing::small_gated_block();
  mlp.name = "mlp";
  mlp.attention = false;
  return {testing::small_block(), testing::small_gated_block(), bare, mlp};
}

std::vector<Mesh> block_meshes() { return {testing::mesh_of(2, 2), testing::mesh_of(2, 4), testing::mesh_of(4, 2), testing::mesh_of(1, 4)}; }

/// The plans of all blocks on all meshes that apply: few re-layouts do where a residual joins.
template <class Body>
int for_each_plan(Body body) {
  int count = 0;
  for (const TransformerBlock& block : blocks())
    for (const Mesh& mesh : block_meshes()) {
      const auto workload = workload_of(block, mesh.devices());
      for (const NamedPlan& named : plans_for(*workload)) {
        if (!parts_of(*workload, named.plan, mesh, Pass::both)) continue;
        SCOPED_TRACE(block.name + ", " + named.name + " on " + to_text(mesh));
        body(*workload, named.plan, mesh);
        ++count;
        if (::testing::Test::HasFatalFailure()) return count;
      }
    }
  return count;
}

TEST(BlockSchedule, NothingIsWrongWithAnyPass) {
  int passes = 0;
  const int plans = for_each_plan([&](const Workload& workload, const Plan& plan, const Mesh& mesh) {
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
      const auto schedule = block_schedule(mesh, workload, plan, pass);
      ASSERT_TRUE(schedule) << to_text(schedule.error());
      const auto lowered = lower(*schedule, by_dimension({}));
      ASSERT_TRUE(lowered) << to_text(lowered.error());
      EXPECT_EQ(to_text(validate(*lowered).all()), "");
      ++passes;
    }
  });
  EXPECT_GE(plans, 100);
  EXPECT_EQ(passes, 3 * plans);
}

/// What check() says of a schedule, lowered; empty: it is right.
std::string wrong_with(const Schedule& schedule, int orders = 1) {
  const auto lowered = lower(schedule, by_dimension({}));
  if (!lowered) return to_text(lowered.error());
  CheckOptions options;
  options.random_orders = orders, options.threads = 1;
  const auto report = check(*lowered, options);
  if (!report) return to_text(report.error());
  if (!report->ok) return report->problems.empty() ? "not ok" : to_text(report->problems.front());
  EXPECT_LT(report->tolerance, 1e-3) << "so wide that it proves little";
  return "";
}

TEST(BlockSchedule, ComputesTheBlockAndItsGradients) {
  for_each_plan([&](const Workload& workload, const Plan& plan, const Mesh& mesh) {
    for (const Pass pass : {Pass::both, Pass::backward, Pass::forward}) {
      if (pass != Pass::both && mesh != testing::mesh_of(2, 4)) continue;
      const auto schedule = block_schedule(mesh, workload, plan, pass);
      ASSERT_TRUE(schedule) << to_text(schedule.error());
      ASSERT_EQ(wrong_with(*schedule), "") << static_cast<int>(pass);
    }
  });
}

TEST(BlockSchedule, TheForwardPassAloneIsThatOfBoth) {
  const Mesh mesh = testing::mesh_of(2, 4);
  const auto workload = workload_of(testing::small_gated_block(), 8);
  for (const NamedPlan& named : plans_for(*workload)) {
    if (!parts_of(*workload, named.plan, mesh, Pass::both)) continue;
    const auto alone = testing::run_on_numbers(*block_schedule(mesh, *workload, named.plan, Pass::forward), ring_or_line());
    const auto both = testing::run_on_numbers(*block_schedule(mesh, *workload, named.plan, Pass::both), ring_or_line());
    ASSERT_FALSE(alone.empty() || both.empty());
    EXPECT_EQ(alone.at("Y").values, both.at("Y").values) << named.name;
    EXPECT_FALSE(alone.contains("dX"));
  }
}

// Each part has tensors of its own where only products or only the rest are asked for: nothing flows.
TEST(BlockSchedule, PartsOfAKindAloneReadWhatTheyAreGiven) {
  const Mesh mesh = testing::mesh_of(2, 4);
  for (const Only only : {Only::gemm, Only::other}) {
    const auto workload = workload_of(testing::small_gated_block(), 8, only);
    for (const NamedPlan& named : plans_for(*workload))
      for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
        if (!parts_of(*workload, named.plan, mesh, pass)) continue;
        const auto schedule = block_schedule(mesh, *workload, named.plan, pass);
        ASSERT_TRUE(schedule) << to_text(schedule.error());
        const auto lowered = lower(*schedule, ring_or_line());
        ASSERT_TRUE(lowered) << to_text(lowered.error());
        EXPECT_EQ(to_text(validate(*lowered).all()), "") << named.name;
        EXPECT_EQ(wrong_with(*schedule, 0), "") << named.name;
      }
  }
}

// ---- The reference itself -------------------------------------------------------------------------------------------------------------

using Tensors = std::map<std::string, std::vector<double>>;

Tensors outputs_of(const ReferenceProgram& program, const Mesh& mesh, const Tensors& inputs) {
  ThreadPool pool{1};
  const auto values = evaluate(
      program, mesh, [&](const ReferenceNode& node) { return inputs.at(node.tensor); }, pool);
  Tensors outputs;
  for (std::size_t o = 0; o < program.outputs.size(); ++o) outputs[program.outputs[o].first] = (*values)[o];
  return outputs;
}

TEST(BlockReference, GradientsAreCentralDifferences) {
  const Mesh mesh = testing::mesh_of(2, 2);
  for (const TransformerBlock& of : blocks()) {
    TransformerBlock block = of;
    block.hidden = 8, block.head_dim = 2, block.ff = 8, block.sequence = 3, block.batch = 2;
    const auto workload = workload_of(block, 4);
    const ReferenceProgram program = block_reference(*workload, plans_for(*workload)[5].plan, mesh, Pass::both);
    ASSERT_THAT(check_reference(program, mesh), ::testing::IsEmpty());
    Rng rng{11};
    Tensors inputs;
    for (const ReferenceNode& node : program.nodes)
      if (node.kind == ReferenceKind::input)
        for (std::int64_t i = 0; i < element_count(node.extents); ++i) inputs[node.tensor].push_back(2 * rng.uniform() - 1);
    const auto loss = [&] {
      const std::vector<double> y = outputs_of(program, mesh, inputs).at("Y");
      return std::inner_product(y.begin(), y.end(), inputs.at("dY").begin(), 0.0);
    };
    const Tensors gradients = outputs_of(program, mesh, inputs);
    EXPECT_EQ(gradients.size(), inputs.size()) << "Y, and a gradient of each input but dY";
    for (auto& [tensor, values] : inputs) {
      if (tensor == "dY") continue;
      const std::vector<double>& gradient = gradients.at(tensor == "X" ? "dX" : tensor.substr(0, tensor.size() - 1) + "dW");
      ASSERT_EQ(gradient.size(), values.size());
      double largest = 0;
      for (const double value : gradient) largest = std::max(largest, std::abs(value));
      for (std::size_t i = 0; i < values.size(); i += 5) {
        const double middle = values[i];
        values[i] = middle + 1e-6;
        const double above = loss();
        values[i] = middle - 1e-6;
        const double below = loss();
        values[i] = middle;
        ASSERT_NEAR(gradient[i], (above - below) / 2e-6, 1e-6 * largest) << block.name << " " << tensor << " " << i;
      }
    }
  }
}

// ---- Mistakes -------------------------------------------------------------------------------------------------------------------------

struct Mistake {
  std::string name;
  /// Whether the task could be changed.
  std::function<bool(Task&)> make;
};

std::vector<Mistake> mistakes() {
  const auto local = [](auto change) {
    return [change](Task& task) {
      auto* op = std::get_if<Local>(&task.op);
      return op != nullptr && change(*op);
    };
  };
  return {
      {"a lost addend", local([](Local& op) {
         if (op.kind != LocalKind::add || op.reads[1] == op.writes[0]) return false;
         return op = Local{LocalKind::copy, {op.reads[1]}, {op.writes[0]}}, true;
       })},
      {"an addend twice", local([](Local& op) { return op.kind == LocalKind::add && (op.reads[1] = op.reads[0], true); })},
      {"swapped operands", local([](Local& op) {
         const bool differ =
             op.kind == LocalKind::swiglu || op.kind == LocalKind::gelu_grad || op.kind == LocalKind::norm_grad || op.kind == LocalKind::swiglu_grad;
         return differ && (std::swap(op.reads[0], op.reads[1]), true);
       })},
      {"swapped results", local([](Local& op) { return op.kind == LocalKind::swiglu_grad && (std::swap(op.writes[0], op.writes[1]), true); })},
      {"no causal mask", local([](Local& op) { return op.causal && !(op.causal = false); })},
      {"a sum of another N", local([](Local& op) { return op.kind == LocalKind::norm && (op.factor *= 2, true); })},
      {"replaced, not added",
       [](Task& task) {
         auto* op = std::get_if<Shift>(&task.op);
         return op != nullptr && op->combine == Combine::add && (op->combine = Combine::replace, true);
       }},
      {"not accumulated",
       [](Task& task) {
         auto* op = std::get_if<Matmul>(&task.op);
         return op != nullptr && op->accumulate && !(op->accumulate = false);
       }},
      {"no edges to a product", [](Task& task) { return std::holds_alternative<Matmul>(task.op); }},
      {"no edges to a Local", local([](Local& op) { return traits_of(op.kind).role == LocalRole::compute; })},
  };
}

TEST(BlockSchedule, CheckFindsMistakes) {
  const Mesh mesh = testing::mesh_of(2, 4);
  std::map<std::string, int> found;
  for (const TransformerBlock& block : {testing::small_block(), testing::small_gated_block()}) {
    const auto workload = workload_of(block, 8);
    const Plan plan = plans_for(*workload)[1].plan;
    const auto base = lower(*block_schedule(mesh, *workload, plan, Pass::both), by_dimension({}));
    ASSERT_TRUE(base) << to_text(base.error());
    for (const Mistake& mistake : mistakes()) {
      std::vector<std::size_t> places;
      for (std::size_t t = 0; t < base->programs[0].tasks.size(); ++t)
        if (Task task = base->programs[0].tasks[t]; mistake.make(task) && (!mistake.name.starts_with("no edges") || !task.after.empty()))
          places.push_back(t);
      const std::size_t step = std::max<std::size_t>(1, places.size() / 5);
      for (std::size_t p = 0; p < places.size(); p += step) {
        Schedule wrong = *base;
        Task& task = wrong.programs[0].tasks[places[p]];
        mistake.make(task);
        if (mistake.name.starts_with("no edges")) task.after.clear();
        const auto report = check(wrong, {.random_orders = 0, .threads = 1});
        ASSERT_TRUE(report) << to_text(report.error());
        EXPECT_FALSE(report->ok) << mistake.name << " in " << task_name(wrong.programs[0], TaskId{places[p]});
        ++found[mistake.name];
      }
    }
  }
  for (const Mistake& mistake : mistakes()) EXPECT_GE(found[mistake.name], 1) << mistake.name;
}

// ---- Time -----------------------------------------------------------------------------------------------------------------------------

Picoseconds time_of(const podsim::System& pod, const Schedule& schedule) {
  const auto lowered = lower(schedule, by_dimension(chunk_rule(pod)));
  EXPECT_TRUE(lowered) << to_text(lowered.error());
  const auto model = make_model(*lowered, pod.machine, *pod.topology, pod.placement);
  EXPECT_TRUE(model) << to_text(model.error());
  const auto timeline = (*timing_engine("des"))->run(*model, {});
  EXPECT_TRUE(timeline) << to_text(timeline.error());
  return timeline->makespan;
}

/// (together, the sum over parts)
std::pair<Picoseconds, Picoseconds> times_of(const podsim::System& pod, const Workload& workload, const Plan& plan) {
  const auto parts = parts_of(workload, plan, pod.mesh, Pass::both);
  const auto whole = block_schedule(pod.mesh, workload, plan, Pass::both);
  EXPECT_TRUE(parts && whole);
  Picoseconds sum;
  for (const WorkloadPart& part : *parts) sum += time_of(pod, *part_schedule(pod.mesh, part, plan.options));
  return {time_of(pod, *whole), sum};
}

struct Place {
  std::vector<int> extents;
  int R, C;
};

TEST(BlockSchedule, OnASymmetricTorusItTakesAsLongAsItsParts) {
  int compared = 0;
  for (const char* machine : {"ideal", "tpu_v4"})
    for (const Place& place : {Place{{2, 2}, 2, 2}, {{4, 4}, 4, 4}, {{2, 4}, 2, 4}, {{2, 2, 4}, 4, 4}}) {
      const podsim::System pod = testing::slice_pod(*find_machine(machine), place.extents, place.R, place.C, Wrap::Rule::all);
      for (TransformerBlock block : {testing::small_block(), testing::small_gated_block()}) {
        block.dtype = DType::bf16;
        block.ff = 128;
        const auto workload = workload_of(block, pod.mesh.devices());
        for (const NamedPlan& named : plans_for(*workload)) {
          if (!block_schedule(pod.mesh, *workload, named.plan, Pass::both)) continue;
          const auto [whole, sum] = times_of(pod, *workload, named.plan);
          EXPECT_EQ(whole.count(), sum.count()) << machine << " " << to_text(pod.slice) << " " << to_text(pod.mesh) << ": " << block.name << ", "
                                                << named.name;
          ++compared;
        }
      }
    }
  EXPECT_GE(compared, 80);
}

// Devices end a part at different times there. A re-layout that starts so shares links otherwise than one that starts everywhere at once.
TEST(BlockSchedule, OnAnOpenMeshItTakesNoLongerButForReLayouts) {
  int without = 0, with = 0;
  for (const char* machine : {"ideal", "tpu_v4"})
    for (const Place& place : {Place{{3, 4}, 3, 4}, {{4, 4}, 4, 4}, {{2, 2, 4}, 4, 4}}) {
      const podsim::System pod = testing::slice_pod(*find_machine(machine), place.extents, place.R, place.C, Wrap::Rule::none);
      TransformerBlock block = testing::small_block();
      block.heads = block.kv_heads = 12, block.hidden = 96, block.ff = 192, block.batch = 12;
      const auto workload = workload_of(block, pod.mesh.devices());
      for (const NamedPlan& named : plans_for(*workload)) {
        const auto parts = parts_of(*workload, named.plan, pod.mesh, Pass::both);
        if (!parts || !block_schedule(pod.mesh, *workload, named.plan, Pass::both)) continue;
        const bool turns =
            std::any_of(parts->begin(), parts->end(), [](const WorkloadPart& part) { return part.kind == WorkloadPart::Kind::relayout; });
        const auto [whole, sum] = times_of(pod, *workload, named.plan);
        EXPECT_LE(static_cast<double>(whole.count()), (turns ? 1.1 : 1) * static_cast<double>(sum.count()))
            << machine << " " << to_text(pod.slice) << ": " << named.name;
        ++(turns ? with : without);
      }
    }
  EXPECT_GE(without, 10);
  EXPECT_GE(with, 10);
}

TEST(BlockSchedule, TimingEnginesAgree) {
  testing::Agreement seen;
  int models = 0;
  for (const auto& [extents, wraps] : {std::pair{std::vector<int>{2, 2}, true}, {{2, 3}, false}, {{4, 2}, true}}) {
    const testing::SmallSystem pod = testing::small_system(testing::overhead_machine(), extents, wraps);
    TransformerBlock block = testing::small_gated_block();
    block.batch = 12, block.ff = 48, block.hidden = 96, block.heads = block.kv_heads = 12;
    const auto workload = workload_of(block, pod.mesh.devices());
    for (const NamedPlan& named : plans_for(*workload)) {
      const auto schedule = block_schedule(pod.mesh, *workload, named.plan, Pass::forward);
      if (!schedule) continue;
      const auto lowered = lower(*schedule, ring_or_line());
      ASSERT_TRUE(lowered) << to_text(lowered.error());
      const auto model = testing::model_of(pod, *lowered);
      ASSERT_TRUE(model) << to_text(model.error());
      EXPECT_TRUE(testing::engines_agree(*model, 1e-6, seen)) << named.name << " on " << to_text(pod.mesh);
      ++models;
    }
  }
  EXPECT_GE(models, 10);
  EXPECT_EQ(seen.compared, models);
}

}  // namespace
}  // namespace podsim
