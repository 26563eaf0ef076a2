#include "algorithms/pipeline/pipeline_step.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>

#include <fmt/format.h>

#include "algorithms/pipeline/pipeline_times.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {
namespace {

using Kind = PipelineCommand::Kind;
using Value = PipelineValue::Kind;

constexpr int most_layers = 1 << 20;

std::vector<PipelineCommand> before_of(const PipelineSpec& spec, int rank) {
  std::vector<PipelineCommand> commands;
  if (rank_of_stage(spec, 0) == rank) commands.push_back({Kind::split_inputs});
  if (rank_of_stage(spec, spec.stages - 1) == rank) {
    commands.push_back({Kind::split_targets});
    commands.push_back({Kind::zero_loss});
  }
  for (const int stage : stages_of_rank(spec, rank)) commands.push_back({Kind::zero_gradients, {PipelineTaskKind::forward, stage, 0}});
  return commands;
}

/// The mean loss goes from the last stage to all ranks; it is a scalar there, so it is no copy that somebody has to delete.
std::vector<PipelineCommand> after_of(const PipelineSpec& spec, int rank) {
  std::vector<PipelineCommand> commands;
  const PipelineValue loss{Value::loss, 0, 0};
  if (const int last = rank_of_stage(spec, spec.stages - 1); last == rank) {
    commands.push_back({Kind::mean_loss});
    for (int peer = 0; peer < spec.ranks; ++peer)
      if (peer != rank) commands.push_back({Kind::send, {}, loss, peer});
  } else {
    commands.push_back({Kind::receive, {}, loss, last});
  }
  for (const int stage : stages_of_rank(spec, rank)) {
    commands.push_back({Kind::update, {PipelineTaskKind::forward, stage, 0}});
    commands.push_back({Kind::erase, {}, {Value::gradients, stage, 0}});
  }
  return commands;
}

/// The rank that reads an activation or its gradient, the stage after or before.
int reader_of(const PipelineSpec& spec, const PipelineValue& value) {
  return rank_of_stage(spec, value.kind == Value::activation ? value.stage + 1 : value.stage);
}
bool crosses_stages(const PipelineValue& value) { return value.kind == Value::activation || value.kind == Value::activation_gradient; }

/// Writes the loop in the order in which units start, so every value has been sent before the unit that receives it is written.
class LoopWriter {
 public:
  LoopWriter(const PipelineLists& lists, PipelineStep& step) : lists_{lists}, step_{step}, received_(lists.ranks.size()) { count_uses(); }

  void write(std::size_t rank, const PipelineUnit& unit) {
    std::vector<PipelineCommand>& commands = step_.loop[rank];
    for (const PipelineTask& task : unit)
      for (const PipelineValue& value : read_by(task, lists_.spec)) receive(rank, value);
    for (const PipelineTask& task : unit) {
      commands.push_back({Kind::execute, task});
      for (const PipelineValue& value : made_by(task, lists_.spec))
        if (crosses_stages(value)) send(rank, value);
      for (const PipelineValue& value : read_by(task, lists_.spec)) use(rank, value);
    }
  }

 private:
  void count_uses() {
    for (const auto& list : lists_.ranks)
      for (const PipelineUnit& unit : list)
        for (const PipelineTask& task : unit)
          for (const PipelineValue& value : read_by(task, lists_.spec)) ++uses_[value];
  }

  void send(std::size_t rank, const PipelineValue& value) {
    const int from = static_cast<int>(rank), to = reader_of(lists_.spec, value);
    if (to == from) return;
    step_.loop[rank].push_back({Kind::send, {}, value, to});
    step_.loop[rank].push_back({Kind::erase, {}, value});  // only the other rank reads it
    step_.transfers.push_back({from, to, value});
    on_the_way_[{from, to}].push_back(value);
  }

  /// Also receives all that the same rank sent before.
  void receive(std::size_t rank, const PipelineValue& value) {
    if (!crosses_stages(value)) return;
    const int maker = rank_of_stage(lists_.spec, value.kind == Value::activation ? value.stage : value.stage + 1), here = static_cast<int>(rank);
    if (maker == here || received_[rank].contains(value)) return;
    std::deque<PipelineValue>& queue = on_the_way_[{maker, here}];
    for (bool found = false; !found; queue.pop_front()) {
      PODSIM_ASSERT(!queue.empty());
      found = queue.front() == value;
      step_.loop[rank].push_back({Kind::receive, {}, queue.front(), maker});
      received_[rank].insert(queue.front());
    }
  }

  void use(std::size_t rank, const PipelineValue& value) {
    const auto left = uses_.find(value);
    if (--left->second > 0) return;
    uses_.erase(left);
    received_[rank].erase(value);
    step_.loop[rank].push_back({Kind::erase, {}, value});
  }

