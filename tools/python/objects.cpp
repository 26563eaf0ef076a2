// What a program holds in its hands: machines, schedules, plans. Each is a constant value that runs share.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "sim/config/machine_config.hpp"
#include "sim/config/schedule_config.hpp"
#include "sim/machine/machine_fields.hpp"
#include "sim/schedule/text.hpp"
#include "tools/python/core.hpp"
#include "workloads/scenario/read_scenario.hpp"

namespace py = pybind11;

namespace podsim::python {

namespace {

using Overrides = std::vector<std::pair<std::string, std::string>>;

/// With values changed, as --set does.
Machine with_overrides(const Machine& machine, const Overrides& overrides) {
  std::vector<Override> changes;
  for (const auto& [path, value] : overrides) changes.push_back({path, value});
  return value_or_raise(with_values(machine, changes, "set", of_field("set")));
}

}  // namespace

void bind_objects(py::module_& module) {
  py::class_<Machine, std::shared_ptr<Machine>>(module, "Machine")
      .def_static("load", [](const std::string& name) { return value_or_raise(load_machine(name)); })
      .def_static("read", [](const std::string& text, const std::string& file) { return value_or_raise(read_machine(text, file)); })
      .def("with_values", &with_overrides)
      .def("text", &write_machine)
      .def_readonly("name", &Machine::name)
      .def("__eq__", [](const Machine& a, const Machine& b) { return write_machine(a) == write_machine(b); })
      .def(py::pickle([](const Machine& machine) { return py::make_tuple(write_machine(machine)); },
                      [](const py::tuple& state) { return value_or_raise(read_machine(state[0].cast<std::string>(), "a pickled machine")); }));

  py::class_<Schedule, std::shared_ptr<Schedule>>(module, "Schedule")
      .def_static("load", [](const std::string& path) { return value_or_raise(load_schedule(path)); })
      .def_static("read", [](const py::bytes& bytes, const std::string& file) { return value_or_raise(read_schedule(std::string{bytes}, file)); })
      .def("text", [](const Schedule& schedule) { return write_schedule(schedule, Encoding::text); })
      .def("binary", [](const Schedule& schedule) { return py::bytes(write_schedule(schedule, Encoding::binary)); })
      .def("listing", [](const Schedule& schedule) { return to_text(schedule); })
      .def_readonly("name", &Schedule::name)
      .def_property_readonly("mesh",
                             [](const Schedule& schedule) {
                               py::dict sizes;
                               for (const MeshAxis& axis : schedule.mesh.axes()) sizes[py::str(axis.name)] = axis.size;
                               return sizes;
                             })
      .def("tasks",
           [](const Schedule& schedule) {
             std::size_t tasks = 0;
             for (const Program& program : schedule.programs) tasks += program.tasks.size();
             return tasks;
           })
      .def("__eq__", [](const Schedule& a, const Schedule& b) { return a == b; })
      .def(py::pickle([](const Schedule& schedule) { return py::make_tuple(py::bytes(write_schedule(schedule, Encoding::binary))); },
                      [](const py::tuple& state) { return value_or_raise(read_schedule(state[0].cast<std::string>(), "a pickled schedule")); }));

  py::class_<SavedPlan, std::shared_ptr<SavedPlan>>(module, "Plan")
      .def_static("load", [](const std::string& path) { return value_or_raise(load_plan(path)); })
      .def_static("read", [](const std::string& text, const std::string& file) { return value_or_raise(read_plan(text, file)); })
      .def("text", &write_plan)
      .def("__eq__", [](const SavedPlan& a, const SavedPlan& b) { return write_plan(a) == write_plan(b); })
      .def(py::pickle([](const SavedPlan& plan) { return py::make_tuple(write_plan(plan)); },
                      [](const py::tuple& state) { return value_or_raise(read_plan(state[0].cast<std::string>(), "a pickled plan")); }));
}

}  // namespace podsim::python
