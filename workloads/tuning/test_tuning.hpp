// What tests of the tuner share: random requests, a search by enumeration, results as text. Not for production code.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/rng.hpp"
#include "sim/engine/table/test_agreement.hpp"
#include "topologies/machines.hpp"
#include "workloads/test_blocks.hpp"
#include "workloads/tuning/tuner.hpp"

namespace podsim::testing {

inline std::string text_of(const MemoryUse& m) {
  return fmt::format("{}+{}+{}+{}+{}", m.weights.count(), m.gradients.count(), m.optimizer.count(), m.activations.count(), m.working.count());
}

/// Everything that a plan is, but what it was compared with.
inline std::string text_of(const TunedPlan& plan) {
  std::string text = fmt::format("pod {} {}: {} = {} + {} ps, {}\n", plan.system, plan.baseline, plan.time.count(), plan.forward.count(),
                                 plan.backward.count(), text_of(plan.memory));
  for (const StagePlan& stage : plan.plan.stages) {
    text += fmt::format("  {} {}", stage.name, name_of(stage.layout));
    if (const auto& p = stage.product)
      text += fmt::format(" {} {}{} S={} {}", p->algorithm, p->transposed ? "transposed " : "", name_of(p->dataflow), p->slice_count, p->collectives);
    text += '\n';
  }
  for (const TunedPart& part : plan.parts)
    text +=
        fmt::format("    {} {} {} ps {} B\n", part.part.name, static_cast<int>(part.part.pass), part.cost.time.count(), part.cost.working.count());
  return text;
}
inline std::string text_of(const std::vector<TunedPlan>& plans) {
  std::string text;
  for (const TunedPlan& plan : plans) text += text_of(plan);
  return text;
}
inline std::string text_of(const Tuning& tuning) {
  std::string text = text_of(tuning.plans) + text_of(tuning.baselines);
  text +=
      fmt::format("{} candidates, {} simulated, {} pruned, interrupted {}\n", tuning.candidates, tuning.simulated, tuning.pruned, tuning.interrupted);
  for (const ExcludedOption& excluded : tuning.excluded) text += excluded.what + ": " + excluded.reason + '\n';
  return text;
}

inline const EngineEntry* des() { return *timing_engine("des"); }

struct SliceMesh {
  std::vector<int> extents;
  int R, C;
};

/// A block, a part of one, or products; on one to three systems of equally many devices, some of them with folded axes.
inline TuningRequest random_request(Rng& rng) {
  const auto one_of = [&](const auto& values) { return values[rng.below(values.size())]; };
  TuningRequest request;
  const bool eight = rng.below(3) > 0;
  std::vector<SliceMesh> shapes{{{2, 2}, 2, 2}, {{1, 4}, 1, 4}, {{4, 1}, 4, 1}, {{2, 2}, 4, 1}};
  if (eight) shapes = {{{2, 4}, 2, 4}, {{4, 2}, 4, 2}, {{2, 2, 2}, 4, 2}, {{2, 2, 2}, 2, 4}, {{1, 8}, 1, 8}, {{4, 2}, 8, 1}};
  Machine machine = rng.below(3) == 0 ? *find_machine("tpu_v4") : rng.below(2) == 0 ? overhead_machine() : costly_machine(rng, 100);
  const Wrap::Rule wrap = rng.below(4) == 0 ? Wrap::Rule::none : Wrap::Rule::all;
  for (int systems = rng.between(1, 3); systems > 0; --systems) {
    const SliceMesh shape = one_of(shapes);
    request.systems.push_back(slice_pod(machine, shape.extents, shape.R, shape.C, wrap));
  }
  const int devices = eight ? 8 : 4;
  if (rng.below(5) == 0) {
    std::vector<NamedProduct> products;
    for (int count = rng.between(1, 3); count > 0; --count)
      products.push_back({64 * rng.between(1, 4), 64 * rng.between(1, 4), 64 * rng.between(1, 4), DType::bf16});
    request.workload = *workload_of(products);
  } else {
    TransformerBlock block = rng.below(2) == 0 ? small_block() : small_gated_block();
    block.dtype = DType::bf16;
    block.batch = 8;
    block.ff = 64 * rng.between(1, 4);
    block.heads = 8, block.kv_heads = one_of(std::vector<int>{1, 2, 8}), block.hidden = 64;
    block.attention = rng.below(4) > 0;
    block.residuals = rng.below(4) > 0;
    if (rng.below(4) == 0) block.norm = Norm::none;
    request.workload = *workload_of(block, devices, rng.below(4) == 0 ? (rng.below(4) > 0 ? Only::gemm : Only::other) : Only::everything);
  }
  request.pass = one_of(std::vector<Pass>{Pass::both, Pass::both, Pass::forward, Pass::backward});
  for (const char* algorithm : {"collective", "meshslice", "wang", "summa"})
    if (rng.below(2) == 0) request.algorithms.emplace_back(algorithm);
  if (request.algorithms.empty()) request.algorithms = {"collective", "meshslice"};
  if (rng.below(2) == 0) request.collectives = {"", one_of(std::vector<std::string>{"ring", "line", "direct", "halving-doubling", "rotations"})};
  request.options = {2, rng.between(0, 2), rng.below(2) == 0};
  request.largest_slice_count = rng.between(2, 3);
  request.top = static_cast<std::size_t>(rng.between(1, 4));
  request.engine = des();
  request.threads = 1;
  return request;
}

/// In half of the cases slow devices on some of the systems; in half of them parts are bounded before they are simulated, however small they are.
inline void slow_down_and_bound(TuningRequest& request, std::uint64_t seed) {
  Rng rng{seed, 11};
  if (rng.below(2) == 0) request.fewest_to_bound = 0;
  if (rng.below(2) == 0) return;
  for (System& system : request.systems) {
    if (rng.below(3) == 0) continue;
    system.placement.speed.assign(static_cast<std::size_t>(system.mesh.devices()), 1);
    system.placement.speed[rng.below(system.placement.speed.size())] = 0.2 + 0.7 * rng.uniform();
  }
}

/// The best plan by looking at every one: all choices of every product, both layouts of everything else. Small workloads only.
class Enumeration {
 public:
  explicit Enumeration(const TuningRequest& request)
      : request_{request}, costs_{request.systems, request.options, std::string{by_dimension_name}, *request.engine, 1, nullptr} {}

