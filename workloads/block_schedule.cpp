// block_schedule(): parts put one after the other into one program.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/blame.hpp"
#include "sim/schedule/program_builder.hpp"
#include "workloads/block_reference.hpp"
#include "workloads/plan.hpp"

namespace podsim {

namespace {

class Composer {
 public:
  Composer(const Submesh& submesh, std::string name) : builder_{submesh.mesh, submesh.devices}, name_{std::move(name)} {}

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
    const auto held = held_.find(tensor);
    if (held == held_.end()) return held_[tensor] = add_buffer(view, tensor, Role::input);
    if (builder_.buffer(held->second).extents == view.extents) return held->second;
    const BufferId to = add_buffer(view, tensor, Role::scratch);
    start.push_back(builder_.alias("place " + tensor, builder_.whole(held->second), builder_.whole(to), before));
    return to;
  }

  ProgramBuilder builder_;
  std::string name_;
  std::map<std::string, BufferId> held_;
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

}  // namespace

Expected<Schedule> block_schedule(const Mesh& mesh, const Workload& workload, const Plan& plan, Pass pass) {
  if (const auto parts = parts_of(workload, plan, mesh, pass); !parts) return parts.error();  // says where the plan stands that asks for another mesh
  return block_schedule(*workload_submesh(mesh), workload, plan, pass);
}

Expected<Schedule> block_schedule(const Submesh& submesh, const Workload& workload, const Plan& plan, Pass pass) {
  const auto parts = parts_of(workload, plan, submesh, pass);
  if (!parts) return parts.error();
  const bool chained = workload.data_flows();
  const auto is_forward = [](const WorkloadPart& part) { return part.pass == Pass::forward; };
  const auto forward_parts = static_cast<std::size_t>(std::count_if(parts->begin(), parts->end(), is_forward));

  constexpr std::array<std::string_view, 3> suffix{"", ", backward", ", forward and backward"};
  Composer composer{submesh, workload.name + std::string{suffix[static_cast<std::size_t>(pass)]}};
  StageWiring wiring{chained};
  std::vector<std::string> outputs{"Y", "dX"};
  for (std::size_t p = 0; p < parts->size(); ++p) {
    const WorkloadPart& part = (*parts)[p];
    auto schedule = part_schedule(submesh, part, plan.options);
    if (!schedule) return blamed_on(location_of(part.written_at), schedule.error());
    for (Task& task : schedule->programs.front().tasks) task.written_at = part.written_at;
    const auto named = is_forward(part) ? wiring.forward(part, p + 1 == forward_parts) : wiring.backward(part, p + 1 == parts->size());
    for (const char* own : {"Y", "dX", "dW"})
      if (const auto found = named.find(own); found != named.end() && (!chained || std::string_view{own} == "dW")) outputs.push_back(found->second);
    composer.append(*schedule, is_forward(part) ? part.name : part.name + " backward", named);
  }
  Schedule schedule = std::move(composer).finish(outputs);
  schedule.computes = block_reference(workload, plan, submesh, pass);
  return schedule;
}

}  // namespace podsim
