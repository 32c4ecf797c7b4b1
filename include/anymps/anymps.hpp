// SPDX-License-Identifier: Apache-2.0
// AnyMPS for C++20: a header-only layer over the C interface. Handles are values, errors are
// exceptions, ops are methods:
//
//   amps::Graph g;
//   auto x = g.input("x", amps::DType::f32, {-1, 8});
//   g.outputs({g.softmax(x, {.axis = -1})});
//   auto e = amps::Device::get("cpu").compile(g);
//   std::vector<amps::Tensor> y = e.run({tensor});
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "anymps/anymps.h"

namespace amps {

class Error : public std::runtime_error {
 public:
  Error(amps_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  amps_status status() const { return status_; }

 private:
  amps_status status_;
};

inline void check(amps_status status) {
  if (status != AMPS_OK) throw Error(status, amps_last_error());
}

enum class DType {
  f32 = AMPS_F32,
  f16 = AMPS_F16,
  bf16 = AMPS_BF16,
  f64 = AMPS_F64,
  i8 = AMPS_I8,
  i16 = AMPS_I16,
  i32 = AMPS_I32,
  i64 = AMPS_I64,
  u8 = AMPS_U8,
  u16 = AMPS_U16,
  u32 = AMPS_U32,
  u64 = AMPS_U64,
  boolean = AMPS_BOOL,
  c64 = AMPS_C64,
  i4 = AMPS_I4,
  u4 = AMPS_U4,
  i2 = AMPS_I2,
  u2 = AMPS_U2,
  f8e4m3 = AMPS_F8E4M3,
  f8e5m2 = AMPS_F8E5M2,
  f8e4m3fnuz = AMPS_F8E4M3FNUZ,
  f8e5m2fnuz = AMPS_F8E5M2FNUZ,
  f8e8m0 = AMPS_F8E8M0,
  f4e2m1 = AMPS_F4E2M1,
  string = AMPS_STRING,
  c128 = AMPS_C128,
};
inline const char* name(DType dtype) { return amps_dtype_name(static_cast<amps_dtype>(dtype)); }
inline size_t size_of(DType dtype) { return amps_dtype_size(static_cast<amps_dtype>(dtype)); }
inline DType parse_dtype(const std::string& text) {
  amps_dtype dtype;
  check(amps_dtype_parse(text.c_str(), &dtype));
  return static_cast<DType>(dtype);
}

// Whether an element of this dtype is a T in memory. Those without a type in C++ (halves and
// narrower floats) and booleans are unsigned integers of their size.
template <typename T>
bool is_held_as(DType dtype) {
  if (sizeof(T) != size_of(dtype)) return false;
  switch (dtype) {
    case DType::f32:
    case DType::f64:
      return std::is_floating_point_v<T>;
    case DType::c64:
      return std::is_same_v<T, std::complex<float>>;
    case DType::c128:
      return std::is_same_v<T, std::complex<double>>;
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::i4:
    case DType::i2:
      return std::is_integral_v<T> && std::is_signed_v<T>;
    case DType::string:
      return false;
    default:
      return std::is_unsigned_v<T>;
  }
}

namespace detail {

struct Release {
  void operator()(amps_string* p) const { amps_string_release(p); }
  void operator()(amps_tensor* p) const { amps_tensor_release(p); }
  void operator()(amps_graph* p) const { amps_graph_release(p); }
  void operator()(amps_program* p) const { amps_program_release(p); }
  void operator()(amps_executable* p) const { amps_executable_release(p); }
  void operator()(amps_stream* p) const { amps_stream_release(p); }
  void operator()(amps_event* p) const { amps_event_release(p); }
  void operator()(amps_profiler* p) const { amps_profiler_release(p); }
  void operator()(amps_call* p) const { amps_call_release(p); }
};
template <typename T>
using Shared = std::shared_ptr<T>;
template <typename T>
Shared<T> own(T* pointer) {
  return Shared<T>(pointer, Release());
}
inline size_t element_count(const std::vector<int64_t>& shape) {
  size_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
  return count;
}
inline std::string take(amps_string* text) {
  std::unique_ptr<amps_string, Release> owned(text);
  return {amps_string_data(text), amps_string_size(text)};
}

}  // namespace detail

// An attribute of an op, as graph and eager calls take it.
struct Attr {
  using Variant =
      std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;
  std::string name;
  Variant value;
  Attr(std::string n, int64_t v) : name(std::move(n)), value(v) {}
  Attr(std::string n, int v) : name(std::move(n)), value(int64_t{v}) {}
  Attr(std::string n, bool v) : name(std::move(n)), value(int64_t{v}) {}
  Attr(std::string n, DType v) : name(std::move(n)), value(static_cast<int64_t>(v)) {}
  Attr(std::string n, double v) : name(std::move(n)), value(v) {}
  Attr(std::string n, const char* v) : name(std::move(n)), value(std::string(v)) {}
  Attr(std::string n, std::string v) : name(std::move(n)), value(std::move(v)) {}
  Attr(std::string n, std::vector<int64_t> v) : name(std::move(n)), value(std::move(v)) {}
  Attr(std::string n, std::vector<double> v) : name(std::move(n)), value(std::move(v)) {}

