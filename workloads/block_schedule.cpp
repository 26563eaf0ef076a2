// block_schedule() and layer_functions(): parts put one after the other into one program, or into two functions.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/blame.hpp"
#include "sim/schedule/program_builder.hpp"
#include "workloads/block_reference.hpp"
#include "workloads/layer.hpp"
#include "workloads/plan.hpp"

namespace podsim {

namespace {

class Composer {
 public:
  /// `given`: where inputs come from, if they are as another composer has them.
  Composer(const Submesh& submesh, std::string name, const Composer* given = nullptr)
      : builder_{submesh.mesh, submesh.devices}, name_{std::move(name)}, given_{given} {}

  /// `tensor` of a part is `named[tensor]` of the whole; tensors that are not named are local to the part.
  void append(const Schedule& part, const std::string& prefix, const std::map<std::string, std::string>& named) {
    const Program& from = part.programs.front();
    const Tasks before = last_;
    Tasks start = before;  // of the part: what its first tasks wait for
    std::vector<BufferId> buffers;
    for (const Buffer& buffer : from.buffers) {
      const auto whole = buffer.role == Role::scratch ? named.end() : named.find(buffer.tensor);
      if (whole == named.end())
        buffers.push_back(add_buffer(buffer, prefix + "." + buffer.name, Role::scratch));
      else if (buffer.role == Role::output)
        buffers.push_back(held_[whole->second] = add_buffer(buffer, whole->second, Role::output));
      else
        buffers.push_back(read(buffer, whole->second, before, start));
    }
    const auto offset = static_cast<int>(builder_.task_count());
    builder_.begin_section(prefix + ": ", std::move(start));
    for (Task task : from.tasks) {
      for (Edge& edge : task.after) edge.task.value += offset;
      for (Region* region : regions_of(task.op)) region->buffer = buffers[region->buffer.index()];
      builder_.add(std::move(task));
    }
    builder_.begin_section({}, {});
    last_ = builder_.last_tasks(TaskId{offset});
  }

  /// The tensors that were read before any part made them.
  [[nodiscard]] const std::vector<std::string>& inputs() const { return inputs_; }

  /// Tensors that are not asked for become scratch.
  Schedule finish(const std::vector<std::string>& outputs) && {
    Schedule schedule{std::move(name_), builder_.mesh(), {std::move(builder_).finish()}, {}};
    for (Buffer& buffer : schedule.programs.front().buffers)
      if (buffer.role == Role::output && std::find(outputs.begin(), outputs.end(), buffer.tensor) == outputs.end())
        buffer.role = Role::scratch, buffer.tensor.clear(), buffer.sharding.clear();
    return schedule;
  }

 private:
  BufferId add_buffer(const Buffer& like, const std::string& name, Role role) {
    Buffer buffer = like;
    buffer.name = name;
    buffer.role = role;
    buffer.tensor = role == Role::scratch ? "" : name;
    if (role == Role::scratch) buffer.sharding.clear();
    return builder_.add_buffer(std::move(buffer));
  }

  /// The tensor as the part views it: where it is, or placed.
  BufferId read(const Buffer& view, const std::string& tensor, const Tasks& before, Tasks& start) {
    auto held = held_.find(tensor);
    if (held == held_.end()) {
      const auto elsewhere = given_ == nullptr ? held_.end() : given_->held_.find(tensor);
      const bool known = given_ != nullptr && elsewhere != given_->held_.end();
      held = held_.emplace(tensor, add_buffer(known ? given_->builder_.buffer(elsewhere->second) : view, tensor, Role::input)).first;
      inputs_.push_back(tensor);
    }
    if (builder_.buffer(held->second).extents == view.extents) return held->second;
    const BufferId to = add_buffer(view, tensor, Role::scratch);
    start.push_back(builder_.alias("place " + tensor, builder_.whole(held->second), builder_.whole(to), before));
    return to;
  }

  ProgramBuilder builder_;
  std::string name_;
  const Composer* given_;
  std::map<std::string, BufferId> held_;
  std::vector<std::string> inputs_;
  Tasks last_;
};

/// Follows activations forwards and gradients backwards through the parts.
class StageWiring {
 public:
  explicit StageWiring(bool chained) : chained_{chained} {}

  std::map<std::string, std::string> forward(const WorkloadPart& part, bool last) {
    const std::string x = chained_ ? at_ : part.name + ".X", y = last && chained_ ? "Y" : part.name + ".Y";
    read_[part.name] = x;
    std::map<std::string, std::string> named{{"X", x}, {"Y", y}};
    if (part.kind == WorkloadPart::Kind::product) named["W"] = part.name + ".W";
    if (part.kind == WorkloadPart::Kind::norm) named["sums"] = part.name + ".sums";
    if (part.kind == WorkloadPart::Kind::residual) named["skip"] = chained_ ? stream_ : part.name + ".skip", stream_ = y;
    at_ = y;
    return named;
  }
  /// What the parts read in the forward pass, without it: a backward pass on its own is given the activations.
  std::map<std::string, std::string> backward(const WorkloadPart& part, bool last) {
    const auto known = read_.find(part.name);
    const std::string x = known != read_.end() ? known->second : part.name + ".X";
    const std::string dy = chained_ ? gradient_ : part.name + ".dY", dx = last && chained_ ? "dX" : part.name + ".dX";
    gradient_ = dx;
    if (part.kind == WorkloadPart::Kind::residual) {
      const std::map<std::string, std::string> named{{"X", dy}, {"skip", chained_ ? stream_gradient_ : part.name + ".dskip"}, {"Y", dx}};
      stream_gradient_ = dx;
      return named;
    }
    std::map<std::string, std::string> named{{"dY", dy}, {"X", x}, {"dX", dx}};
    if (part.kind == WorkloadPart::Kind::product) named["W"] = part.name + ".W", named["dW"] = part.name + ".dW";
    if (part.kind == WorkloadPart::Kind::norm) named["sums"] = part.name + ".sums";
    return named;
  }