  struct Found {
    Picoseconds time;
    Bytes memory;
    std::size_t system = 0;
  };
  /// All plans that apply, in no order.
  std::vector<Found> all() {
    found_.clear();
    for (system_ = 0; system_ < request_.systems.size(); ++system_) {
      Plan plan{request_.options, std::string{by_dimension_name}, {}};
      extend(plan);
    }
    return found_;
  }

 private:
  void extend(Plan& plan) {
    const std::size_t s = plan.stages.size();
    if (s == request_.workload.stages.size()) return evaluate(plan);
    const Stage& stage = request_.workload.stages[s];
    const auto with = [&](StagePlan next) {
      plan.stages.push_back(std::move(next));
      extend(plan);
      plan.stages.pop_back();
    };
    if (stage.kind != Stage::Kind::product) {
      for (const ActivationLayout layout : {ActivationLayout::tokens_by_row, ActivationLayout::features_by_row}) with({stage.name, layout, {}});
      return;
    }
    for (const std::string& collectives : request_.collectives)
      for (const std::string& algorithm : request_.algorithms)
        for (const Dataflow dataflow : all_dataflows)
          for (const bool transposed : {false, true})
            for (std::int64_t S = algorithm == "meshslice" ? 1 : 0; S <= (algorithm == "meshslice" ? request_.largest_slice_count : 0); ++S) {
              const ProductChoice choice{algorithm, dataflow, transposed, S, collectives};
              if (!request_.allowed || request_.allowed(stage.name, choice)) with({stage.name, input_layout(dataflow, transposed), choice});
            }
  }

  void evaluate(const Plan& plan) {
    const Mesh& mesh = request_.systems[system_].mesh;
    const auto parts = parts_of(request_.workload, plan, mesh, request_.pass);
    if (!parts) return;
    MemoryUse memory = resident_memory(request_.workload, plan, mesh, request_.pass);
    Picoseconds time;
    for (const WorkloadPart& part : *parts) {
      const std::string key = costs_.key(system_, part);
      if (costs_.known(key) == nullptr) costs_.simulate({{system_, part}}, [] {});
      const PartCost& cost = *costs_.known(key);
      if (!cost.problem.empty()) return;
      time += cost.time;
      Bytes working = cost.working;
      if (request_.pass == Pass::forward) working += Bytes{part.tokens * (part.inputs + part.outputs) / mesh.devices() * size_of(part.dtype).count()};
      memory.working = std::max(memory.working, working);
    }
    found_.push_back({time, memory.total(), system_});
  }

  const TuningRequest& request_;
  PartCosts costs_;
  std::size_t system_ = 0;
  std::vector<Found> found_;
};

}  // namespace podsim::testing