  amps_attr c() const {
    amps_attr attr{};
    attr.name = name.c_str();
    attr.kind = static_cast<amps_attr_kind>(value.index());
    if (const auto* i = std::get_if<int64_t>(&value)) attr.i = *i;
    if (const auto* f = std::get_if<double>(&value)) attr.f = *f;
    if (const auto* s = std::get_if<std::string>(&value)) attr.s = s->c_str();
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
      attr.ints = ints->data();
      attr.count = ints->size();
    }
    if (const auto* floats = std::get_if<std::vector<double>>(&value)) {
      attr.floats = floats->data();
      attr.count = floats->size();
    }
    return attr;
  }
};
using Attrs = std::vector<Attr>;

inline std::vector<amps_attr> c_attrs(const Attrs& attrs) {
  std::vector<amps_attr> list;
  for (const Attr& attr : attrs) list.push_back(attr.c());
  return list;
}

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(amps_tensor* tensor) : tensor_(detail::own(tensor)) {}  // takes it over
  explicit operator bool() const { return tensor_ != nullptr; }
  amps_tensor* c() const { return tensor_.get(); }

  DType dtype() const { return static_cast<DType>(amps_tensor_dtype(c())); }
  std::vector<int64_t> shape() const {
    const int64_t* dims = amps_tensor_dims(c());
    return {dims, dims + amps_tensor_rank(c())};
  }
  size_t bytes() const { return amps_tensor_bytes(c()); }
  void* data() const { return amps_tensor_data(c()); }  // the device's address
  void to_host(void* data, size_t bytes) const { check(amps_tensor_to_host(c(), data, bytes)); }
  template <typename T>
  std::vector<T> to_vector() const {
    if (tensor_ && !is_held_as<T>(dtype()))
      throw Error(AMPS_INVALID_ARGUMENT, std::string("[tensor] elements of dtype ") +
                                             name(dtype()) + " are not of the type asked for");
    std::vector<T> values(bytes() / sizeof(T));
    to_host(values.data(), values.size() * sizeof(T));
    return values;
  }
  std::vector<std::string> to_strings() const {
    std::vector<std::string> strings(detail::element_count(shape()));
    for (size_t i = 0; i < strings.size(); ++i) {
      const char* text = nullptr;
      size_t size = 0;
      check(amps_tensor_string(c(), static_cast<int64_t>(i), &text, &size));
      strings[i].assign(text, size);
    }
    return strings;
  }

  // Values that are not a single tensor: see amps_container.
  amps_container container() const { return amps_tensor_container(c()); }
  std::vector<Tensor> items() const {  // none: a tensor, or an optional that holds nothing
    std::vector<Tensor> list;
    for (int64_t i = 0; i < amps_tensor_item_count(c()); ++i) {
      amps_tensor* item = nullptr;
      check(amps_tensor_item(c(), static_cast<size_t>(i), &item));
      list.emplace_back(item);
    }
    return list;
  }

 private:
  detail::Shared<amps_tensor> tensor_;
};

// A value of a graph or an executable; lives as long as that.
class Value {
 public:
  Value() = default;
  Value(const amps_value* value) : value_(const_cast<amps_value*>(value)) {}  // NOLINT
  explicit operator bool() const { return value_ != nullptr; }
  amps_value* c() const { return value_; }
  std::string name() const { return amps_value_name(value_); }
  DType dtype() const { return static_cast<DType>(amps_value_dtype(value_)); }
  amps_container container() const { return amps_value_container(value_); }
  std::string op() const {  // the op that makes it; "": an input or a constant
    const amps_op* op = amps_value_op(value_);
    return op ? amps_op_name(op) : "";
  }
  bool ranked() const { return amps_value_rank(value_) >= 0; }
  std::vector<int64_t> shape() const {  // -1: dynamic
    std::vector<int64_t> dims;
    for (int64_t i = 0; i < amps_value_rank(value_); ++i)
      dims.push_back(amps_value_dim(value_, static_cast<size_t>(i)));
    return dims;
  }
  std::string dim_name(size_t axis) const {
    const char* text = amps_value_dim_name(value_, axis);
    return text ? text : "";
  }

 private:
  amps_value* value_ = nullptr;
};

}  // namespace amps

#define ANYMPS_HPP_INSIDE
#include "anymps/ops.hpp"
#undef ANYMPS_HPP_INSIDE