 private:
  bool chained_;
  std::string at_ = "X", stream_ = "X", gradient_ = "dY", stream_gradient_ = "dY";
  std::map<std::string, std::string> read_;
};

bool is_forward(const WorkloadPart& part) { return part.pass == Pass::forward; }

Status append(Composer& composer, const Submesh& submesh, const WorkloadPart& part, const Plan& plan, const std::map<std::string, std::string>& named) {
  auto schedule = part_schedule(submesh, part, plan.options);
  if (!schedule) return blamed_on(location_of(part.written_at), schedule.error());
  for (Task& task : schedule->programs.front().tasks) task.written_at = part.written_at;
  composer.append(*schedule, is_forward(part) ? part.name : part.name + " backward", named);
  return success();
}

/// Inputs and outputs become parameters.
LayerFunction as_function(Schedule schedule) {
  Program& program = schedule.programs.front();
  LayerFunction layer{{std::move(schedule.name), 0, {}}, {}};
  std::vector<BufferId> now(program.buffers.size());
  for (const bool parameters : {true, false})
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      Buffer& buffer = program.buffers[b];
      if ((buffer.role != Role::scratch) != parameters) continue;
      now[b] = BufferId{layer.function.body.buffers.size()};
      if (parameters) layer.parameters.push_back(buffer);
      layer.function.body.buffers.push_back({buffer.name, buffer.extents, buffer.dtype, Role::scratch, {}, {}});
    }
  layer.function.parameters = static_cast<int>(layer.parameters.size());
  for (Task& task : program.tasks)
    for (Region* region : regions_of(task.op)) region->buffer = now[region->buffer.index()];
  layer.function.body.tasks = std::move(program.tasks);
  return layer;
}

}  // namespace

Expected<Schedule> block_schedule(const Mesh& mesh, const Workload& workload, const Plan& plan, Pass pass) {
  if (const auto parts = parts_of(workload, plan, mesh, pass); !parts) return parts.error();  // says where the plan stands that asks for another mesh
  return block_schedule(*workload_submesh(mesh), workload, plan, pass);
}

Expected<Schedule> block_schedule(const Submesh& submesh, const Workload& workload, const Plan& plan, Pass pass) {
  const auto parts = parts_of(workload, plan, submesh, pass);
  if (!parts) return parts.error();
  const bool chained = workload.data_flows();
  const auto forward_parts = static_cast<std::size_t>(std::count_if(parts->begin(), parts->end(), is_forward));

  constexpr std::array<std::string_view, 3> suffix{"", ", backward", ", forward and backward"};
  Composer composer{submesh, workload.name + std::string{suffix[static_cast<std::size_t>(pass)]}};
  StageWiring wiring{chained};
  std::vector<std::string> outputs{"Y", "dX"};
  for (std::size_t p = 0; p < parts->size(); ++p) {
    const WorkloadPart& part = (*parts)[p];
    const auto named = is_forward(part) ? wiring.forward(part, p + 1 == forward_parts) : wiring.backward(part, p + 1 == parts->size());
    for (const char* own : {"Y", "dX", "dW"})
      if (const auto found = named.find(own); found != named.end() && (!chained || std::string_view{own} == "dW")) outputs.push_back(found->second);
    if (auto ok = append(composer, submesh, part, plan, named); !ok) return ok.error();
  }
  Schedule schedule = std::move(composer).finish(outputs);
  schedule.computes = block_reference(workload, plan, submesh, pass);
  return schedule;
}

Expected<LayerFunctions> layer_functions(const Submesh& submesh, const Workload& workload, const Plan& plan) {
  if (!workload.data_flows()) return Diagnostic{{}, fmt::format("{} is no layer: its stages do not follow one another", quoted(workload.name))};
  const auto parts = parts_of(workload, plan, submesh, Pass::both);
  if (!parts) return parts.error();
  const auto forward_parts = static_cast<std::size_t>(std::count_if(parts->begin(), parts->end(), is_forward));
  Composer forward{submesh, workload.name + " forward"}, backward{submesh, workload.name + " backward", &forward};
  StageWiring wiring{true};
  std::vector<std::string> made{"Y"}, gradients{"dX"};
  for (std::size_t p = 0; p < parts->size(); ++p) {
    const WorkloadPart& part = (*parts)[p];
    const auto named = is_forward(part) ? wiring.forward(part, p + 1 == forward_parts) : wiring.backward(part, p + 1 == parts->size());
    if (const auto found = named.find("dW"); found != named.end()) gradients.push_back(found->second);
    if (auto ok = append(is_forward(part) ? forward : backward, submesh, part, plan, named); !ok) return ok.error();
  }
  made.insert(made.end(), backward.inputs().begin(), backward.inputs().end());  // of those, what it makes
  const std::vector<std::string> kept = std::move(made);
  return LayerFunctions{as_function(std::move(forward).finish(kept)), as_function(std::move(backward).finish(gradients))};
}

}  // namespace podsim
