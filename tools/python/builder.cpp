// Schedules written in Python: the values that they consist of, a writer that checks each task as it comes, and their execution on arrays.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "sim/engine/numeric/execute.hpp"
#include "sim/schedule/derive_edges.hpp"
#include "sim/schedule/program_builder.hpp"
#include "sim/schedule/text.hpp"
#include "sim/schedule/touches.hpp"
#include "sim/schedule/validate.hpp"
#include "tools/python/core.hpp"
#include "tools/python/stoppable_work.hpp"

namespace py = pybind11;

namespace podsim::python {

namespace {

/// A value by its name. Errors: there is none of that name; `field` is the argument to blame.
template <class Values, class Name>
auto named(std::string_view field, const std::string& name, const Values& values, Name name_of_value) {
  std::vector<std::string> names;
  for (const auto& value : values) {
    if (name_of_value(value) == name) return value;
    names.emplace_back(name_of_value(value));
  }
  raise({of_field(std::string{field}),
         fmt::format("there is no {}{}; there are {}", quoted(name), did_you_mean(name, names), fmt::join(names, ", "))});
}

LocalKind local_kind(const std::string& name) {
  return named("kind", name, local_table, [](const LocalTraits& traits) { return traits.name; }).kind;
}
CollectiveKind collective_kind(const std::string& name) {
  std::vector<CollectiveKind> kinds;
  for (int k = 0; k < collective_kind_count; ++k) kinds.push_back(static_cast<CollectiveKind>(k));
  return named("kind", name, kinds, [](CollectiveKind kind) { return name_of(kind); });
}
DType dtype(const std::string& name) {
  std::vector<DType> dtypes;
  for (int d = 0; d < dtype_count; ++d) dtypes.push_back(static_cast<DType>(d));
  return named("dtype", name, dtypes, [](DType of) { return name_of(of); });
}
Role role(const std::string& name) { return name == "input" ? Role::input : name == "output" ? Role::output : Role::scratch; }
/// As text files name them.
Half half(const std::string& name) {
  return name == "sent" || name == "send" ? Half::send : name == "received" || name == "receive" ? Half::receive : Half::both;
}

class ScheduleWriter {
 public:
  ScheduleWriter(std::string name, Mesh mesh) : schedule_{std::move(name), std::move(mesh), {}, std::monostate{}} {
    schedule_.programs.push_back({every_device(schedule_.mesh), {}, {}});
  }

  /// Narrows the first program to these devices, if it is empty, or begins another one.
  void program(int first, int last) {
    Program& now = schedule_.programs.back();
    if (!now.buffers.empty() || !now.tasks.empty()) schedule_.programs.emplace_back();
    schedule_.programs.back().devices = {{{first, last}}};
  }

  int buffer(Buffer buffer) {
    schedule_.programs.back().buffers.push_back(std::move(buffer));
    return static_cast<int>(schedule_.programs.back().buffers.size()) - 1;
  }

  int task(const std::string& call, Task task) {
    check(call, task);
    schedule_.programs.back().tasks.push_back(std::move(task));
    return static_cast<int>(schedule_.programs.back().tasks.size()) - 1;
  }

  void claim(Product product) {
    if (!std::holds_alternative<Products>(schedule_.computes)) schedule_.computes = Products{};
    std::get<Products>(schedule_.computes).push_back(std::move(product));
  }
  void claim(Collective collective) { schedule_.computes = std::move(collective); }

  [[nodiscard]] std::shared_ptr<Schedule> finish() const { return std::make_shared<Schedule>(derived().schedule); }

  /// program, task, label, earlier task, its label, done, gates, hazard, earlier region, later region, device
  [[nodiscard]] py::list edges() const {
    const DerivedEdges all = derived();
    py::list rows;
    for (const DerivedEdge& edge : all.edges) {
      const Program& program = all.schedule.programs[edge.program];
      const auto half_name = [](Half of, const char* first, const char* second) { return of == Half::both ? "both" : of == Half::send ? first : second; };
      rows.append(py::make_tuple(edge.program, edge.task.value, program.tasks[edge.task.index()].label, edge.edge.task.value,
                                 program.tasks[edge.edge.task.index()].label, half_name(edge.edge.done, "sent", "received"),
                                 half_name(edge.edge.gates, "send", "receive"), std::string{name_of(edge.hazard)},
                                 to_text(schedule_.mesh, program, edge.earlier), to_text(schedule_.mesh, program, edge.later),
                                 schedule_.mesh.name(edge.device)));
    }
    return rows;
  }