namespace amps {

class Graph : public OpMethods<Graph, Value> {
 public:
  using Value = amps::Value;
  explicit Graph(const std::string& name = "") {
    amps_graph* graph = nullptr;
    check(amps_graph_create(name.c_str(), &graph));
    graph_ = detail::own(graph);
  }
  // `inputs`: those with a default (see defaults()) that are to be fed.
  static Graph load(const std::string& path, const std::vector<std::string>& inputs = {}) {
    amps_graph* graph = nullptr;
    std::vector<const char*> names;
    for (const std::string& name : inputs) names.push_back(name.c_str());
    check(amps_graph_load_inputs(path.c_str(), names.data(), names.size(), &graph));
    return Graph(graph);
  }
  static Graph load(std::span<const std::byte> bytes, const std::string& name = "memory",
                    const std::vector<std::string>& inputs = {}) {
    amps_graph* graph = nullptr;
    std::vector<const char*> names;
    for (const std::string& input : inputs) names.push_back(input.c_str());
    check(amps_graph_load_memory_inputs(bytes.data(), bytes.size(), name.c_str(), names.data(),
                                        names.size(), &graph));
    return Graph(graph);
  }
  // What ExecuTorch hands to the delegate "MPSBackend"; the bytes must outlive what is made of
  // them.
  static Graph load_payload(std::span<const std::byte> bytes, const std::string& name,
                            const std::vector<int64_t>* dims = nullptr) {
    amps_graph* graph = nullptr;
    check(amps_graph_load_payload(bytes.data(), bytes.size(), name.c_str(),
                                  dims ? dims->data() : nullptr, dims ? dims->size() : 0, &graph));
    return Graph(graph);
  }
  void save(const std::string& path) const { check(amps_graph_save(c(), path.c_str())); }
  std::string bytes(const std::string& format = "mps") const {  // what the file would hold
    amps_string* bytes = nullptr;
    check(amps_graph_save_memory(c(), format.c_str(), &bytes));
    return detail::take(bytes);
  }
  // f16 or bf16 for products and what follows them; values of before are no longer valid.
  void set_precision(DType dtype) {
    check(amps_graph_set_precision(c(), static_cast<amps_dtype>(dtype)));
  }
  amps_graph* c() const { return graph_.get(); }

  // -1 is a dynamic extent; names (may be empty) say which extents are equal.
  Value input(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
              const std::vector<std::string>& dim_names = {}) {
    std::vector<const char*> names(shape.size(), nullptr);
    for (size_t i = 0; i < dim_names.size() && i < names.size(); ++i)
      names[i] = dim_names[i].c_str();
    amps_value* value = nullptr;
    check(amps_graph_input(c(), name.c_str(), static_cast<amps_dtype>(dtype), shape.size(),
                           shape.data(), names.data(), &value));
    return value;
  }
  Value constant(DType dtype, const std::vector<int64_t>& shape, const void* data,
                 const std::string& name = "") {
    amps_value* value = nullptr;
    check(amps_graph_constant(c(), name.c_str(), static_cast<amps_dtype>(dtype), shape.size(),
                              shape.data(), data, &value));
    return value;
  }
  Value constant(const std::vector<int64_t>& shape, const std::vector<float>& data) {
    if (detail::element_count(shape) != data.size())
      throw Error(AMPS_INVALID_ARGUMENT, "[constant] the shape does not fit the data");
    return constant(DType::f32, shape, data.data());
  }
  // Over the caller's memory, without a copy; Executable::refresh tells that it has changed. It
  // must outlive what is made of it, unless `release` says when it is no longer needed.
  Value constant_view(DType dtype, const std::vector<int64_t>& shape, const void* data,
                      const std::string& name = "", void (*release)(void*) = nullptr,
                      void* context = nullptr) {
    const amps_view view{const_cast<void*>(data), shape.data(), nullptr,
                         static_cast<amps_dtype>(dtype), static_cast<int32_t>(shape.size())};
    amps_value* value = nullptr;
    check(amps_graph_constant_view(c(), name.c_str(), &view, release, context, &value));
    return value;
  }
  Value scalar(float value) { return constant(DType::f32, {}, &value); }

