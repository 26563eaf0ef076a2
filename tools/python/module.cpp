#include <pybind11/pybind11.h>

#include "tools/build_info.hpp"
#include "tools/python/core.hpp"

namespace podsim::python {

void raise(const Diagnostic& diagnostic) {
  const auto errors = pybind11::module_::import("podsim._errors");
  const auto make = errors.attr("from_diagnostics");
  pybind11::list all;
  all.append(pybind11::make_tuple(diagnostic.where.file, diagnostic.where.line, diagnostic.where.column, diagnostic.where.is_field, diagnostic.message,
                                  static_cast<int>(diagnostic.cause)));
  const pybind11::object error = make(all);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw pybind11::error_already_set{};
}

}  // namespace podsim::python

PYBIND11_MODULE(_core, module) {
  module.doc() = "podsim's simulator; call it through the package podsim";
  module.attr("version") = PODSIM_VERSION;
  module.attr("version_and_build") = podsim::version_and_build();
  podsim::python::bind_objects(module);
  podsim::python::bind_builder(module);
  podsim::python::bind_timeline(module);
  podsim::python::bind_sweep(module);
  podsim::python::bind_command(module);
}
