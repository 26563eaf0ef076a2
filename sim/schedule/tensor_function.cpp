#include "sim/schedule/tensor_function.hpp"

#include <utility>

#include "sim/base/invariant.hpp"
#include "sim/schedule/program_builder.hpp"

namespace podsim {

namespace {

struct Access {
  std::vector<const Region*> reads, writes;
};

Access access_of(const Op& op) {
  return std::visit(Overloaded{
                        [](const Matmul& m) {
                          Access access{{&m.left, &m.right}, {&m.out}};
                          if (m.accumulate) access.reads.push_back(&m.out);
                          return access;
                        },
                        [](const Local& l) {
                          Access access;
                          for (const Region& region : l.reads) access.reads.push_back(&region);
                          for (const Region& region : l.writes) access.writes.push_back(&region);
                          return access;
                        },
                        [](const Shift& s) {
                          Access access{{&s.source}, {&s.target}};
                          if (s.combine != Combine::replace) access.reads.push_back(&s.target);
                          return access;
                        },
                        [](const Send& s) { return Access{{&s.source}, {&s.source}}; },  // what another device waits for is needed
                        [](const Recv& r) { return Access{{}, {&r.target}}; },
                        [](const Collective& c) {
                          return Access{{&c.input}, {&c.output}};
                        },
                        [](const Call&) {
                          PODSIM_ASSERT(false && "functions call nothing");
                          return Access{};
                        },
                    },
                    op);
}

}  // namespace

TensorFunction tensor_function(Schedule schedule) {
  PODSIM_ASSERT(schedule.programs.size() == 1);
  Program& program = schedule.programs.front();
  TensorFunction made{{std::move(schedule.name), 0, {}}, {}};
  std::vector<BufferId> now(program.buffers.size());
  for (const bool parameters : {true, false})
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer& buffer = program.buffers[b];
      if ((buffer.role != Role::scratch) != parameters) continue;
      now[b] = BufferId{made.function.body.buffers.size()};
      if (parameters) made.parameters.push_back(buffer);
      made.function.body.buffers.push_back({buffer.name, buffer.extents, buffer.dtype, Role::scratch, {}, {}});
      made.function.body.buffers.back().on_host = buffer.on_host;
      made.function.body.buffers.back().on_chip = buffer.on_chip;
    }
  made.function.parameters = static_cast<int>(made.parameters.size());
  for (Task& task : program.tasks)
    for (Region* region : regions_of(task.op)) region->buffer = now[region->buffer.index()];
  made.function.body.tasks = std::move(program.tasks);
  return made;
}

Program without_unneeded(const Program& program, bool recomputed) {
  std::vector<bool> needed(program.buffers.size()), kept(program.tasks.size());
  for (std::size_t b = 0; b < needed.size(); ++b) needed[b] = program.buffers[b].role == Role::output;
  for (std::size_t t = program.tasks.size(); t-- > 0;) {
    const Access access = access_of(program.tasks[t].op);
    kept[t] = recomputed && program.tasks[t].recompute;
    for (const Region* region : access.writes) kept[t] = kept[t] || needed[region->buffer.index()];
    if (!kept[t]) continue;
    for (const Region* region : access.reads) needed[region->buffer.index()] = true;
  }
  Program result{program.devices, {}, {}};
  std::vector<BufferId> now(program.buffers.size());
  for (std::size_t b = 0; b < needed.size(); ++b) {
    if (!needed[b]) continue;
    now[b] = BufferId{result.buffers.size()};
    result.buffers.push_back(program.buffers[b]);
  }
  // A result of a kept task that nothing needs has a buffer all the same.
  const auto place = [&](Region& region) {
    const std::size_t b = region.buffer.index();
    if (!needed[b]) {
      needed[b] = true;
      now[b] = BufferId{result.buffers.size()};
      result.buffers.push_back(program.buffers[b]);
    }
    region.buffer = now[b];
  };
  std::vector<Edges> ends(program.tasks.size());  // of each task: what those wait for that waited for it
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    Edges after;
    for (const Edge& edge : program.tasks[t].after)
      after = join(std::move(after), kept[edge.task.index()] ? Edges{{ends[edge.task.index()].front().task, edge.done, edge.gates}} : ends[edge.task.index()]);
    if (!kept[t]) {
      ends[t] = std::move(after);
      continue;
    }
    Task task = program.tasks[t];
    task.after = std::move(after);
    for (Region* region : regions_of(task.op)) place(*region);
    ends[t] = {Edge{TaskId{result.tasks.size()}}};
    result.tasks.push_back(std::move(task));
  }
  return result;
}

}  // namespace podsim