  // Any op by its name; the methods inherited from OpMethods are the typed form.
  std::vector<Value> op(const std::string& op_name, const std::vector<Value>& inputs,
                        const Attrs& attrs = {}, const char* name = nullptr, size_t outputs = 1) {
    const amps_op* record = amps_op_find(op_name.c_str());
    if (!record) throw Error(AMPS_NOT_FOUND, "[op] there is no op '" + op_name + "'");
    std::vector<amps_value*> in, out(outputs);
    for (const Value& value : inputs) in.push_back(value.c());
    const std::vector<amps_attr> list = c_attrs(attrs);
    check(amps_graph_op(c(), record, in.data(), in.size(), list.data(), list.size(), name,
                        out.data(), out.size()));
    return {out.begin(), out.end()};
  }
  // An op with its attributes, as Eager::bind.
  auto bind(std::string op_name, Attrs attrs = {}, size_t outputs = 1) {
    return [this, op_name = std::move(op_name), attrs = std::move(attrs),
            outputs](const std::vector<Value>& inputs) {
      return op(op_name, inputs, attrs, nullptr, outputs);
    };
  }
  // The gradient of y (of the sum of its elements) to each of xs, as further values of the graph.
  std::vector<Value> gradient(const Value& y, const std::vector<Value>& xs) {
    return gradients(y, nullptr, xs);
  }
  // The same of sum(seed * y).
  std::vector<Value> gradient(const Value& y, const std::vector<Value>& xs, const Value& seed) {
    return gradients(y, seed.c(), xs);
  }
  void outputs(const std::vector<Value>& values) {
    std::vector<amps_value*> list;
    for (const Value& value : values) list.push_back(value.c());
    check(amps_graph_set_outputs(c(), list.data(), list.size()));
  }
  std::vector<Value> inputs() const {
    std::vector<Value> list;
    for (size_t i = 0; i < amps_graph_input_count(c()); ++i)
      list.emplace_back(amps_graph_input_at(c(), i));
    return list;
  }
  // Inputs that the file gives a value and that are constants here.
  std::vector<Value> defaults() const {
    std::vector<Value> list;
    for (size_t i = 0; i < amps_graph_default_count(c()); ++i)
      list.emplace_back(amps_graph_default_at(c(), i));
    return list;
  }
  std::vector<Value> outputs() const {
    std::vector<Value> list;
    for (size_t i = 0; i < amps_graph_output_count(c()); ++i)
      list.emplace_back(amps_graph_output_at(c(), i));
    return list;
  }
  std::vector<Value> values() const {  // inputs, constants and what the nodes make
    std::vector<amps_value*> list(amps_graph_values(c(), nullptr, 0));
    amps_graph_values(c(), list.data(), list.size());
    return {list.begin(), list.end()};
  }
  std::string text(const std::string& format = "text") const {
    amps_string* text = nullptr;
    check(amps_graph_text(c(), format.c_str(), &text));
    return detail::take(text);
  }

 private:
  friend class Program;
  explicit Graph(amps_graph* graph) : graph_(detail::own(graph)) {}
  std::vector<Value> gradients(const Value& y, amps_value* seed, const std::vector<Value>& xs) {
    std::vector<amps_value*> in, out(xs.size());
    for (const Value& x : xs) in.push_back(x.c());
    check(amps_graph_gradient_seeded(c(), y.c(), seed, in.data(), in.size(), out.data()));
    return {out.begin(), out.end()};
  }
  detail::Shared<amps_graph> graph_;
};

class Event {
 public:
  explicit Event(amps_event* event) : event_(detail::own(event)) {}
  amps_event* c() const { return event_.get(); }
  bool done() const { return amps_event_done(c()) != 0; }
  void synchronize() const { check(amps_event_synchronize(c())); }
  double milliseconds_until(const Event& end) const {
    double passed = 0;
    check(amps_event_elapsed(c(), end.c(), &passed));
    return passed;
  }

 private:
  detail::Shared<amps_event> event_;
};

class Stream {
 public:
  explicit Stream(amps_stream* stream) : stream_(detail::own(stream)) {}
  amps_stream* c() const { return stream_.get(); }
  void synchronize() { check(amps_stream_synchronize(c())); }
  void wait(const Event& event) { check(amps_stream_wait(c(), event.c())); }
  Event record() {
    amps_event* event = nullptr;
    check(amps_stream_record(c(), &event));
    return Event(event);
  }

 private:
  detail::Shared<amps_stream> stream_;
};

class Profiler {
 public:
  Profiler() {
    amps_profiler* profiler = nullptr;
    check(amps_profiler_create(&profiler));
    profiler_ = detail::own(profiler);
  }
  amps_profiler* c() const { return profiler_.get(); }
  void reset() { check(amps_profiler_reset(c())); }
  std::string text(const std::string& format = "table") const {
    amps_string* text = nullptr;
    check(amps_profiler_text(c(), format.c_str(), &text));
    return detail::take(text);
  }

 private:
  detail::Shared<amps_profiler> profiler_;
};

struct CompileOptions {
  int threads = 0;
  int optimization_level = 1;
  bool check = false;
  size_t plan_cache = 0;
  std::string without_passes;
  std::vector<amps_alias> aliases;  // results that may lie in the memory of feeds
  amps_denormals denormals = AMPS_DENORMALS_DEFAULT;
  std::string quantize;  // "int8" or "int4": large weights in few bits; empty: as they are

