#include "algorithms/pipeline/write_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/invariant.hpp"
#include "sim/schedule/submesh.hpp"

namespace podsim {

namespace {

using Kind = PipelineCommand::Kind;
using Value = PipelineValue::Kind;

/// The sum that a command adds to.
std::optional<PipelineValue> sum_of(const PipelineCommand& command, const PipelineSpec& spec) {
  const PipelineTask& task = command.task;
  switch (command.kind) {
    case Kind::zero_gradients:
    case Kind::update: return PipelineValue{Value::gradients, task.stage, 0};
    case Kind::zero_loss:
    case Kind::mean_loss: return PipelineValue{Value::loss, 0, 0};
    case Kind::execute:
      if (task.kind == PipelineTaskKind::forward && task.stage + 1 == spec.stages) return PipelineValue{Value::loss, 0, 0};
      if (task.kind == PipelineTaskKind::backward || task.kind == PipelineTaskKind::backward_weights) return PipelineValue{Value::gradients, task.stage, 0};
      return std::nullopt;
    default: return std::nullopt;
  }
}

class RankWriter {
 public:
  RankWriter(const Mesh& mesh, const AxisView& stages, const PipelineStep& step, const PipelineWork& work, int rank)
      : mesh_{mesh}, stages_{stages}, step_{step}, spec_{step.lists.spec}, work_{work}, rank_{rank},
        program_{mesh, stages == one_device ? every_device(mesh) : devices_where(mesh, {{own(stages, 0, false), rank, rank + 1}}), rank, work.buffer} {
    for (const PipelineUnit& unit : step.lists.ranks[static_cast<std::size_t>(rank)])
      if (unit.size() > 1) fused_.emplace(unit.front(), &unit);
  }

  Program write(int steps) {
    const auto r = static_cast<std::size_t>(rank_);
    for (int step = 0; step < steps; ++step) {
      program_.begin_step(step);
      ready_.clear();
      for (const auto* part : {&step_.before, &step_.loop, &step_.after})
        for (const PipelineCommand& command : (*part)[r]) write(command);
    }
    return std::move(program_.builder).finish();
  }

 private:
  void write(const PipelineCommand& command) {
    switch (command.kind) {
      case Kind::send: send(command); break;
      case Kind::receive: receive(command); break;
      case Kind::erase: break;  // the buffer has had its last use
      default: perform(command);
    }
  }

  void perform(const PipelineCommand& command) {
    Edges after;
    const auto wait_for = [&](const PipelineValue& value) {
      if (const auto made = ready_.find(value); made != ready_.end()) after = join(std::move(after), made->second);
    };
    const bool executes = command.kind == Kind::execute;
    const std::optional<PipelineValue> sum = sum_of(command, spec_);
    if (executes)
      for (const PipelineValue& value : read_by(command.task, spec_)) wait_for(value);
    if (sum) wait_for(*sum);
    if (executes)
      if (const auto unit = fused_.find(command.task); unit != fused_.end())
        for (const PipelineTask& member : *unit->second)  // what members make is not ready yet
          for (const PipelineValue& value : read_by(member, spec_)) wait_for(value);

    const Edges ends = work_.write(program_, command, after);
    if (sum) ready_[*sum] = ends;
    if (executes)
      for (const PipelineValue& value : made_by(command.task, spec_)) ready_[value] = ends;
    for (int k = 0; k < spec_.microbatches; ++k) {
      if (command.kind == Kind::split_inputs) ready_[{Value::inputs, 0, k}] = ends;
      if (command.kind == Kind::split_targets) ready_[{Value::targets, 0, k}] = ends;
    }
  }

  [[nodiscard]] int channel(int from, int to) const { return from * spec_.ranks + to; }
  [[nodiscard]] bool moves(const PipelineValue& value) const { return value.kind != Value::loss || work_.buffer(value); }

  void send(const PipelineCommand& command) {
    if (!moves(command.value)) return;
    Edges& before = sent_[command.peer];
    before = program_.builder.step(name_of(command), Send{channel(rank_, command.peer), peer_on_rank(mesh_, stages_, command.peer), program_.whole(command.value), {}},
                                   join(ready_[command.value], before));
  }
  void receive(const PipelineCommand& command) {
    if (!moves(command.value)) return;
    ready_[command.value] =
        program_.builder.step(name_of(command), Recv{channel(command.peer, rank_), peer_on_rank(mesh_, stages_, command.peer), program_.whole(command.value), Combine::replace}, {});
  }

  const Mesh& mesh_;
  const AxisView& stages_;
  const PipelineStep& step_;
  const PipelineSpec& spec_;
  const PipelineWork& work_;
  int rank_;
  PipelineProgram program_;
  std::map<PipelineTask, const PipelineUnit*> fused_;  // by the first member
  std::map<PipelineValue, Edges> ready_;
  std::map<int, Edges> sent_;  // by peer: the latest
};

}  // namespace

BufferId PipelineProgram::buffer(const PipelineValue& value) {
  const auto known = buffers_.find(value);
  if (known != buffers_.end()) return known->second;
  std::optional<Buffer> described = describe_(value);
  PODSIM_ASSERT(described.has_value());
  return buffers_.emplace(value, builder.add_buffer(*std::move(described))).first->second;
}

Peer peer_on_rank(const Mesh& mesh, const AxisView& stages, int rank) {
  Peer peer;
  for (int a = 0; a < static_cast<int>(mesh.axes().size()); ++a) peer.push_back(a == stages.axis ? Affine{rank} : own(mesh.whole(a), 0, false));
  return peer;
}

Expected<Schedule> write_pipeline(const Mesh& mesh, const AxisView& stages, const PipelineStep& step, const PipelineWork& work, int steps) {
  const int ranks = step.lists.spec.ranks;
  if (stages.size != ranks) {
    const std::string axis = stages == one_device ? "a mesh without an axis for stages" : "axis " + mesh.name(stages);
    return Diagnostic{of_field("mesh"), fmt::format("{} has size {}; expected {}, one for each rank", axis, stages.size, ranks)};
  }
  Schedule schedule{std::string{name_of(step.lists.spec.schedule)}, mesh, {}, {}};
  for (int rank = 0; rank < ranks; ++rank) schedule.programs.push_back(RankWriter{mesh, stages, step, work, rank}.write(steps));
  return schedule;
}

}  // namespace podsim