 private:
  [[nodiscard]] DerivedEdges derived() const {
    auto edges = [&] {
      const py::gil_scoped_release unlocked;
      return derive_edges(schedule_);
    }();
    return value_or_raise(std::move(edges));
  }

  /// Raises what is wrong with a task, whatever is before and behind it: shapes, regions that leave their buffers on some device, shifts off the end of an
  /// axis, operands that it overwrites.
  void check(const std::string& call, const Task& task) const {
    const Program& now = schedule_.programs.back();
    Schedule alone{schedule_.name, schedule_.mesh, {{now.devices, now.buffers, {task}}}, std::monostate{}};
    Task& checked = alone.programs[0].tasks[0];
    checked.after.clear();
    std::vector<Diagnostic> problems = check_shapes(alone);
    if (problems.empty()) {
      // Halves without a partner and collectives cannot be deployed alone, regions of an operation without a meaning can.
      if (const Op& op = task.op; std::holds_alternative<Send>(op) || std::holds_alternative<Recv>(op) || std::holds_alternative<Collective>(op)) {
        Local touches{LocalKind::opaque, {}, {}};
        for_each_touch(op, [&](const Touch& touch) { touches.reads.push_back(touch.region); });
        checked.op = std::move(touches);
      }
      problems = validate(alone).all();
    }
    if (problems.empty()) return;
    std::string& message = problems.front().message;  // which counts the tasks of a program with one
    const std::string number = "task 0 ";
    for (std::size_t at = message.find(number); at != std::string::npos; at = message.find(number, at + 1))
      message.replace(at, number.size(), fmt::format("task {} ", now.tasks.size()));
    raise({of_field(call), message});
  }

