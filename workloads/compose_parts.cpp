#include "workloads/compose_parts.hpp"

#include <algorithm>

#include "sim/base/blame.hpp"

namespace podsim {

void PartComposer::append(const Schedule& part, const std::string& prefix, const Names& named) {
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

bool PartComposer::made(const std::string& tensor) const {
  return held_.contains(tensor) && std::find(inputs_.begin(), inputs_.end(), tensor) == inputs_.end();
}

Schedule PartComposer::finish(const std::vector<std::string>& outputs) && {
  Schedule schedule{std::move(name_), builder_.mesh(), {std::move(builder_).finish()}, {}};
  for (Buffer& buffer : schedule.programs.front().buffers)
    if (buffer.role == Role::output && std::find(outputs.begin(), outputs.end(), buffer.tensor) == outputs.end())
      buffer.role = Role::scratch, buffer.tensor.clear(), buffer.sharding.clear();
  return schedule;
}

BufferId PartComposer::add_buffer(const Buffer& like, const std::string& name, Role role) {
  Buffer buffer = like;
  buffer.name = name;
  buffer.role = role;
  buffer.tensor = role == Role::scratch ? "" : name;
  if (role == Role::scratch) buffer.sharding.clear();
  return builder_.add_buffer(std::move(buffer));
}

const Buffer* PartComposer::known(const std::string& tensor) const {
  if (const auto held = held_.find(tensor); held != held_.end()) return &builder_.buffer(held->second);
  return given_ == nullptr ? nullptr : given_->known(tensor);
}

BufferId PartComposer::read(const Buffer& view, const std::string& tensor, const Tasks& before, Tasks& start) {
  auto held = held_.find(tensor);
  if (held == held_.end()) {
    const Buffer* elsewhere = known(tensor);
    held = held_.emplace(tensor, add_buffer(elsewhere != nullptr ? *elsewhere : view, tensor, Role::input)).first;
    inputs_.push_back(tensor);
  }
  if (builder_.buffer(held->second).extents == view.extents) return held->second;
  const BufferId to = add_buffer(view, tensor, Role::scratch);
  start.push_back(builder_.alias("place " + tensor, builder_.whole(held->second), builder_.whole(to), before));
  return to;
}

PartComposer::Names StageWiring::forward(const WorkloadPart& part, bool last) {
  const std::string x = chained_ ? at_ : part.name + ".X", y = last && chained_ ? "Y" : part.name + ".Y";
  read_[part.name] = x;
  PartComposer::Names named{{"X", x}, {"Y", y}};
  if (part.kind == WorkloadPart::Kind::product) named["W"] = part.name + ".W";
  if (part.kind == WorkloadPart::Kind::norm) named["sums"] = part.name + ".sums";
  if (part.kind == WorkloadPart::Kind::residual) named["skip"] = chained_ ? stream_ : part.name + ".skip", stream_ = y;
  if (part.kind == WorkloadPart::Kind::combine) named["logits"] = logits_, named["gates"] = part.name + ".gates", named["received"] = part.name + ".received";
  if (part.name == router_stage) {  // what it reads is dispatched, too
    logits_ = y;
    return named;
  }
  at_ = y;
  return named;
}

PartComposer::Names StageWiring::backward(const WorkloadPart& part, bool last) {
  const auto known = read_.find(part.name);
  const std::string x = known != read_.end() ? known->second : part.name + ".X";
  const std::string d_logits = std::string{router_stage} + ".dY";
  const std::string dy = part.name == router_stage ? d_logits : chained_ ? gradient_ : part.name + ".dY", dx = last && chained_ ? "dX" : part.name + ".dX";
  gradient_ = dx;
  if (part.kind == WorkloadPart::Kind::dispatch) {
    dispatched_gradient_ = dx;
    return {{"dY", dy}, {"dX", dx}};
  }
  if (part.kind == WorkloadPart::Kind::combine) return {{"dY", dy}, {"received", part.name + ".received"}, {"gates", part.name + ".gates"}, {"dX", dx}, {"dlogits", d_logits}};
  if (part.name == router_join) return {{"X", dy}, {"skip", dispatched_gradient_}, {"Y", dx}};
  if (part.kind == WorkloadPart::Kind::residual) {
    const PartComposer::Names named{{"X", dy}, {"skip", chained_ ? stream_gradient_ : part.name + ".dskip"}, {"Y", dx}};
    stream_gradient_ = dx;
    return named;
  }
  PartComposer::Names named{{"dY", dy}, {"X", x}, {"dX", dx}};
  if (part.kind == WorkloadPart::Kind::product) named["W"] = part.name + ".W", named["dW"] = part.name + ".dW";
  if (part.kind == WorkloadPart::Kind::norm) named["sums"] = part.name + ".sums";
  return named;
}

Status append_part(PartComposer& composer, const Submesh& submesh, const WorkloadPart& part, const PartOptions& options, const PartComposer::Names& named,
                   bool again) {
  auto schedule = part_schedule(submesh, part, options);
  if (!schedule) return blamed_on(location_of(part.written_at), schedule.error());
  for (Task& task : schedule->programs.front().tasks) task.written_at = part.written_at, task.recompute = again;
  composer.append(*schedule, (again ? std::string{"again "} : std::string{}) + (part.pass == Pass::forward ? part.name : part.name + " backward"), named);
  return success();
}

}  // namespace podsim