  amps_compile_options c() const {
    return {sizeof(amps_compile_options),
            threads,
            optimization_level,
            check,
            plan_cache,
            without_passes.c_str(),
            aliases.data(),
            aliases.size(),
            denormals,
            quantize.c_str()};
  }
};

class Executable {
 public:
  explicit Executable(amps_executable* executable) : executable_(detail::own(executable)) {}
  amps_executable* c() const { return executable_.get(); }

  std::vector<Tensor> run(const std::vector<Tensor>& feeds, Stream* stream = nullptr,
                          Profiler* profiler = nullptr) const {
    std::vector<Tensor> results;
    run(feeds, results, stream, profiler);
    return results;
  }
  // Results that are there already are written to.
  void run(const std::vector<Tensor>& feeds, std::vector<Tensor>& results, Stream* stream = nullptr,
           Profiler* profiler = nullptr) const {
    with_handles(feeds, results, [&](auto& in, auto& out) {
      check(amps_executable_run(c(), in.data(), in.size(), out.data(), out.size(),
                                stream ? stream->c() : nullptr,
                                profiler ? profiler->c() : nullptr));
    });
  }
  std::vector<Tensor> submit(const std::vector<Tensor>& feeds, Stream& stream) const {
    std::vector<Tensor> results;
    with_handles(feeds, results, [&](auto& in, auto& out) {
      check(amps_executable_submit(c(), in.data(), in.size(), out.data(), out.size(), stream.c()));
    });
    return results;
  }

  std::vector<Value> inputs() const {
    std::vector<Value> list;
    for (size_t i = 0; i < amps_executable_input_count(c()); ++i)
      list.emplace_back(amps_executable_input_at(c(), i));
    return list;
  }
  std::vector<Value> outputs() const {
    std::vector<Value> list;
    for (size_t i = 0; i < amps_executable_output_count(c()); ++i)
      list.emplace_back(amps_executable_output_at(c(), i));
    return list;
  }
  // The shapes of the results for feeds of these shapes, without a run. -1: depends on the feeds'
  // elements; nullopt: not even the rank is known.
  std::vector<std::optional<std::vector<int64_t>>> result_shapes(
      const std::vector<std::vector<int64_t>>& feeds) const {
    if (feeds.size() != amps_executable_input_count(c()))
      throw Error(AMPS_INVALID_ARGUMENT, "[run] one shape a feed is needed");
    std::vector<size_t> feed_ranks;
    std::vector<int64_t> feed_dims(1), ranks(amps_executable_output_count(c())), dims(32);
    feed_dims.clear();
    for (const std::vector<int64_t>& feed : feeds) {
      feed_ranks.push_back(feed.size());
      feed_dims.insert(feed_dims.end(), feed.begin(), feed.end());
    }
    for (size_t count = 0;; dims.resize(count)) {
      check(amps_executable_result_dims_for(c(), feed_ranks.data(), feed_ranks.size(),
                                            feed_dims.data(), feed_dims.size(), ranks.data(),
                                            ranks.size(), dims.data(), dims.size(), &count));
      if (count <= dims.size()) break;
    }
    std::vector<std::optional<std::vector<int64_t>>> shapes;
    const int64_t* next = dims.data();
    for (const int64_t rank : ranks) {
      if (rank < 0) {
        shapes.emplace_back();
        continue;
      }
      shapes.emplace_back(std::in_place, next, next + rank);
      next += rank;
    }
    return shapes;
  }
  std::string text(const std::string& format, const std::vector<int64_t>& feed_dims = {}) const {
    amps_string* text = nullptr;
    check(amps_executable_text_for(c(), format.c_str(), feed_dims.data(), feed_dims.size(), &text));
    return detail::take(text);
  }
  void save(const std::string& path) const { check(amps_executable_save(c(), path.c_str())); }
  std::string bytes() const {  // what the file would hold
    amps_string* bytes = nullptr;
    check(amps_executable_save_memory(c(), &bytes));
    return detail::take(bytes);
  }
  // The same with dimensions bound by their names: e.bind({{"N", 5}}).run(feeds).
  Executable bind(const std::vector<std::pair<std::string, int64_t>>& values) const {
    std::vector<amps_binding> list;
    for (const auto& [name, value] : values) list.push_back({name.c_str(), value});
    amps_executable* bound = nullptr;
    check(amps_executable_bind(c(), list.data(), list.size(), &bound));
    return Executable(bound);
  }
  // Constants of Graph::constant_view have changed where they lie. `write` changes them while no
  // run reads them; it must not throw.
  void refresh(const std::vector<std::string>& names) const {
    refresh_with(names, nullptr, nullptr);
  }
  template <typename Write>
  void refresh(const std::vector<std::string>& names, Write&& write) const {
    refresh_with(
        names, [](void* given) { (*static_cast<std::remove_reference_t<Write>*>(given))(); },
        &write);
  }
  bool stateful() const { return amps_executable_stateful(c()) != 0; }
  void clear_plans() { check(amps_executable_clear_plans(c())); }

