// SPDX-License-Identifier: Apache-2.0
// What the files of the extension share: the types that Python sees, and their registration. The
// extension stays thin: conversions of numpy arrays, lists and names are Python
// (anymps/_convert.py).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "anymps/anymps.hpp"

namespace pyamps {

namespace nb = nanobind;

// A tensor and whether its memory may be written through views that Python gets of it.
struct Tensor {
  amps::Tensor tensor;
  amps_device* device = nullptr;  // lives for ever
  bool readonly = false;

  amps_tensor* c() const { return tensor.c(); }
  bool plain() const { return amps_tensor_container(c()) == AMPS_TENSOR; }
};

// A value keeps the graph or executable that it belongs to.
struct Value {
  std::shared_ptr<const void> owner;
  const amps_value* value = nullptr;

  amps_value* c() const { return const_cast<amps_value*>(value); }
};

struct Graph {
  std::shared_ptr<amps_graph> graph;

  amps_graph* c() const { return graph.get(); }
  Value value(const amps_value* value) const { return {graph, value}; }
};

struct Executable {
  amps::Executable executable;
  amps_device* device = nullptr;

  amps_executable* c() const { return executable.c(); }
};

inline amps_dtype dtype_of(const std::string& name) {
  amps_dtype dtype;
  amps::check(amps_dtype_parse(name.c_str(), &dtype));
  return dtype;
}

// Strings for the C interface, as many as the shape has elements.
struct StringList {
  StringList(const std::vector<nb::bytes>& strings, const std::vector<int64_t>& dims);
  std::vector<const char*> data;
  std::vector<size_t> sizes;
};

[[noreturn]] inline void invalid(const std::string& message) {
  throw amps::Error(AMPS_INVALID_ARGUMENT, message);
}

// A tensor over memory that a Python object owns: `release(context)` runs once, under the GIL, when
// the engine has done with it.
Tensor wrap(amps_device* device, amps_dtype dtype, const std::vector<int64_t>& dims,
            const std::vector<int64_t>& strides, void* data, bool readonly,
            void (*release)(void* context), void* context);
// Fails unless the tensor has memory of its own that the host can read.
void need_host_memory(const Tensor& tensor);

// (name, kind as the op table calls it, value); `store` keeps what the result points to.
using Attributes = std::vector<std::tuple<std::string, std::string, nb::object>>;
std::vector<amps_attr> attrs_of(const Attributes& attrs, std::vector<amps::Attr>& store);

void bind_device(nb::module_& m);
void bind_dlpack(nb::class_<Tensor>& tensor);
void bind_executable(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_program(nb::module_& m);
void bind_tensor(nb::module_& m);

}  // namespace pyamps