  Schedule schedule_;
};

template <class T>
using Words = py::array_t<T, py::array::c_style | py::array::forcecast>;

py::dict execute_on(const Schedule& lowered, const std::map<std::string, Words<float>>& inputs, bool on_main) {
  GivenTensors given;
  for (const auto& [name, words] : inputs) given.emplace(name, std::vector<float>(words.data(), words.data() + words.size()));
  StoppableWork work;
  Expected<GivenTensors> outputs = GivenTensors{};
  work.perform(
      [&] {
        NumericOptions options;
        options.stop = Cancellation{&work.stop};
        outputs = execute(lowered, given, options);
      },
      on_main);
  work.rethrow(false);
  py::dict results;
  for (const auto& [name, words] : value_or_raise(std::move(outputs))) results[py::str(name)] = Words<float>(static_cast<py::ssize_t>(words.size()), words.data());
  return results;
}

using Term = std::tuple<AxisView, std::int64_t, std::int64_t>;

void bind_values(py::module_& module) {
  py::class_<AxisView>(module, "AxisView").def_readonly("size", &AxisView::size).def_readonly("axis", &AxisView::axis).def("__eq__", [](AxisView a, AxisView b) {
    return a == b;
  });
  py::class_<Mesh>(module, "Mesh")
      .def(py::init([](const std::vector<std::tuple<std::string, int, bool>>& axes) {
        std::vector<MeshAxis> all;
        for (const auto& [name, size, wraps] : axes) all.push_back({name, size, wraps});
        auto mesh = Mesh::make(std::move(all));
        if (!mesh) raise({of_field("mesh"), mesh.error().message});
        return *std::move(mesh);
      }))
      .def_static("of", [](const Schedule& schedule) { return schedule.mesh; })
      .def_property_readonly("devices", &Mesh::devices)
      .def("names",
           [](const Mesh& mesh) {
             std::vector<std::string> names;
             for (const MeshAxis& axis : mesh.axes()) names.push_back(axis.name);
             return names;
           })
      .def("axis", [](const Mesh& mesh, const std::string& name, const std::string& argument) {
        auto axis = mesh.axis(name);
        if (!axis) raise({of_field(argument), axis.error().message});
        return *axis;
      });
  py::class_<Affine>(module, "Affine").def(py::init([](const std::vector<Term>& terms, std::int64_t constant, std::int64_t modulus) {
    Affine affine{{}, constant, modulus};
    for (const auto& [axis, coefficient, add] : terms) affine.terms.push_back({axis, coefficient, add});
    return affine;
  }));
  py::class_<Range>(module, "Range").def(py::init<Affine, std::int64_t, std::int64_t, std::int64_t>());
  py::class_<Region>(module, "Region").def(py::init([](int buffer, std::vector<Range> dims) { return Region{BufferId{buffer}, std::move(dims)}; }));
  py::class_<Condition>(module, "Condition").def(py::init<Affine, std::int64_t, std::int64_t>());
  py::class_<Edge>(module, "Edge").def(py::init([](int task, const std::string& done, const std::string& gates) {
    return Edge{TaskId{task}, half(done), half(gates)};
  }));
}

void bind_operations(py::module_& module) {
  py::class_<Matmul>(module, "Matmul").def(py::init<Region, Region, Region, int, int, int, bool, bool, bool>());
  py::class_<Shift>(module, "Shift").def(py::init([](AxisView axis, Affine by, Region source, Region target, bool add) {
    return Shift{axis, std::move(by), std::move(source), std::move(target), add ? Combine::add : Combine::replace, {}};
  }));
  py::class_<Send>(module, "Send").def(py::init([](int channel, Peer to, Region source) { return Send{channel, std::move(to), std::move(source), {}}; }));
  py::class_<Recv>(module, "Recv").def(py::init([](int channel, Peer from, Region target, bool add) {
    return Recv{channel, std::move(from), std::move(target), add ? Combine::add : Combine::replace};
  }));
  py::class_<Collective>(module, "Collective")
      .def(py::init([](const std::string& kind, std::vector<AxisView> axes, Region input, Region output, int dim, int split_dim, std::int64_t root,
                       const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) {
        Collective collective{collective_kind(kind), std::move(axes), std::move(input), std::move(output), dim, split_dim, root, {}};
        for (const auto& [from, to] : pairs) collective.pairs.push_back({from, to});
        return collective;
      }));
  py::class_<Local>(module, "Local")
      .def(py::init([](const std::string& kind, std::vector<Region> reads, std::vector<Region> writes, bool dma, double factor, bool features_first, bool causal,
                       std::array<int, 2> dims, std::vector<int> splits, const std::vector<std::tuple<Affine, std::int64_t, std::int64_t>>& numbering,
                       std::int64_t classes) {
        Local local{local_kind(kind), std::move(reads), std::move(writes), factor, dma ? Unit::dma : Unit::core};
        local.features_first = features_first, local.causal = causal, local.dims = dims, local.splits = std::move(splits), local.classes = classes;
        for (const auto& [first, block, apart] : numbering) local.numbering.push_back({first, block, apart});
        return local;
      }));
}

}  // namespace

void bind_builder(py::module_& module) {
  bind_values(module);
  bind_operations(module);
  py::class_<ScheduleWriter>(module, "ScheduleWriter")
      .def(py::init<std::string, Mesh>())
      .def("program", &ScheduleWriter::program)
      .def("buffer",
           [](ScheduleWriter& writer, std::string name, std::vector<std::int64_t> extents, const std::string& type, const std::string& of_role, std::string tensor,
              std::vector<std::vector<AxisView>> sharding) {
             return writer.buffer({std::move(name), std::move(extents), dtype(type), role(of_role), std::move(tensor), std::move(sharding)});
           })
      .def("task",
           [](ScheduleWriter& writer, const std::string& call, std::string label, Op op, std::vector<Edge> after, Guard where) {
             return writer.task(call, {std::move(label), std::move(op), std::move(after), std::move(where), {}});
           })
      .def("claim_product",
           [](ScheduleWriter& writer, std::string out, std::string left, std::string right, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_left,
              bool transpose_right) {
             writer.claim(Product{std::move(out), std::move(left), std::move(right), m, n, k, transpose_left, transpose_right});
           })
      .def("claim_collective", [](ScheduleWriter& writer, Collective collective) { writer.claim(std::move(collective)); })
      .def("finish", &ScheduleWriter::finish)
      .def("edges", &ScheduleWriter::edges);
  module.def(
      "tensors",
      [](const Schedule& schedule, const std::string& of_role) {
        py::list all;
        for (const GlobalTensor& tensor : tensors_of(schedule, role(of_role)))
          all.append(py::make_tuple(tensor.name, std::string{name_of(tensor.dtype)}, py::tuple(py::cast(tensor.extents))));
        return all;
      },
      "name, dtype, extents of the inputs or outputs of a schedule");
  module.def("execute", &execute_on, py::arg("lowered"), py::arg("inputs"), py::arg("on_main"), "the words of every output, by name");
}

}  // namespace podsim::python
