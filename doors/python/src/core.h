// SPDX-License-Identifier: Apache-2.0
// What the files of the extension share: the types that Python sees, and their registration. The
// extension stays thin: conversions of numpy arrays, lists and names are Python
// (anymps/_convert.py).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "anymps/anymps.hpp"

namespace anymps::python {

namespace nb = nanobind;

// A tensor and whether its memory may be written through views that Python gets of it.
struct Tensor {
  amps::Tensor tensor;
  amps_device* device = nullptr;  // lives forever
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
  std::shared_ptr<const void> owner() const { return graph; }
  Value value(const amps_value* value) const { return {graph, value}; }
};

struct Signature;  // what calls with arrays alone need (executable.cc)

struct Executable {
  amps::Executable executable;
  amps_device* device = nullptr;
  std::shared_ptr<const Signature> signature = {};

  amps_executable* c() const { return executable.c(); }
  std::shared_ptr<const void> owner() const { return std::make_shared<Executable>(*this); }
};

// A list of a graph's or an executable's values, which keep it alive.
template <typename Holder, auto count, auto at>
std::vector<Value> values_of(const Holder& holder) {
  const std::shared_ptr<const void> owner = holder.owner();
  std::vector<Value> list;
  for (size_t i = 0; i < count(holder.c()); ++i) list.push_back({owner, at(holder.c(), i)});
  return list;
}

// Figures by their names.
inline nb::dict dict_of(std::initializer_list<std::pair<const char*, uint64_t>> figures) {
  nb::dict dict;
  for (const auto& [name, value] : figures) dict[name] = value;
  return dict;
}

// Runs fn without the interpreter's lock where this thread has it: what fn waits for may need it.
template <typename Fn>
void without_gil(Fn&& fn) {
  if (!Py_IsInitialized() || !PyGILState_Check()) return fn();
  const nb::gil_scoped_release unlocked;
  fn();
}

// A stream ends when its work has: feeds that go with the work need the interpreter's lock to give
// their memory back, so nobody may hold it meanwhile.
class Stream {
 public:
  explicit Stream(amps::Stream stream);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  amps::Stream& operator*() { return *stream_; }
  amps_stream* c() const { return stream_->c(); }

 private:
  std::optional<amps::Stream> stream_;
};

// The interpreter is about to end: waits for the work of all streams. From then on memory that only
// another thread could give back to Python is left to the system.
void finish_streams();
bool may_take_gil();

// Around os.fork, in the thread that forks: no other thread of the engine is on its way into the
// interpreter.
void before_fork();
void after_fork();

// Strings for the C interface, as many as the shape has elements.
struct StringList {
  StringList(const std::vector<nb::bytes>& strings, const std::vector<int64_t>& dims);
  std::vector<const char*> data;
  std::vector<size_t> sizes;
};

[[noreturn]] inline void invalid(const std::string& message) {
  throw amps::Error(AMPS_INVALID_ARGUMENT, message);
}

inline nb::bytes bytes_of(const std::string& bytes) {
  return nb::bytes(bytes.data(), bytes.size());
}

// For the C interface, where a NUL ends a text: one inside would cut off the rest. All names come
// through here.
inline const char* c_text(const std::string& text) {
  if (text.find('\0') != std::string::npos)
    invalid("[python] the name '" + std::string(text.c_str()) +
            "…' holds the character NUL, which ends a name");
  return text.c_str();
}

inline amps_dtype dtype_of(const std::string& name) {
  amps_dtype dtype;
  amps::check(amps_dtype_parse(c_text(name), &dtype));
  return dtype;
}

// A tensor over memory that a Python object owns: `release(context)` runs once, under the GIL, when
// the engine has done with it.
Tensor wrap(amps_device* device, amps_dtype dtype, const std::vector<int64_t>& dims,
            const std::vector<int64_t>& strides, void* data, bool readonly,
            void (*release)(void* context), void* context);
// A tensor over the memory of a numpy array of exactly this dtype, which it keeps; null: the array
// is of another, or its memory cannot be used as it is.
amps_tensor* plain_feed(PyObject* array, amps_dtype dtype, amps_device* device);
// Whether Python sees tensors of this dtype through the buffer protocol.
bool has_buffer(amps_dtype dtype);
// Fails unless the tensor has memory of its own that the host can read.
void need_host_memory(const Tensor& tensor);

// A tensor's memory as a view, and what lets go of it when the engine has done with the view. The
// memory goes back to Python as that of a tensor does.
amps_view view_of(const Tensor& tensor);
struct Held {
  explicit Held(
      const Tensor& tensor);  // keeps it until it is released, or goes without being taken
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  static void release(void* context);
  void* context() const { return tensor; }
  amps_tensor* tensor;
  bool taken = false;
};

// (name, kind as the op table calls it, value); `store` keeps what the result points to.
using Attributes = std::vector<std::tuple<std::string, std::string, nb::object>>;
std::vector<amps_attr> attrs_of(const Attributes& attrs, std::vector<amps::Attr>& store);

void bind_device(nb::module_& m);
void bind_dlpack(nb::class_<Tensor>& tensor);
void bind_executable(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_program(nb::module_& m);
void bind_tensor(nb::module_& m);

}  // namespace anymps::python
