// block_schedule(): parts put one after the other into one program.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/blame.hpp"
#include "workloads/plan.hpp"

namespace podsim {

namespace {

std::vector<Region*> regions_of(Op& op) {
  return std::visit(Overloaded{
                        [](Matmul& m) {
                          return std::vector<Region*>{&m.left, &m.right, &m.out};
                        },
                        [](Local& l) {
                          std::vector<Region*> regions;
                          for (Region& region : l.reads) regions.push_back(&region);
                          for (Region& region : l.writes) regions.push_back(&region);
                          return regions;
                        },
                        [](Shift& s) {
                          return std::vector<Region*>{&s.source, &s.target};
                        },
                        [](Send& s) { return std::vector<Region*>{&s.source}; },
                        [](Recv& r) { return std::vector<Region*>{&r.target}; },
                        [](Collective& c) {
                          return std::vector<Region*>{&c.input, &c.output};
                        },
                    },
                    op);
}

class Composer {
 public:
  Composer(const Mesh& mesh, std::string name) { schedule_ = {std::move(name), mesh, {Program{every_device(mesh), {}, {}}}, {}}; }

  /// `tensor` of a part is `named[tensor]` of the whole; what is not named belongs to the part alone.
  void append(const Schedule& part, const std::string& prefix, const std::map<std::string, std::string>& named) {
    const Program& from = part.programs.front();
    const std::vector<TaskId> before = last_;
    std::vector<TaskId> start = before;  // of the part: what its first tasks wait for
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
    const auto offset = static_cast<int>(program().tasks.size());
    std::vector<bool> followed(from.tasks.size(), false);
    for (const Task& task : from.tasks) {
      Task copy = task;
      for (Edge& edge : copy.after) {
        if (task.where.empty()) followed[edge.task.index()] = true;
        edge.task.value += offset;
      }
      if (task.after.empty() || !task.where.empty())
        for (const TaskId first : start) copy.after.push_back(Edge{first});
      for (Region* region : regions_of(copy.op)) region->buffer = buffers[region->buffer.index()];
      copy.label = prefix + ": " + copy.label;
      program().tasks.push_back(std::move(copy));
    }
    last_.clear();
    for (std::size_t t = 0; t < followed.size(); ++t)
      if (!followed[t]) last_.push_back(TaskId{offset + t});
  }

  /// Tensors that are not asked for become scratch.
  Schedule finish(const std::vector<std::string>& outputs) && {
    for (Buffer& buffer : program().buffers)
      if (buffer.role == Role::output && std::find(outputs.begin(), outputs.end(), buffer.tensor) == outputs.end())
        buffer.role = Role::scratch, buffer.tensor.clear(), buffer.sharding.clear();
    return std::move(schedule_);
  }

 private:
  Program& program() { return schedule_.programs.front(); }

  BufferId add_buffer(const Buffer& like, const std::string& name, Role role) {
    Buffer buffer = like;
    buffer.name = name;
    buffer.role = role;
    buffer.tensor = role == Role::scratch ? "" : name;
    if (role == Role::scratch) buffer.sharding.clear();
    program().buffers.push_back(std::move(buffer));
    return BufferId{program().buffers.size() - 1};
  }

  /// The tensor as the part views it: where it is, or placed.
  BufferId read(const Buffer& view, const std::string& tensor, const std::vector<TaskId>& before, std::vector<TaskId>& start) {
    const auto held = held_.find(tensor);
    if (held == held_.end()) return held_[tensor] = add_buffer(view, tensor, Role::input);
    if (program().buffers[held->second.index()].extents == view.extents) return held->second;
    const BufferId to = add_buffer(view, tensor, Role::scratch);
    std::vector<Edge> edges;
    for (const TaskId task : before) edges.push_back(Edge{task});
    program().tasks.push_back(
        {"place " + tensor, Local{LocalKind::place, {whole(held->second)}, {whole(to)}, 1, Unit::dma}, std::move(edges), {}, {}});
    start.push_back(TaskId{program().tasks.size() - 1});
    return to;
  }

  [[nodiscard]] Region whole(BufferId id) {
    Region region{id, {}};
    for (const std::int64_t extent : program().buffers[id.index()].extents) region.dims.push_back(all(extent));
    return region;
  }

  Schedule schedule_;
  std::map<std::string, BufferId> held_;
  std::vector<TaskId> last_;
};

/// Follows activations forwards and gradients backwards through the parts.
class Wiring {
 public:
  explicit Wiring(bool chained) : chained_{chained} {}

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
  const auto parts = parts_of(workload, plan, mesh, pass);
  if (!parts) return parts.error();
  const bool chained = workload.data_flows();
  const auto is_forward = [](const WorkloadPart& part) { return part.pass == Pass::forward; };
  const auto forward_parts = static_cast<std::size_t>(std::count_if(parts->begin(), parts->end(), is_forward));

  constexpr std::array<std::string_view, 3> suffix{"", ", backward", ", forward and backward"};
  Composer composer{mesh, workload.name + std::string{suffix[static_cast<std::size_t>(pass)]}};
  Wiring wiring{chained};
  std::vector<std::string> outputs{"Y", "dX"};
  for (std::size_t p = 0; p < parts->size(); ++p) {
    const WorkloadPart& part = (*parts)[p];
    auto schedule = part_schedule(mesh, part, plan.options);
    if (!schedule) return blamed_on(location_of(part.written_at), schedule.error());
    for (Task& task : schedule->programs.front().tasks) task.written_at = part.written_at;
    const auto named = is_forward(part) ? wiring.forward(part, p + 1 == forward_parts) : wiring.backward(part, p + 1 == parts->size());
    for (const char* own : {"Y", "dX", "dW"})
      if (const auto found = named.find(own); found != named.end() && (!chained || std::string_view{own} == "dW")) outputs.push_back(found->second);
    composer.append(*schedule, is_forward(part) ? part.name : part.name + " backward", named);
  }
  return std::move(composer).finish(outputs);
}

}  // namespace podsim
