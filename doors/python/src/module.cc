// SPDX-License-Identifier: Apache-2.0
// The extension module anymps._core: exceptions, and everything that the other files bind.
#include <array>
#include <string_view>

#include "core.h"

namespace anymps::python {
namespace {

struct Kind {
  amps_status status;
  const char* name;
  PyObject** also;  // the built-in exception that it is as well
  const char* doc;
};
const Kind kKinds[] = {
    {AMPS_INVALID_ARGUMENT, "InvalidArgument", &PyExc_ValueError, "What was given does not fit."},
    {AMPS_NOT_FOUND, "NotFound", &PyExc_LookupError, "There is no such file, op or device."},
    {AMPS_UNSUPPORTED, "Unsupported", &PyExc_NotImplementedError,
     "It is valid, but not supported."},
    {AMPS_OUT_OF_MEMORY, "OutOfMemory", &PyExc_MemoryError,
     "The device's memory or its limit ends."},
    {AMPS_CORRUPT, "Corrupt", &PyExc_ValueError, "A file is damaged."},
    {AMPS_IO, "IoError", &PyExc_OSError, "A file cannot be read or written."},
    {AMPS_INTERNAL, "InternalError", &PyExc_RuntimeError, "A mistake of the engine."},
    {AMPS_CANCELLED, "Cancelled", &PyExc_RuntimeError, "The work was given up."},
    {AMPS_MISMATCH, "Mismatch", &PyExc_ArithmeticError, "A number differs from the reference."},
};

PyObject* base_error = nullptr;
std::array<PyObject*, 16> errors{};

PyObject* add_exception(nb::module_& m, const char* name, nb::object bases, const char* doc) {
  const std::string full = std::string("anymps.") + name;
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
  if (!made) throw nb::python_error();
  m.attr(name) = nb::handle(made);
  return made;  // kept for ever
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const amps::Error& error) {
    const size_t index = error.status();
    PyObject* type = index < errors.size() && errors[index] ? errors[index] : base_error;
    // Messages quote names from files, which may hold any bytes.
    const std::string_view text = error.what();
    const auto message = nb::steal(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    PyErr_SetObject(type, message.ptr());
  }
}

}  // namespace
}  // namespace anymps::python

NB_MODULE(_core, m) {
  using namespace anymps::python;
  base_error =
      add_exception(m, "Error", nb::borrow(PyExc_Exception),
                    "What every error of AnyMPS is; the message names the op and the node.");
  for (const Kind& kind : kKinds)
    errors[kind.status] = add_exception(
        m, kind.name, nb::make_tuple(nb::borrow(base_error), nb::borrow(*kind.also)), kind.doc);
  nb::register_exception_translator(translate);
  bind_tensor(m);
  bind_graph(m);
  bind_program(m);
  bind_executable(m);
  bind_device(m);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&finish_streams));
  nb::module_::import_("os").attr("register_at_fork")(
      nb::arg("before") = nb::cpp_function(&before_fork),
      nb::arg("after_in_parent") = nb::cpp_function(&after_fork),
      nb::arg("after_in_child") = nb::cpp_function(&after_fork));
  m.def("version", [] { return amps_version(); });
  m.def("doctor", &amps::doctor);
  m.def("write_file",
        [](const std::string& path, const std::string& text) { amps::write_file(path, {text}); });
  m.def("ops_text", &amps::ops_text);
  m.def("dtype_size", [](const std::string& name) { return amps_dtype_size(dtype_of(name)); });
}