 private:
  void refresh_with(const std::vector<std::string>& names, void (*write)(void*),
                    void* context) const {
    std::vector<amps_update> updates;
    for (const std::string& name : names)
      updates.push_back({name.c_str(), nullptr, nullptr, nullptr});
    check(amps_executable_refresh(c(), updates.data(), updates.size(), write, context));
  }
  template <typename Fn>
  void with_handles(const std::vector<Tensor>& feeds, std::vector<Tensor>& results, Fn&& fn) const {
    std::vector<amps_tensor*> in, out(amps_executable_output_count(c()), nullptr);
    for (const Tensor& feed : feeds) in.push_back(feed.c());
    results.resize(out.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = results[i].c();
    fn(in, out);
    for (size_t i = 0; i < out.size(); ++i)
      if (!results[i]) results[i] = Tensor(out[i]);
  }

  detail::Shared<amps_executable> executable_;
};

class Device {
 public:
  static Device get(const std::string& name = "") {
    amps_device* device = nullptr;
    check(amps_device_get(name.c_str(), &device));
    return Device(device);
  }
  static std::vector<std::string> names() {
    std::vector<std::string> list;
    for (size_t i = 0; i < amps_device_count(); ++i) list.emplace_back(amps_device_name_at(i));
    return list;
  }
  amps_device* c() const { return device_; }
  std::string name() const { return amps_device_name(device_); }
  std::string description() const { return amps_device_description(device_); }
  int max_threads() const { return amps_device_max_threads(device_); }
  void set_max_threads(int threads) const { check(amps_device_set_max_threads(device_, threads)); }
  struct ThreadTimes {
    double helped = 0, waited = 0;  // seconds, see amps_device_thread_times
  };
  ThreadTimes thread_times() const {
    ThreadTimes times;
    check(amps_device_thread_times(device_, &times.helped, &times.waited));
    return times;
  }
  // Calls fn(0) … fn(count - 1) on up to this many of the device's threads, and throws what the
  // first that failed threw. A run inside has its thread alone.
  template <typename Fn>
  void parallel(size_t count, int threads, Fn&& fn) const {
    struct Context {
      std::remove_reference_t<Fn>* fn;
      std::mutex mutex;
      std::exception_ptr error;
    } context{&fn, {}, nullptr};
    check(amps_device_parallel(
        device_, count, threads,
        [](void* given, size_t index) {
          auto& to = *static_cast<Context*>(given);
          try {
            (*to.fn)(index);
          } catch (...) {
            const std::lock_guard lock(to.mutex);
            if (!to.error) to.error = std::current_exception();
          }
        },
        &context));
    if (context.error) std::rethrow_exception(context.error);
  }

