// SPDX-License-Identifier: Apache-2.0
// Graphs and their values.
#include "core.h"

namespace anymps::python {

namespace {

using Aliases = std::vector<std::pair<size_t, size_t>>;  // results and the feeds that they lie in

Graph own(amps_graph* graph) { return {amps::detail::own(graph)}; }

std::vector<const char*> c_names(const std::vector<std::string>& names) {
  std::vector<const char*> list;
  for (const std::string& name : names) list.push_back(c_text(name));
  return list;
}

Graph load(const std::string& path, const std::vector<std::string>& inputs) {
  amps_graph* graph = nullptr;
  const std::vector<const char*> names = c_names(inputs);
  {
    nb::gil_scoped_release unlocked;
    amps::check(amps_graph_load_inputs(c_text(path), names.data(), names.size(), &graph));
  }
  return own(graph);
}

Graph load_memory(nb::bytes data, const std::string& name, const std::vector<std::string>& inputs) {
  amps_graph* graph = nullptr;
  const std::vector<const char*> names = c_names(inputs);
  const char* bytes = data.c_str();
  const size_t size = data.size();
  {
    nb::gil_scoped_release unlocked;
    amps::check(amps_graph_load_memory_inputs(bytes, size, c_text(name), names.data(), names.size(),
                                              &graph));
  }
  return own(graph);
}

std::vector<amps_value*> handles(const Graph& graph,
                                 const std::vector<std::optional<Value>>& values) {
  std::vector<amps_value*> list;
  for (const auto& value : values) {
    if (value && value->owner != graph.graph)
      invalid("[graph] the value '" + std::string(amps_value_name(value->value)) +
              "' belongs to another graph");
    list.push_back(value ? value->c() : nullptr);
  }
  return list;
}

std::vector<Value> add_op(const Graph& graph, const std::string& op,
                          const std::vector<std::optional<Value>>& inputs, const Attributes& attrs,
                          const std::string& name, size_t outputs) {
  const amps_op* record = amps_op_find(c_text(op));
  if (!record) throw amps::Error(AMPS_NOT_FOUND, "[op] there is no op '" + op + "'");
  const std::vector<amps_value*> in = handles(graph, inputs);
  std::vector<amps_value*> out(outputs);
  std::vector<amps::Attr> store;
  const std::vector<amps_attr> list = attrs_of(attrs, store);
  amps::check(amps_graph_op(graph.c(), record, in.data(), in.size(), list.data(), list.size(),
                            c_text(name), out.data(), out.size()));
  std::vector<Value> values;
  for (const amps_value* value : out) values.push_back(graph.value(value));
  return values;
}

Value add_input(const Graph& graph, const std::string& name, const std::string& dtype,
                const std::vector<int64_t>& dims,
                const std::vector<std::optional<std::string>>& names) {
  std::vector<const char*> texts(dims.size(), nullptr);
  for (size_t i = 0; i < names.size() && i < texts.size(); ++i)
    if (names[i]) texts[i] = c_text(*names[i]);
  amps_value* value = nullptr;
  amps::check(amps_graph_input(graph.c(), c_text(name), dtype_of(dtype), dims.size(), dims.data(),
                               texts.data(), &value));
  return graph.value(value);
}

// The tensor must be contiguous: Python makes it so.
Value add_constant(const Graph& graph, const std::string& name, const Tensor& tensor) {
  need_host_memory(tensor);
  amps_tensor* c = tensor.c();
  amps_value* value = nullptr;
  amps::check(amps_graph_constant(graph.c(), c_text(name), amps_tensor_dtype(c),
                                  amps_tensor_rank(c), amps_tensor_dims(c), amps_tensor_data(c),
                                  &value));
  return graph.value(value);
}

// Over the tensor's memory.
Value add_constant_view(const Graph& graph, const std::string& name, const Tensor& tensor) {
  need_host_memory(tensor);
  const amps_view view = view_of(tensor);
  Held held(tensor);
  amps_value* value = nullptr;
  amps::check(amps_graph_constant_view(graph.c(), c_text(name), &view, Held::release,
                                       held.context(), &value));
  held.taken = true;
  return graph.value(value);
}

std::vector<Value> gradient(const Graph& graph, const Value& y, const std::vector<Value>& xs,
                            const std::optional<Value>& seed) {
  std::vector<std::optional<Value>> all(xs.begin(), xs.end());
  all.emplace_back(y);
  all.push_back(seed);
  const std::vector<amps_value*> in = handles(graph, all);
  std::vector<amps_value*> grads(xs.size());
  amps_value* const from = in[xs.size()];
  amps_value* const weight = in[xs.size() + 1];
  amps::check(weight ? amps_graph_gradient_seeded(graph.c(), from, weight, in.data(), xs.size(),
                                                  grads.data())
                     : amps_graph_gradient(graph.c(), from, in.data(), xs.size(), grads.data()));
  std::vector<Value> values;
  for (const amps_value* value : grads) values.push_back(graph.value(value));
  return values;
}

Value add_list_input(const Graph& graph, const std::string& name, int container,
                     const std::string& dtype) {
  amps_value* value = nullptr;
  amps::check(amps_graph_list_input(graph.c(), c_text(name), static_cast<amps_container>(container),
                                    dtype_of(dtype), &value));
  return graph.value(value);
}

Value add_string_constant(const Graph& graph, const std::string& name,
                          const std::vector<int64_t>& dims, const std::vector<nb::bytes>& strings) {
  const StringList list(strings, dims);
  amps_value* value = nullptr;
  amps::check(amps_graph_string_constant(graph.c(), c_text(name), dims.size(), dims.data(),
                                         list.data.data(), list.sizes.data(), &value));
  return graph.value(value);
}

}  // namespace

std::vector<amps_attr> attrs_of(const Attributes& attrs, std::vector<amps::Attr>& store) {
  std::vector<std::pair<size_t, const amps_graph*>> bodies;
  for (const auto& [name, kind, value] : attrs) {
    if (kind == "float")
      store.emplace_back(name, nb::cast<double>(value));
    else if (kind == "string")
      store.emplace_back(name, c_text(nb::cast<std::string>(value)));
    else if (kind == "ints")
      store.emplace_back(name, nb::cast<std::vector<int64_t>>(value));
    else if (kind == "floats")
      store.emplace_back(name, nb::cast<std::vector<double>>(value));
    else if (kind == "dtype")
      store.emplace_back(name, static_cast<int64_t>(dtype_of(nb::cast<std::string>(value))));
    else if (kind == "graph") {
      bodies.emplace_back(store.size(), nb::cast<const Graph&>(value).c());
      store.emplace_back(name, int64_t{0});
    } else if (kind == "int" || kind == "bool")
      store.emplace_back(name, nb::cast<int64_t>(value));
    else
      throw amps::Error(AMPS_UNSUPPORTED, "[op] the attribute '" + name + "' is of the kind " +
                                              kind + ", which Python cannot give");
  }
  std::vector<amps_attr> list = amps::c_attrs(store);
  for (const auto& [index, body] : bodies) {
    list[index].kind = AMPS_ATTR_GRAPH;
    list[index].graph = body;
  }
  return list;
}

void bind_graph(nb::module_& m) {
  nb::class_<Value>(m, "Value")
      .def_prop_ro("name", [](const Value& v) { return amps_value_name(v.value); })
      .def_prop_ro("dtype",
                   [](const Value& v) { return amps_dtype_name(amps_value_dtype(v.value)); })
      .def_prop_ro("_container",
                   [](const Value& v) { return static_cast<int>(amps_value_container(v.value)); })
      .def_prop_ro(
          "shape",
          [](const Value& v) -> nb::object {
            const int64_t rank = amps_value_rank(v.value);
            if (rank < 0) return nb::none();
            nb::list dims;
            for (int64_t i = 0; i < rank; ++i) {
              const int64_t extent = amps_value_dim(v.value, i);
              const char* name = amps_value_dim_name(v.value, i);
              if (extent >= 0)
                dims.append(extent);
              else if (name && *name)
                dims.append(nb::str(name));
              else
                dims.append(nb::none());
            }
            return nb::tuple(dims);
          },
          "A tuple of numbers, of names of dynamic extents, or None where nothing is "
          "known; None while the rank is not known.")
      .def("_same", [](const Value& v, const Value& other) { return v.value == other.value; })
      .def("_id", [](const Value& v) { return reinterpret_cast<uintptr_t>(v.value); });
  nb::class_<Graph>(m, "Graph")
      .def(nb::new_([](const std::string& name) {
             amps_graph* graph = nullptr;
             amps::check(amps_graph_create(c_text(name), &graph));
             return own(graph);
           }),
           nb::arg("name") = "")
      .def_static("load", load)
      .def_static("load_memory", load_memory)
      .def("save",
           [](const Graph& g, const std::string& path) {
             amps::check(amps_graph_save(g.c(), c_text(path)));
           })
      .def("bytes",
           [](const Graph& g, const std::string& format) {
             amps_string* bytes = nullptr;
             without_gil(
                 [&] { amps::check(amps_graph_save_memory(g.c(), c_text(format), &bytes)); });
             return bytes_of(amps::detail::take(bytes));
           })
      .def("input", add_input)
      .def("list_input", add_list_input)
      .def("constant", add_constant)
      .def("constant_view", add_constant_view)
      .def("string_constant", add_string_constant)
      .def("op", add_op)
      .def("set_outputs",
           [](const Graph& g, const std::vector<std::optional<Value>>& values) {
             const std::vector<amps_value*> list = handles(g, values);
             amps::check(amps_graph_set_outputs(g.c(), list.data(), list.size()));
           })
      .def("gradient", gradient, nb::arg("y"), nb::arg("xs"), nb::arg("seed").none())
      .def("owns", [](const Graph& g, const Value& v) { return v.owner == g.graph; })
      .def_prop_ro("inputs", values_of<Graph, amps_graph_input_count, amps_graph_input_at>)
      .def_prop_ro("defaults", values_of<Graph, amps_graph_default_count, amps_graph_default_at>)
      .def_prop_ro("outputs", values_of<Graph, amps_graph_output_count, amps_graph_output_at>)
      .def("text",
           [](const Graph& g, const std::string& format) {
             amps_string* text = nullptr;
             amps::check(amps_graph_text(g.c(), c_text(format), &text));
             return amps::detail::take(text);
           })
      .def(
          "compile",
          [](const Graph& g, const amps::Device& device, int threads, int level, bool check,
             const std::string& without, size_t plan_cache, bool cached, const Aliases& aliases,
             int denormals, const std::string& quantize) {
            amps::CompileOptions options{threads, level, check, plan_cache, c_text(without), {}};
            for (const auto& [result, feed] : aliases) options.aliases.push_back({result, feed});
            options.denormals = static_cast<amps_denormals>(denormals);
            options.quantize = c_text(quantize);
            const amps_compile_options c = options.c();
            amps_executable* made = nullptr;
            nb::gil_scoped_release unlocked;
            amps::check(
                (cached ? amps_compile_cached : amps_compile)(device.c(), g.c(), &c, &made));
            return Executable{amps::Executable(made), device.c()};
          },
          nb::arg("device"), nb::arg("threads"), nb::arg("level"), nb::arg("check"),
          nb::arg("without"), nb::arg("plan_cache"), nb::arg("cached"),
          nb::arg("aliases") = Aliases(), nb::arg("denormals") = 0, nb::arg("quantize") = "");
}

}  // namespace anymps::python
