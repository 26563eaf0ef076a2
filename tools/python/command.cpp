// Commands, carried out in this process.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <sstream>

#include "tools/command/command.hpp"
#include "tools/command/described_command.hpp"
#include "tools/command/options.hpp"
#include "tools/console/caller.hpp"
#include "tools/console/printable_stream.hpp"
#include "tools/python/core.hpp"
#include "tools/python/stoppable_work.hpp"
#include "tools/report/comparison_report.hpp"
#include "topologies/system.hpp"
#include "workloads/scenario/known_objects.hpp"

namespace py = pybind11;

namespace podsim::python {

namespace {

// Texts of files and names are bytes; Python's are Unicode, and a terminal shows them. So each is printable() on its way.

/// One command: what it was given, what it came to.
struct Call {
  std::vector<std::string> words;
  StoppableWork work;
  std::ostringstream out, err;
  Caller caller;
  int status = exit_done;

  void perform() {
    Console console{out, err, false, &work.stop};
    console.caller = &caller;
    status = run_command(words, console);
  }
};

py::list errors_of(const std::vector<Diagnostic>& errors) {
  py::list all;
  for (const Diagnostic& error : errors) all.append(tuple_of(error));
  return all;
}

template <class T>
std::map<std::string, T, std::less<>> copies_of(const std::map<std::string, std::shared_ptr<T>>& objects) {
  std::map<std::string, T, std::less<>> copies;
  for (const auto& [name, object] : objects) copies.emplace(name, *object);
  return copies;
}

/// What a command came to, beside its text.
py::object value_of(const Caller& caller) {
  if (caller.run != nullptr) return py::cast(caller.run);
  if (caller.tuning != nullptr) return py::cast(caller.tuning);
  if (caller.comparison != nullptr) return py::cast(caller.comparison);
  if (caller.schedule != nullptr) return py::cast(caller.schedule);
  if (caller.machine != nullptr) return py::make_tuple(caller.machine, printable(caller.table, OwnSequences::colours));
  if (!caller.table.empty()) return py::str(printable(caller.table, OwnSequences::colours));
  return py::none();
}

py::tuple call_command(std::vector<std::string> words, const std::map<std::string, std::shared_ptr<Machine>>& machines,
                       const std::map<std::string, std::shared_ptr<Schedule>>& schedules,
                       const std::map<std::string, std::shared_ptr<SavedPlan>>& plans, const py::object& progress, bool on_main,
                       std::pair<std::size_t, std::size_t> share, std::shared_ptr<SimulatedParts> elsewhere) {
  Call call;
  call.caller.share = share.first, call.caller.shares = share.second;
  call.caller.elsewhere = std::move(elsewhere);
  call.words = std::move(words);
  if (!machines.empty() || !schedules.empty() || !plans.empty())
    call.caller.known = std::make_shared<KnownObjects>(KnownObjects{copies_of(machines), copies_of(schedules), copies_of(plans)});
  if (!progress.is_none()) call.caller.progress = call.work.calling(progress);
  call.work.perform([&] { call.perform(); }, on_main);
  call.work.rethrow(call.status == exit_interrupted);
  return py::make_tuple(call.status, printable(call.out.str(), OwnSequences::colours), printable(call.err.str()), errors_of(call.caller.errors), value_of(call.caller));
}

py::list options_of(const std::vector<std::string>& words) {
  py::list all;
  const auto described = described_command(words);
  if (!described) return all;
  for (const OptionSpec& spec : described->options) {
    const char* const kind = spec.value.kind == OptionValue::Kind::flag ? "flag" : spec.value.kind == OptionValue::Kind::one ? "one" : "many";
    const std::vector<std::string> choices = spec.value.choices.empty() && spec.value.form == Form::name ? spec.value.names() : spec.value.choices;
    all.append(py::make_tuple(spec.long_name(), kind, name_of(spec.value.form), spec.value.name, spec.value.otherwise, choices, spec.help));
  }
  return all;
}

const System& system_of(const TuningAnswer& answer, std::size_t plan) { return answer.request.systems[answer.found.tuning.plans.at(plan).system]; }

py::dict mesh_of(const Mesh& mesh) {
  py::dict sizes;
  for (const MeshAxis& axis : mesh.axes()) sizes[py::str(axis.name)] = axis.size;
  return sizes;
}

}  // namespace

void bind_command(py::module_& module) {
  module.def(
      "call", &call_command, py::arg("words"), py::arg("machines"), py::arg("schedules"), py::arg("plans"), py::arg("progress"), py::arg("on_main"),
      py::arg("share") = std::pair{0, 1}, py::arg("elsewhere") = nullptr,
      "status, text, messages, errors, value of one command; the value: RunAnswer, TuningAnswer, ComparisonAnswer, Schedule, a Machine with a table, "
      "a table beside JSON, or None");
  module.def("options", &options_of, "name, kind, form, placeholder, default, choices, help of each option of a command");
  module.def("usage", [](const std::string& verb) { return std::string{usage_of(verb)}; });

  py::class_<SimulatedParts, std::shared_ptr<SimulatedParts>>(module, "SimulatedParts", "what a share of a search simulated, for the others")
      .def(py::init<>())
      .def("__len__", [](const SimulatedParts& all) { return all.parts.size(); })
      .def("add",
           [](SimulatedParts& all, const SimulatedParts& more) {
             all.parts.insert(more.parts.begin(), more.parts.end());
             all.collectives.insert(more.collectives.begin(), more.collectives.end());
             all.least.insert(more.least.begin(), more.least.end());
           })
      .def(py::pickle(
          [](const SimulatedParts& all) {
            std::map<std::string, std::tuple<std::int64_t, std::int64_t, std::string>> parts;
            for (const auto& [key, cost] : all.parts) parts.emplace(key, std::tuple{cost.time.count(), cost.working.count(), cost.problem});
            std::map<std::string, double> collectives;
            for (const auto& [key, time] : all.collectives) collectives.emplace(key, time.count());
            std::map<std::string, std::int64_t> least;
            for (const auto& [key, time] : all.least) least.emplace(key, time.count());
            return py::make_tuple(parts, collectives, least);
          },
          [](const py::tuple& state) {
            auto all = std::make_shared<SimulatedParts>();
            for (auto& [key, cost] : state[0].cast<std::map<std::string, std::tuple<std::int64_t, std::int64_t, std::string>>>())
              all->parts.emplace(key, PartCost{Picoseconds{std::get<0>(cost)}, Bytes{std::get<1>(cost)}, std::get<2>(cost)});
            for (auto& [key, time] : state[1].cast<std::map<std::string, double>>()) all->collectives.emplace(key, Seconds{time});
            for (auto& [key, time] : state[2].cast<std::map<std::string, std::int64_t>>()) all->least.emplace(key, Picoseconds{time});
            return all;
          }));

  py::class_<RunAnswer, std::shared_ptr<RunAnswer>>(module, "RunAnswer")
      .def(
          "json", [](const RunAnswer& answer) { return result_json(answer.run, answer.details); }, py::call_guard<py::gil_scoped_release>())
      .def(
          "table", [](const RunAnswer& answer) { return printable(result_table(answer.run, answer.details)); }, py::call_guard<py::gil_scoped_release>())
      .def("csv", [](const RunAnswer& answer) { return printable(result_csv({answer.run.row})); })
      .def_property_readonly("makespan_s", [](const RunAnswer& answer) { return answer.run.row.result.makespan_s; })
      .def_property_readonly("interrupted", [](const RunAnswer& answer) { return answer.run.timeline.interrupted; })
      .def_property_readonly("simulated_ps", [](const RunAnswer& answer) { return answer.run.timeline.makespan.count(); })
      .def_property_readonly("finished", [](const RunAnswer& answer) { return answer.run.timeline.finished; })
      .def_property_readonly("activities", [](const RunAnswer& answer) { return answer.run.model.deployment.activities(); })
      .def("device_order", [](const RunAnswer& answer) { return jax_device_ids(*answer.run.system); })
      .def("mesh", [](const RunAnswer& answer) { return mesh_of(answer.run.system->mesh); })
      .def("timeline", [](std::shared_ptr<RunAnswer> answer) { return timeline_of(std::move(answer)); });

  py::class_<ComparisonReport, std::shared_ptr<ComparisonReport>>(module, "ComparisonAnswer")
      .def("json", &comparison_json, py::call_guard<py::gil_scoped_release>())
      .def("table", [](const ComparisonReport& comparison) { return printable(comparison_table(comparison)); }, py::call_guard<py::gil_scoped_release>())
      .def("csv", [](const ComparisonReport& comparison) { return printable(result_csv(comparison.rows)); });

  py::class_<TuningAnswer, std::shared_ptr<TuningAnswer>>(module, "TuningAnswer")
      .def("json", [](const TuningAnswer& answer) { return tuning_json(answer.found); }, py::call_guard<py::gil_scoped_release>())
      .def("table", [](const TuningAnswer& answer) { return printable(tuning_table(answer.found)); }, py::call_guard<py::gil_scoped_release>())
      .def("simulated", [](const TuningAnswer& answer) { return std::make_shared<SimulatedParts>(answer.found.tuning.parts); })
      .def_property_readonly("interrupted", [](const TuningAnswer& answer) { return answer.found.tuning.interrupted; })
      .def("__len__", [](const TuningAnswer& answer) { return answer.plans.size(); })
      .def("plan", [](const TuningAnswer& answer, std::size_t plan) { return answer.plans.at(plan); })
      .def("device_order", [](const TuningAnswer& answer, std::size_t plan) { return jax_device_ids(system_of(answer, plan)); })
      .def("mesh", [](const TuningAnswer& answer, std::size_t plan) { return mesh_of(system_of(answer, plan).mesh); });
}

}  // namespace podsim::python