  Tensor empty(DType dtype, const std::vector<int64_t>& shape) const {
    amps_tensor* tensor = nullptr;
    check(amps_tensor_empty(device_, static_cast<amps_dtype>(dtype), shape.size(), shape.data(),
                            &tensor));
    return Tensor(tensor);
  }
  Tensor from_host(DType dtype, const std::vector<int64_t>& shape, const void* data) const {
    amps_tensor* tensor = nullptr;
    check(amps_tensor_from_host(device_, static_cast<amps_dtype>(dtype), shape.size(), shape.data(),
                                nullptr, data, &tensor));
    return Tensor(tensor);
  }
  Tensor from_strings(const std::vector<int64_t>& shape,
                      const std::vector<std::string>& strings) const {
    if (detail::element_count(shape) != strings.size())
      throw Error(AMPS_INVALID_ARGUMENT, "[tensor] the shape does not fit the strings");
    std::vector<const char*> data;
    std::vector<size_t> sizes;
    for (const std::string& text : strings) {
      data.push_back(text.data());
      sizes.push_back(text.size());
    }
    amps_tensor* tensor = nullptr;
    check(amps_tensor_from_strings(device_, shape.size(), shape.data(), data.data(), sizes.data(),
                                   &tensor));
    return Tensor(tensor);
  }
  Tensor list(DType dtype, const std::vector<Tensor>& items) const {
    std::vector<amps_tensor*> handles;
    for (const Tensor& item : items) handles.push_back(item.c());
    amps_tensor* made = nullptr;
    check(amps_tensor_list(device_, AMPS_SEQUENCE, static_cast<amps_dtype>(dtype), handles.data(),
                           handles.size(), &made));
    return Tensor(made);
  }
  // Without a copy; the memory must outlive the tensor.
  Tensor wrap(DType dtype, const std::vector<int64_t>& shape, void* data) const {
    amps_tensor* tensor = nullptr;
    check(amps_tensor_wrap(device_, static_cast<amps_dtype>(dtype), shape.size(), shape.data(),
                           nullptr, data, nullptr, nullptr, &tensor));
    return Tensor(tensor);
  }
  Executable compile(const Graph& graph, const CompileOptions& options = {}) const {
    const amps_compile_options c_options = options.c();
    amps_executable* executable = nullptr;
    check(amps_compile(device_, graph.c(), &c_options, &executable));
    return Executable(executable);
  }
  Executable load(const std::string& path, const CompileOptions& options = {}) const {
    const amps_compile_options c_options = options.c();
    amps_executable* executable = nullptr;
    check(amps_executable_load(device_, path.c_str(), &c_options, &executable));
    return Executable(executable);
  }
  Executable load(std::span<const std::byte> bytes, const CompileOptions& options = {},
                  const std::string& name = "memory") const {
    const amps_compile_options c_options = options.c();
    amps_executable* executable = nullptr;
    check(amps_executable_load_memory(device_, bytes.data(), bytes.size(), name.c_str(), &c_options,
                                      &executable));
    return Executable(executable);
  }
  Stream create_stream() const {
    amps_stream* stream = nullptr;
    check(amps_stream_create(device_, &stream));
    return Stream(stream);
  }
  // One op at once, without a graph.
  std::vector<Tensor> eager(const std::string& op_name, const std::vector<Tensor>& inputs,
                            const Attrs& attrs = {}, size_t outputs = 1) const {
    const amps_op* record = amps_op_find(op_name.c_str());
    if (!record) throw Error(AMPS_NOT_FOUND, "[op] there is no op '" + op_name + "'");
    std::vector<amps_tensor*> in, out(outputs, nullptr);
    for (const Tensor& tensor : inputs) in.push_back(tensor.c());
    const std::vector<amps_attr> list = c_attrs(attrs);
    check(amps_eager(device_, record, in.data(), in.size(), list.data(), list.size(), out.data(),
                     out.size()));
    std::vector<Tensor> results;
    for (amps_tensor* tensor : out) results.emplace_back(tensor);
    return results;
  }
  amps_memory_stats memory() const {
    amps_memory_stats stats{};
    stats.size = sizeof(stats);
    check(amps_device_memory_stats(device_, &stats));
    return stats;
  }
  void empty_cache() const { check(amps_device_empty_cache(device_)); }
  void trim() const { check(amps_device_trim(device_)); }
  void synchronize() const { check(amps_device_synchronize(device_)); }

 private:
  explicit Device(amps_device* device) : device_(device) {}
  amps_device* device_;
};

// The builder that computes at once: the methods of a Graph, on tensors. One function serves both:
//
//   template <typename Builder>
//   auto gate(Builder& b, typename Builder::Value x, typename Builder::Value w) {
//     return b.mul(x, b.sigmoid(b.matmul(x, w)));
//   }
//   amps::Eager e(device);  gate(e, x, w);      // tensors in, a tensor out
//   amps::Graph g;          gate(g, g.input(…), g.constant(…));
class Eager : public OpMethods<Eager, Tensor> {
 public:
  using Value = Tensor;

  explicit Eager(Device device) : device_(device) {}
  const Device& device() const { return device_; }

  Value constant(DType dtype, const std::vector<int64_t>& shape, const void* data,
                 const std::string& = "") const {
    return device_.from_host(dtype, shape, data);
  }
  Value constant(const std::vector<int64_t>& shape, const std::vector<float>& data) const {
    if (detail::element_count(shape) != data.size())
      throw Error(AMPS_INVALID_ARGUMENT, "[constant] the shape does not fit the data");
    return constant(DType::f32, shape, data.data());
  }
  Value scalar(float value) const { return constant(DType::f32, {}, &value); }

  // Any op by its name; the name of a node means nothing here.
  std::vector<Value> op(const std::string& op_name, const std::vector<Value>& inputs,
                        const Attrs& attrs = {}, const char* = nullptr, size_t outputs = 1) const {
    return device_.eager(op_name, inputs, attrs, outputs);
  }
  // An op whose attributes are checked once, for tensors of numbers that come again and again:
  //   const auto norm = b.bind("softmax", {{"axis", -1}});  …  norm({x})[0]
  auto bind(const std::string& op_name, const Attrs& attrs = {}, size_t outputs = 1) const {
    const amps_op* record = amps_op_find(op_name.c_str());
    if (!record) throw Error(AMPS_NOT_FOUND, "[op] there is no op '" + op_name + "'");
    const std::vector<amps_attr> list = c_attrs(attrs);
    amps_call* made = nullptr;
    check(amps_call_create(device_.c(), record, list.data(), list.size(), nullptr, 0, &made));
    return [call = detail::own(made), device = device_, outputs](const std::vector<Value>& inputs) {
      std::vector<amps_view> in, out;
      for (const Value& input : inputs) in.push_back(view_of(input));
      std::vector<amps_type> types(outputs);
      check(amps_call_infer(call.get(), in.data(), in.size(), types.data(), types.size()));
      std::vector<Value> results;
      for (const amps_type& type : types) {
        results.push_back(
            device.empty(static_cast<DType>(type.dtype), {type.dims, type.dims + type.rank}));
        out.push_back(view_of(results.back()));
      }
      check(amps_call_run(call.get(), in.data(), in.size(), nullptr, out.data(), out.size(),
                          nullptr));
      return results;
    };
  }