  const PipelineLists& lists_;
  PipelineStep& step_;
  std::map<PipelineValue, int> uses_;              // by tasks that are not written yet; all readers of a value are on one rank
  std::vector<std::set<PipelineValue>> received_;  // per rank, those that are not deleted yet
  std::map<std::pair<int, int>, std::deque<PipelineValue>> on_the_way_;
};

}  // namespace

std::string name_of(const PipelineValue& value) {
  switch (value.kind) {
    case Value::inputs: return fmt::format("inputs__{}", value.microbatch);
    case Value::targets: return fmt::format("targets__{}", value.microbatch);
    case Value::activation: return fmt::format("act_{}__{}", value.stage, value.microbatch);
    case Value::residuals: return fmt::format("res_{}__{}", value.stage, value.microbatch);
    case Value::activation_gradient: return fmt::format("dact_{}__{}", value.stage, value.microbatch);
    case Value::weight_residuals: return fmt::format("resW_{}__{}", value.stage, value.microbatch);
    case Value::gradients: return fmt::format("grads_{}", value.stage);
    case Value::loss: return "loss";
  }
  PODSIM_ASSERT(false);
  return {};
}

std::vector<PipelineValue> read_by(const PipelineTask& task, const PipelineSpec& spec) {
  const auto [kind, s, k] = task;
  const bool last = s + 1 == spec.stages;
  std::vector<PipelineValue> values;
  switch (kind) {
    case PipelineTaskKind::forward:
      values.push_back(s == 0 ? PipelineValue{Value::inputs, 0, k} : PipelineValue{Value::activation, s - 1, k});
      if (last) values.push_back({Value::targets, 0, k});
      break;
    case PipelineTaskKind::backward:
    case PipelineTaskKind::backward_inputs:
      values.push_back({Value::residuals, s, k});
      if (!last) values.push_back({Value::activation_gradient, s, k});
      break;
    case PipelineTaskKind::backward_weights: values = {{Value::residuals, s, k}, {Value::weight_residuals, s, k}}; break;
  }
  return values;
}

std::vector<PipelineValue> made_by(const PipelineTask& task, const PipelineSpec& spec) {
  const auto [kind, s, k] = task;
  std::vector<PipelineValue> values;
  if (kind == PipelineTaskKind::forward) {
    if (s + 1 < spec.stages) values.push_back({Value::activation, s, k});
    values.push_back({Value::residuals, s, k});
  }
  if (kind == PipelineTaskKind::backward || kind == PipelineTaskKind::backward_inputs)
    if (s > 0) values.push_back({Value::activation_gradient, s - 1, k});
  if (kind == PipelineTaskKind::backward_inputs) values.push_back({Value::weight_residuals, s, k});
  return values;
}

std::string name_of(const PipelineCommand& command) {
  switch (command.kind) {
    case Kind::split_inputs: return "split_inputs";
    case Kind::split_targets: return "split_targets";
    case Kind::zero_gradients: return fmt::format("zero_grads_{}", command.task.stage);
    case Kind::zero_loss: return "zero_loss";
    case Kind::execute: return name_of(command.task);
    case Kind::send: return fmt::format("send {} to {}", name_of(command.value), command.peer);
    case Kind::receive: return fmt::format("recv {} from {}", name_of(command.value), command.peer);
    case Kind::erase: return "delete " + name_of(command.value);
    case Kind::mean_loss: return "mean_loss";
    case Kind::update: return fmt::format("update_{}", command.task.stage);
  }
  PODSIM_ASSERT(false);
  return {};
}

std::vector<std::string_view> pipeline_scalars() { return {"step", "learning_rate", "loss"}; }

int stage_of_layer(const PipelineStep& step, int layer) {
  PODSIM_ASSERT(layer >= 0 && layer < step.layers);
  return layer / (step.layers / step.lists.spec.stages);
}

Expected<PipelineStep> pipeline_step(const PipelineLists& lists, int layers) {
  const PipelineSpec& spec = lists.spec;
  if (layers < 1 || layers > most_layers) return Diagnostic{of_field("layers"), fmt::format("expected 1 to {}, got {}", most_layers, layers)};
  if (layers % spec.stages != 0)
    return Diagnostic{of_field("layers"), fmt::format("{} layers on {} stages; expected a multiple of {}", layers, spec.stages, spec.stages)};
  const auto times = pipeline_times(lists);
  if (!times) return times.error();
  PipelineStep step{lists, layers, {}, std::vector<std::vector<PipelineCommand>>(lists.ranks.size()), {}, {}};
  for (int rank = 0; rank < spec.ranks; ++rank) {
    step.before.push_back(before_of(spec, rank));
    step.after.push_back(after_of(spec, rank));
  }
  LoopWriter writer{lists, step};
  for (const auto& [rank, unit] : times->order)
    writer.write(static_cast<std::size_t>(rank), lists.ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(unit)]);
  return step;
}

}  // namespace podsim
