// Timelines as arrays. Times are views of the engine's own memory; what follows from the schedule is computed when it is asked for.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <map>
#include <string_view>

#include "tools/python/core.hpp"
#include "tools/report/task_role.hpp"

namespace py = pybind11;

namespace podsim::python {

namespace {

enum class Resource : std::uint8_t { core, dma, link };

/// A timeline with the answer that owns its memory.
class RunTimeline {
 public:
  explicit RunTimeline(std::shared_ptr<const RunAnswer> answer) : answer_{std::move(answer)} {}

  [[nodiscard]] const Run& run() const { return answer_->run; }
  [[nodiscard]] const Timeline& times() const { return answer_->run.timeline; }
  [[nodiscard]] std::size_t size() const { return times().size(); }
  [[nodiscard]] const std::shared_ptr<const RunAnswer>& answer() const { return answer_; }

  /// fill(activity, program, task, node) for each activity, in order.
  template <class Fill>
  void each(Fill&& fill) const {
    const Deployment& deployment = run().model.deployment;
    std::size_t activity = 0;
    for (std::uint32_t p = 0; p < deployment.programs.size(); ++p) {
      const auto& program = deployment.programs[p];
      for (std::size_t task = 0; task + 1 < program.first_activity.size(); ++task) {
        if (program.first_activity[task] == program.first_activity[task + 1]) continue;
        const Participants& who = deployment.who(p, task);
        for (std::size_t local = 0; local < who.to.size(); ++local)
          if (who.to[local] != no_device) fill(activity++, p, task, program.devices[local]);
      }
    }
  }

 private:
  std::shared_ptr<const RunAnswer> answer_;
};

static_assert(sizeof(Picoseconds) == sizeof(std::int64_t));

/// A view that keeps the timeline alive and cannot be written.
py::array_t<std::int64_t> view(const py::object& self, std::span<const Picoseconds> times) {
  py::array_t<std::int64_t> array(static_cast<py::ssize_t>(times.size()), reinterpret_cast<const std::int64_t*>(times.data()), self);
  array.attr("flags").attr("writeable") = false;
  return array;
}

template <class T, class Value>
py::array_t<T> computed(const RunTimeline& timeline, Value&& value) {
  py::array_t<T> array(static_cast<py::ssize_t>(timeline.size()));
  T* const to = array.mutable_data();
  {
    const py::gil_scoped_release unlocked;
    timeline.each([&](std::size_t activity, std::uint32_t program, std::size_t task, std::uint32_t node) { to[activity] = value(activity, program, task, node); });
  }
  return array;
}

Resource resource_of(const Op& op) {
  if (std::holds_alternative<Shift>(op) || std::holds_alternative<Send>(op)) return Resource::link;
  const auto* local = std::get_if<Local>(&op);
  return local != nullptr && local->unit == Unit::dma ? Resource::dma : Resource::core;
}

py::array_t<std::uint8_t> units(const RunTimeline& timeline) {
  const Schedule& schedule = *timeline.run().lowered;
  return computed<std::uint8_t>(timeline, [&](std::size_t, std::uint32_t program, std::size_t task, std::uint32_t) {
    return static_cast<std::uint8_t>(resource_of(schedule.programs[program].tasks[task].op));
  });
}

/// Labels of the tasks of each program; a task's number in `task` counts them through.
py::list labels(const RunTimeline& timeline) {
  py::list all;
  for (const Program& program : timeline.run().lowered->programs)
    for (const Task& task : program.tasks) all.append(task.label);
  return all;
}

/// What each of these is, for its colour. A text of Python's per role, not per task.
py::list roles(const RunTimeline& timeline) {
  std::map<std::string_view, py::str> known;
  py::list all;
  for (const Program& program : timeline.run().lowered->programs)
    for (const Task& task : program.tasks) all.append(known.try_emplace(role_of(task), role_of(task)).first->second);
  return all;
}

py::array_t<std::int32_t> tasks(const RunTimeline& timeline) {
  std::vector<std::int32_t> first{0};
  for (const Program& program : timeline.run().lowered->programs) first.push_back(first.back() + static_cast<std::int32_t>(program.tasks.size()));
  return computed<std::int32_t>(timeline, [&](std::size_t, std::uint32_t program, std::size_t task, std::uint32_t) {
    return first[program] + static_cast<std::int32_t>(task);
  });
}

}  // namespace

void bind_timeline(py::module_& module) {
  py::class_<RunTimeline>(module, "Timeline")
      .def("__len__", &RunTimeline::size)
      .def_property_readonly("start_ps", [](const py::object& self) { return view(self, self.cast<const RunTimeline&>().times().starts()); })
      .def_property_readonly("sent_ps", [](const py::object& self) { return view(self, self.cast<const RunTimeline&>().times().sents()); })
      .def_property_readonly("end_ps",
                             [](const RunTimeline& timeline) {
                               return computed<std::int64_t>(timeline, [&](std::size_t activity, std::uint32_t, std::size_t, std::uint32_t) {
                                 return timeline.times().at(activity).received.count();
                               });
                             })
      .def_property_readonly("device",
                             [](const RunTimeline& timeline) {
                               const auto& device_of = timeline.run().model.device_of;
                               return computed<std::int32_t>(timeline, [&](std::size_t, std::uint32_t, std::size_t, std::uint32_t node) {
                                 return static_cast<std::int32_t>(device_of[node].value);
                               });
                             })
      .def_property_readonly("task", &tasks)
      .def_property_readonly("unit", &units)
      .def("labels", &labels)
      .def("roles", &roles)
      .def("node_of", [](const RunTimeline& timeline) {
        const auto& nodes = timeline.run().model.node_of;
        const auto& devices = timeline.run().model.device_of;
        py::array_t<std::int32_t> array(static_cast<py::ssize_t>(nodes.size()));
        for (std::size_t d = 0; d < nodes.size(); ++d) array.mutable_at(static_cast<py::ssize_t>(d)) = static_cast<std::int32_t>(devices[nodes[d]].value);
        return array;
      })
      .def_property_readonly("makespan_ps", [](const RunTimeline& timeline) { return timeline.times().makespan.count(); });
}

py::object timeline_of(std::shared_ptr<const RunAnswer> answer) { return py::cast(RunTimeline{std::move(answer)}); }

}  // namespace podsim::python