 private:
  static amps_view view_of(const Value& tensor) {
    if (!tensor) return {nullptr, nullptr, nullptr, AMPS_F32, -1};
    return {tensor.data(), amps_tensor_dims(tensor.c()), amps_tensor_strides(tensor.c()),
            amps_tensor_dtype(tensor.c()), static_cast<int32_t>(amps_tensor_rank(tensor.c()))};
  }

  Device device_;
};

// A file of ExecuTorch (.pte), or a bundle of one with test cases. An empty method name means
// "forward", or the only one.
class Program {
 public:
  static Program open(const std::string& path) {
    amps_program* program = nullptr;
    check(amps_program_open(path.c_str(), &program));
    return Program(program);
  }
  static Program open(std::span<const std::byte> bytes, const std::string& name = "memory") {
    amps_program* program = nullptr;
    check(amps_program_open_memory(bytes.data(), bytes.size(), name.c_str(), &program));
    return Program(program);
  }
  amps_program* c() const { return program_.get(); }

  std::vector<std::string> methods() const {
    std::vector<std::string> list;
    for (size_t i = 0; i < amps_program_method_count(c()); ++i)
      list.emplace_back(amps_program_method_at(c(), i));
    return list;
  }
  Graph graph(const std::string& method = "") const {
    amps_graph* graph = nullptr;
    check(amps_program_graph(c(), text_or_null(method), &graph));
    return Graph(graph);
  }

  struct Delegate {
    std::string backend;
    size_t index;
  };
  std::vector<Delegate> delegates(const std::string& method = "") const {
    size_t count = 0;
    check(amps_program_delegate_count(c(), text_or_null(method), &count));
    std::vector<Delegate> list;
    for (size_t i = 0; i < count; ++i) {
      const char* backend = nullptr;
      check(amps_program_delegate_backend(c(), text_or_null(method), i, &backend));
      list.push_back({backend, i});
    }
    return list;
  }
  // The raw bytes of an option of a delegate's compilation; "" if it is not set.
  std::string delegate_option(size_t index, const std::string& key,
                              const std::string& method = "") const {
    amps_string* value = nullptr;
    check(amps_program_delegate_option(c(), text_or_null(method), index, key.c_str(), &value));
    return value ? detail::take(value) : "";
  }

  size_t test_count(const std::string& method = "") const {
    size_t count = 0;
    check(amps_program_test_count(c(), text_or_null(method), &count));
    return count;
  }
  std::vector<Tensor> test_inputs(size_t test, const Device& device,
                                  const std::string& method = "") const {
    return test_tensors(test, AMPS_TEST_INPUTS, device, method);
  }
  std::vector<Tensor> test_outputs(size_t test, const Device& device,
                                   const std::string& method = "") const {
    return test_tensors(test, AMPS_TEST_OUTPUTS, device, method);
  }
  std::string text(const std::string& format = "text") const {
    amps_string* text = nullptr;
    check(amps_program_text(c(), format.c_str(), &text));
    return detail::take(text);
  }

 private:
  explicit Program(amps_program* program) : program_(detail::own(program)) {}
  static const char* text_or_null(const std::string& text) {
    return text.empty() ? nullptr : text.c_str();
  }
  std::vector<Tensor> test_tensors(size_t test, amps_test_side side, const Device& device,
                                   const std::string& method) const {
    size_t count = 0;
    check(amps_program_test_size(c(), text_or_null(method), test, side, &count));
    std::vector<Tensor> list;
    for (size_t i = 0; i < count; ++i) {
      amps_tensor* tensor = nullptr;
      check(
          amps_program_test_tensor(c(), text_or_null(method), test, side, i, device.c(), &tensor));
      list.emplace_back(tensor);
    }
    return list;
  }

  detail::Shared<amps_program> program_;
};

inline std::string ops_text(const std::string& format) {
  amps_string* text = nullptr;
  check(amps_ops_text(format.c_str(), &text));
  return detail::take(text);
}
// Aside, and in place of an old file when it is complete: see amps_file_write.
inline void write_file(const std::string& path, std::initializer_list<std::string_view> parts) {
  std::vector<amps_bytes> list;
  for (const std::string_view part : parts) list.push_back({part.data(), part.size()});
  check(amps_file_write(path.c_str(), list.data(), list.size()));
}
inline std::string doctor() {
  amps_string* text = nullptr;
  check(amps_doctor(&text));
  return detail::take(text);
}

}  // namespace amps
