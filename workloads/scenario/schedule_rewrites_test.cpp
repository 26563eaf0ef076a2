// What schedules of ours need before they can be written as HLO. Tested in hlo_round_trip_test.cpp.
#include <algorithm>
#include <numeric>

#include "sim/schedule/program_builder.hpp"
#include "workloads/scenario/test_schedule_as_hlo.hpp"

namespace podsim::testing {

Schedule in_order_of_time(Schedule schedule, const std::vector<Picoseconds>& begins) {
  std::vector<Task>& tasks = schedule.programs.at(0).tasks;
  std::vector<std::size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto passes = [&](std::size_t transfer, std::size_t work) {
    const auto& after = tasks[transfer].after;
    const bool waits = std::any_of(after.begin(), after.end(), [&](const Edge& edge) { return edge.task.index() == work; });
    return std::holds_alternative<Matmul>(tasks[work].op) && begins[transfer] <= begins[work] && !waits;
  };
  for (std::size_t p = 0; p < order.size(); ++p) {
    if (!std::holds_alternative<Shift>(tasks[order[p]].op)) continue;
    for (std::size_t at = p; at > 0 && passes(order[at], order[at - 1]); --at) std::swap(order[at], order[at - 1]);
  }
  std::vector<std::size_t> place(order.size());
  for (std::size_t p = 0; p < order.size(); ++p) place[order[p]] = p;
  std::vector<Task> moved;
  for (const std::size_t t : order) {
    Task& task = moved.emplace_back(tasks[t]);
    for (Edge& edge : task.after) edge.task = TaskId{place[edge.task.index()]};
  }
  tasks = std::move(moved);
  return schedule;
}

Schedule with_all_reduces(Schedule schedule) {
  Program& program = schedule.programs.at(0);
  std::vector<Task> tasks;
  std::vector<TaskId> now;  // by old number
  for (Task& task : program.tasks) {
    for (Edge& edge : task.after) edge.task = now[edge.task.index()];
    now.push_back(TaskId{tasks.size()});
    auto* reduce = std::get_if<Collective>(&task.op);
    if (reduce == nullptr || reduce->kind != CollectiveKind::reduce) {
      tasks.push_back(std::move(task));
      continue;
    }
    const Region target = reduce->output;
    const std::int64_t root = reduce->root;
    const AxisView axis = reduce->axes.front();
    reduce->kind = CollectiveKind::all_reduce;
    reduce->root = 0;
    // Cut where it divides, as the reader of modules does: a slot's first dimension has length 1.
    const auto& dims = reduce->input.dims;
    reduce->dim =
        static_cast<int>(std::find_if(dims.begin(), dims.end(), [&](const Range& range) { return range.length % axis.size == 0; }) - dims.begin());
    const BufferId reduced{program.buffers.size()};
    const std::vector<std::int64_t> lengths = lengths_of(reduce->input);
    program.buffers.push_back({task.label + " everywhere", lengths, program.buffers[reduce->input.buffer.index()].dtype, Role::scratch, {}, {}});
    reduce->output = whole_buffer(reduced, lengths);
    const std::string label = task.label;
    tasks.push_back(std::move(task));
    tasks.push_back({"keep " + label,
                     Local{LocalKind::alias, {whole_buffer(reduced, lengths)}, {target}, 1, Unit::dma},
                     {Edge{now.back()}},
                     {{own(axis, 0, false), root, root + 1}},
                     {}});
  }
  program.tasks = std::move(tasks);
  return schedule;
}

}  // namespace podsim::testing
