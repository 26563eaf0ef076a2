#include "workloads/differences/data_flow.hpp"

#include <algorithm>

namespace podsim {

namespace {

bool covers(const Program& program, const Region& region) {
  const Buffer& buffer = program.buffers[region.buffer.index()];
  if (region.dims.size() != buffer.extents.size()) return false;
  for (std::size_t d = 0; d < region.dims.size(); ++d)
    if (!region.dims[d].index.terms.empty() || region.dims[d].offset != 0 || region.dims[d].length != buffer.extents[d]) return false;
  return true;
}

}  // namespace

TaskRegions regions_of_task(const Op& op) {
  TaskRegions regions;
  std::visit(Overloaded{[&](const Matmul& matmul) {
                          regions.reads = {&matmul.left, &matmul.right};
                          if (matmul.accumulate) regions.reads.push_back(&matmul.out);
                          regions.writes = {&matmul.out};
                        },
                        [&](const Local& local) {
                          for (const Region& region : local.reads) regions.reads.push_back(&region);
                          for (const Region& region : local.writes) regions.writes.push_back(&region);
                        },
                        [&](const Shift& shift) {
                          regions.reads = {&shift.source};
                          if (shift.combine != Combine::replace) regions.reads.push_back(&shift.target);
                          regions.writes = {&shift.target};
                        },
                        [&](const Send& send) { regions.reads = {&send.source}; }, [&](const Recv& recv) { regions.writes = {&recv.target}; },
                        [&](const Collective& collective) {
                          regions.reads = {&collective.input};
                          regions.writes = {&collective.output};
                        },
                        [](const Call&) {}},
             op);
  return regions;
}

bool is_product(const Op& op) {
  const auto* local = std::get_if<Local>(&op);
  return std::holds_alternative<Matmul>(op) || (local != nullptr && local->opaque.matrix > Flops{});
}

void Sources::add(const Sources& other) {
  if (inputs.size() < other.inputs.size()) inputs.resize(other.inputs.size());
  for (std::size_t i = 0; i < other.inputs.size(); ++i)
    if (other.inputs[i]) inputs[i] = true;
  product = product || other.product;
}

DataFlow data_flow(const Program& program) {
  DataFlow flow;
  flow.at_end.resize(program.buffers.size());
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].role != Role::input) continue;
    flow.at_end[b].inputs.resize(flow.inputs.size() + 1);
    flow.at_end[b].inputs.back() = true;
    flow.inputs.push_back(BufferId{b});
  }
  flow.reads.reserve(program.tasks.size());
  for (const Task& task : program.tasks) {
    const TaskRegions regions = regions_of_task(task.op);
    std::vector<Sources> read;
    Sources made;
    made.product = is_product(task.op);
    for (const Region* region : regions.reads) {
      read.push_back(flow.at_end[region->buffer.index()]);
      made.add(read.back());
    }
    for (const Region* region : regions.writes) {
      Sources& there = flow.at_end[region->buffer.index()];
      if (covers(program, *region)) there = {};
      there.add(made);
    }
    flow.reads.push_back(std::move(read));
  }
  return flow;
}

std::vector<std::vector<std::size_t>> data_dependencies(const Program& program) {
  struct Uses {
    std::vector<std::size_t> writers, readers;
  };
  std::vector<Uses> uses(program.buffers.size());
  std::vector<std::vector<std::size_t>> data(program.tasks.size());
  const auto append = [](std::vector<std::size_t>& to, const std::vector<std::size_t>& more) { to.insert(to.end(), more.begin(), more.end()); };
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    const TaskRegions regions = regions_of_task(program.tasks[t].op);
    for (const Region* region : regions.reads) append(data[t], uses[region->buffer.index()].writers);
    for (const Region* region : regions.writes) {
      append(data[t], uses[region->buffer.index()].writers);
      append(data[t], uses[region->buffer.index()].readers);
    }
    std::sort(data[t].begin(), data[t].end());
    data[t].erase(std::unique(data[t].begin(), data[t].end()), data[t].end());
    for (const Region* region : regions.reads) uses[region->buffer.index()].readers.push_back(t);
    for (const Region* region : regions.writes) {
      Uses& use = uses[region->buffer.index()];
      if (program.tasks[t].where.empty() && !std::holds_alternative<Collective>(program.tasks[t].op) && covers(program, *region)) use = {};
      use.writers.push_back(t);
    }
  }
  return data;
}

std::vector<bool> unused_tasks(const Program& program) {
  std::vector<bool> unused(program.tasks.size(), false), live(program.buffers.size(), false);
  // Results are outputs, and inputs that are written: donated ones.
  for (std::size_t b = 0; b < live.size(); ++b) live[b] = program.buffers[b].role != Role::scratch;
  for (std::size_t t = program.tasks.size(); t-- > 0;) {
    const TaskRegions regions = regions_of_task(program.tasks[t].op);
    if (regions.writes.empty()) continue;
    unused[t] = std::none_of(regions.writes.begin(), regions.writes.end(), [&](const Region* region) { return live[region->buffer.index()]; });
    if (unused[t]) continue;
    const bool everywhere = program.tasks[t].where.empty() && !std::holds_alternative<Collective>(program.tasks[t].op);
    for (const Region* region : regions.writes)
      if (everywhere && covers(program, *region)) live[region->buffer.index()] = false;
    for (const Region* region : regions.reads) live[region->buffer.index()] = true;
  }
  return unused;
}

}  // namespace podsim
