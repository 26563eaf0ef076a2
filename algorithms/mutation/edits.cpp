#include "algorithms/mutation/edits.hpp"

#include <algorithm>

#include "algorithms/mutation/interpreter.hpp"

namespace podsim::mutation {

namespace {

void insert(std::vector<Task>& tasks, std::size_t position, Task added) {
  for (Task& other : tasks)
    for (Edge& edge : other.after)
      if (edge.task.index() >= position) ++edge.task.value;
  tasks.insert(tasks.begin() + static_cast<std::ptrdiff_t>(position), std::move(added));
}

}  // namespace

Regions regions_by_use(Op& op) {
  return std::visit(Overloaded{
                        [](Matmul& matmul) {
                          return Regions{{&matmul.left, &matmul.right, &matmul.out}, 2};
                        },
                        [](Local& local) {
                          Regions regions;
                          for (Region& region : local.reads) regions.all.push_back(&region);
                          regions.reads = regions.all.size();
                          for (Region& region : local.writes) regions.all.push_back(&region);
                          return regions;
                        },
                        [](Shift& shift) {
                          return Regions{{&shift.source, &shift.target}, 1};
                        },
                        [](Send& send) {
                          return Regions{{&send.source}, 1};
                        },
                        [](Recv& recv) {
                          return Regions{{&recv.target}, 0};
                        },
                        [](Collective&) { return Regions{}; },
                        [](Call&) { return Regions{}; },
                    },
                    op);
}

bool is_sum(const Task& task) {
  if (const auto* shift = std::get_if<Shift>(&task.op)) return shift->combine == Combine::add;
  if (const auto* recv = std::get_if<Recv>(&task.op)) return recv->combine == Combine::add;
  if (const auto* matmul = std::get_if<Matmul>(&task.op)) return matmul->accumulate;
  const auto* local = std::get_if<Local>(&task.op);
  return local && (local->kind == LocalKind::add || local->kind == LocalKind::add_in_switch);
}

bool is_launch(const Task& task) {
  const auto* local = std::get_if<Local>(&task.op);
  return local && local->kind == LocalKind::launch;
}

Condition all_but(const Mesh& mesh, int device) {
  Affine position{{}, -device, mesh.devices()};  // 0 on that device
  std::int64_t stride = 1;
  for (int a = static_cast<int>(mesh.axes().size()); a-- > 0;) {
    position.terms.push_back({mesh.whole(a), stride, 0});
    stride *= mesh.whole(a).size;
  }
  return {std::move(position), 1, mesh.devices()};
}

Guard only(const Mesh& mesh, int device) {
  Guard guard;
  const Coordinates at = coordinates_of(mesh, device);
  for (std::size_t a = 0; a < at.size(); ++a) guard.push_back({Affine{{{mesh.whole(static_cast<int>(a)), 1, 0}}}, at[a], at[a] + 1});
  return guard;
}

std::vector<int> devices_of(const Schedule& schedule, std::size_t task) {
  std::vector<int> devices;
  const Program& program = schedule.programs.front();
  for (const DeviceSet::Interval& interval : program.devices.intervals)
    for (int d = interval.first; d < interval.last; ++d)
      if (runs_on(program.tasks[task], coordinates_of(schedule.mesh, d))) devices.push_back(d);
  return devices;
}

void insert_twin(Program& program, std::size_t task, Task twin) {
  std::vector<Task>& tasks = program.tasks;
  insert(tasks, task + 1, std::move(twin));
  for (std::size_t u = task + 2; u < tasks.size(); ++u) {
    const std::vector<Edge> edges = tasks[u].after;
    for (const Edge& edge : edges)
      if (edge.task.index() == task) tasks[u].after.push_back({TaskId{task + 1}, edge.done, edge.gates});
  }
}

std::size_t isolate(Schedule& schedule, std::size_t task, int device) {
  Program& program = schedule.programs.front();
  Task twin = program.tasks[task];
  for (Condition& condition : only(schedule.mesh, device)) twin.where.push_back(std::move(condition));
  program.tasks[task].where.push_back(all_but(schedule.mesh, device));
  insert_twin(program, task, std::move(twin));
  return task + 1;
}

void erase(Program& program, std::size_t task) {
  std::vector<Task>& tasks = program.tasks;
  const std::vector<Edge> before = tasks[task].after;
  for (std::size_t u = task + 1; u < tasks.size(); ++u) {
    std::vector<Edge> after;
    const auto add = [&](const Edge& edge) {
      if (std::find(after.begin(), after.end(), edge) == after.end()) after.push_back(edge);
    };
    for (const Edge& edge : tasks[u].after) {
      if (edge.task.index() != task) {
        add(edge);
      } else {
        for (const Edge& earlier : before) add({earlier.task, earlier.done, edge.gates});
      }
    }
    tasks[u].after = std::move(after);
  }
  tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(task));
  for (Task& other : tasks)
    for (Edge& edge : other.after)
      if (edge.task.index() > task) --edge.task.value;
}

Partner partner_of(const Schedule& schedule, std::size_t send_task, int device) {
  const Mesh& mesh = schedule.mesh;
  const std::vector<Task>& tasks = schedule.programs.front().tasks;
  const auto& send = std::get<Send>(tasks[send_task].op);
  const Coordinates here = coordinates_of(mesh, device);
  const auto to = device_of(mesh, send.to, here);
  if (!to) return {};
  int uses = 0;
  for (std::size_t u = 0; u < send_task; ++u) {
    const auto* other = std::get_if<Send>(&tasks[u].op);
    uses += other && other->channel == send.channel && runs_on(tasks[u], here) && device_of(mesh, other->to, here) == to;
  }
  const Coordinates there = coordinates_of(mesh, *to);
  for (std::size_t u = 0; u < tasks.size(); ++u) {
    const auto* recv = std::get_if<Recv>(&tasks[u].op);
    if (recv && recv->channel == send.channel && runs_on(tasks[u], there) && device_of(mesh, recv->from, there) == device && uses-- == 0)
      return {u, *to};
  }
  return {};
}

bool fits(const Schedule& schedule, std::size_t task, const Region& region) {
  const Program& program = schedule.programs.front();
  const bool everywhere = std::holds_alternative<Shift>(program.tasks[task].op);  // its guard is the sender's
  for (int d = 0; d < schedule.mesh.devices(); ++d) {
    const Coordinates at = coordinates_of(schedule.mesh, d);
    if ((everywhere || runs_on(program.tasks[task], at)) && !positions_of(program.buffers[region.buffer.index()], region, at)) return false;
  }
  return true;
}

}  // namespace podsim::mutation
