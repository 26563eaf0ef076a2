#include <pybind11/pybind11.h>

#include <exception>
#include <span>
#include <utility>

#include "sim/base/invariant.hpp"
#include "tools/build_info.hpp"
#include "tools/console/printable_stream.hpp"
#include "tools/python/core.hpp"
#include "tools/report/role_colours.hpp"

namespace podsim::python {

namespace {

const char* name_of(Cause cause) {
  switch (cause) {
    case Cause::input:
    case Cause::cut_off:
    case Cause::too_large: break;
    case Cause::cancelled: return "cancelled";
    case Cause::data: return "data";
    case Cause::environment: return "environment";
  }
  return "input";
}

}  // namespace

pybind11::tuple tuple_of(const Diagnostic& diagnostic) {
  return pybind11::make_tuple(printable(diagnostic.where.file), diagnostic.where.line, diagnostic.where.column, diagnostic.where.is_field, printable(diagnostic.message),
                              name_of(diagnostic.cause));
}

void raise(const Diagnostic& diagnostic) {
  const auto errors = pybind11::module_::import("podsim._errors");
  const auto make = errors.attr("from_diagnostics");
  pybind11::list all;
  all.append(tuple_of(diagnostic));
  const pybind11::object error = make(all);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw pybind11::error_already_set{};
}

namespace {

pybind11::list list_of(std::span<const Colour> colours) {
  pybind11::list list;
  for (const Colour colour : colours) list.append(hex(colour));
  return list;
}

/// The table of role_colours.hpp, for drawings in notebooks.
void put_colours(pybind11::module_& module) {
  pybind11::dict roles;
  for (const auto& [role, colour] : role_colours()) roles[pybind11::str(role)] = hex(colour);
  module.attr("role_colours") = roles;
  module.attr("axis_colours") = list_of(axis_colours());
  module.attr("series_colours") = list_of(series_colours());
}

/// What a call into podsim throws otherwise than through a command, which has told it.
void translate_internal_errors(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(std::move(thrown));
  } catch (const InternalError& error) {
    const auto errors = pybind11::module_::import("podsim._errors");
    PyErr_SetString(errors.attr("InternalError").ptr(), error.what());
  }
}

}  // namespace

}  // namespace podsim::python

PYBIND11_MODULE(_core, module) {
  module.doc() = "podsim's simulator; call it through the package podsim";
  pybind11::register_exception_translator(&podsim::python::translate_internal_errors);
  module.attr("version") = PODSIM_VERSION;
  module.attr("version_and_build") = podsim::version_and_build();
  podsim::python::put_colours(module);
  podsim::python::bind_objects(module);
  podsim::python::bind_builder(module);
  podsim::python::bind_timeline(module);
  podsim::python::bind_sweep(module);
  podsim::python::bind_command(module);
}
