// SPDX-License-Identifier: Apache-2.0
// What Python calls often. Compiled graphs are functions of a list of tensors: one of a small op
// takes a microsecond to run, and PyTorch's own ways from Python to C++ take two or three more.
#include <c10/core/AutogradState.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include "compiled/compiled_graph.h"

namespace anymps::aten {

namespace {

constexpr char kName[] = "torch_anymps.graph";

PyObject* run(PyObject* self, PyObject* list) {
  HANDLE_TH_ERRORS
  auto* graph = static_cast<CompiledGraph*>(PyCapsule_GetPointer(self, kName));
  TORCH_CHECK_TYPE(graph && PyList_Check(list), "a graph takes a list of tensors");
  std::vector<at::Tensor> inputs, results;
  const Py_ssize_t count = PyList_GET_SIZE(list);
  inputs.reserve(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    TORCH_CHECK_TYPE(THPVariable_Check(item), "argument ", i, " of a graph is no tensor");
    inputs.push_back(THPVariable_Unpack(item));
  }
  {
    const pybind11::gil_scoped_release others_may_run;
    results = graph->run(inputs);
  }
  auto made = pybind11::reinterpret_steal<pybind11::object>(
      PyList_New(static_cast<Py_ssize_t>(results.size())));
  if (!made) return nullptr;
  for (size_t i = 0; i < results.size(); ++i)
    PyList_SET_ITEM(made.ptr(), static_cast<Py_ssize_t>(i),
                    THPVariable_Wrap(std::move(results[i])));
  return made.release().ptr();
  END_HANDLE_TH_ERRORS
}

void release(PyObject* capsule) {
  delete static_cast<CompiledGraph*>(PyCapsule_GetPointer(capsule, kName));
}

PyMethodDef definition{"run", &run, METH_O, "Runs the graph: a list of tensors for a list."};

// Calls the function while backward passes stay on their threads.
PyObject* call_here(PyObject* function, PyObject* const* arguments, Py_ssize_t count,
                    PyObject* names) {
  c10::AutogradState& state = c10::AutogradState::get_tls_state();
  const bool before = state.get_multithreading_enabled();
  state.set_multithreading_enabled(false);
  PyObject* result = PyObject_Vectorcall(function, arguments, count, names);
  state.set_multithreading_enabled(before);
  return result;
}

PyMethodDef here{"run_backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call_here)),
                 METH_FASTCALL | METH_KEYWORDS, "Runs a backward pass on this thread."};

}  // namespace

// The function that runs backward passes, as one that runs them on the thread that calls it.
extern "C" __attribute__((visibility("default"))) PyObject* anymps_torch_on_this_thread(
    PyObject* function) {
  return PyCFunction_New(&here, function);
}

// A function for the graph that the text tells (compiled/compiled_graph.h).
extern "C" __attribute__((visibility("default"))) PyObject* anymps_torch_graph(const char* text) {
  HANDLE_TH_ERRORS
  std::unique_ptr<CompiledGraph> graph;
  {
    const pybind11::gil_scoped_release others_may_run;
    graph = std::make_unique<CompiledGraph>(text);
  }
  const auto capsule =
      pybind11::reinterpret_steal<pybind11::object>(PyCapsule_New(graph.get(), kName, &release));
  if (!capsule) return nullptr;
  static_cast<void>(graph.release());
  return PyCFunction_New(&definition, capsule.ptr());
  END_HANDLE_TH_ERRORS
}

}  // namespace anymps::aten
