// SPDX-License-Identifier: Apache-2.0
// Graphs of the C interface.
#include "api/attrs.h"
#include "api/handles.h"
#include "formats/executorch/payload/payload.h"
#include "formats/load.h"
#include "formats/mps/mps.h"
#include "formats/save.h"
#include "graph/gradient.h"
#include "graph/printer.h"
#include "passes/precision.h"

using namespace anymps;
using namespace anymps::api;

namespace {

// The pointer is not looked at before it is known to be one of the graph's.
Value* own_value(const Graph& graph, amps_value* value, const char* what, size_t index) {
  require(graph.owns(value_of(value)), "[graph] {} {} is no value of this graph", what, index);
  return value_of(value);
}

DefaultInputs wanted(const char* const* inputs, size_t count) {
  DefaultInputs defaults;
  for (size_t i = 0; i < count; ++i)
    defaults.wanted.emplace_back(&need((&need(inputs, "inputs"))[i], "an input's name"));
  return defaults;
}

}  // namespace

std::vector<std::byte> anymps::api::copied(const void* data, size_t bytes) {
  require(data != nullptr || bytes == 0, "[api] data is NULL");
  const auto* first = static_cast<const std::byte*>(data);
  return {first, first + bytes};
}

extern "C" {

amps_status amps_graph_create(const char* name, amps_graph** graph) {
  return guard([&] {
    need(graph, "graph") = nullptr;
    auto made = std::make_unique<Graph>();
    made->name = name ? name : "";
    *graph = new amps_graph{std::move(made)};
  });
}

amps_status amps_graph_load(const char* path, amps_graph** graph) {
  return amps_graph_load_inputs(path, nullptr, 0, graph);
}

amps_status amps_graph_load_memory(const void* data, size_t bytes, const char* name,
                                   amps_graph** graph) {
  return amps_graph_load_memory_inputs(data, bytes, name, nullptr, 0, graph);
}

amps_status amps_graph_load_inputs(const char* path, const char* const* inputs, size_t count,
                                   amps_graph** graph) {
  return guard([&] {
    need(graph, "graph") = nullptr;
    DefaultInputs defaults = wanted(inputs, count);
    std::unique_ptr<Graph> loaded;
    const OpenedFiles opened;
    reading(opened.all(), [&] { loaded = load_graph(&need(path, "path"), nullptr, &defaults); });
    *graph = new amps_graph{std::move(loaded), std::move(defaults.found), opened.in_use()};
  });
}

amps_status amps_graph_load_memory_inputs(const void* data, size_t bytes, const char* name,
                                          const char* const* inputs, size_t count,
                                          amps_graph** graph) {
  return guard([&] {
    need(graph, "graph") = nullptr;
    DefaultInputs defaults = wanted(inputs, count);
    auto loaded = load_graph(copied(data, bytes), name ? name : "memory", &defaults);
    *graph = new amps_graph{std::move(loaded), std::move(defaults.found)};
  });
}

amps_status amps_graph_load_payload(const void* data, size_t bytes, const char* name,
                                    const int64_t* dims, size_t dim_count, amps_graph** graph) {
  return guard([&] {
    need(graph, "graph") = nullptr;
    require(data != nullptr || bytes == 0, "[api] data is NULL");
    const std::string_view view(static_cast<const char*>(data), bytes);
    const executorch::Ints given(dims, dims + (dims ? dim_count : 0));
    const std::string label = name ? name : "payload";
    if (!executorch::is_payload(view))
      fail(Code::kCorrupt, "{}: this is no payload of MPSBackend: bytes 4 to 8 are not MP00",
           label);
    const std::shared_ptr<const void> borrowed(data, [](const void*) {});
    *graph = new amps_graph{
        executorch::import_payload({view, borrowed, false, label}, dims ? &given : nullptr)};
  });
}

amps_status amps_graph_set_precision(amps_graph* graph, amps_dtype dtype) {
  return guard([&] {
    auto& held = need(graph, "graph").graph;
    std::unique_ptr<Graph> made;
    reading(graph->files, [&] { made = with_precision(*held, checked_dtype(dtype)); });
    held = std::move(made);
  });
}

amps_status amps_graph_save(const amps_graph* graph, const char* path) {
  return guard([&] {
    const MappedFiles& files = need(graph, "graph").files;
    reading(files, [&] { save_graph(*graph->graph, &need(path, "path"), files); });
  });
}

amps_status amps_graph_save_memory(const amps_graph* graph, const char* format,
                                   amps_string** bytes) {
  return guard([&] {
    need(bytes, "bytes") = nullptr;
    std::string made;
    reading(need(graph, "graph").files,
            [&] { made = graph_bytes(*graph->graph, format ? format : "mps"); });
    *bytes = new_string(std::move(made));
  });
}

void amps_graph_release(amps_graph* graph) { delete graph; }

amps_status amps_graph_input(amps_graph* graph, const char* name, amps_dtype dtype, size_t rank,
                             const int64_t* dims, const char* const* dim_names,
                             amps_value** value) {
  return guard([&] {
    need(graph, "graph");
    Dims shape;
    const Shape given = checked_shape(rank, dims);
    for (size_t i = 0; i < rank; ++i) {
      require(given[i] >= -1, "[api] input '{}': extent {} of axis {} is negative",
              &need(name, "name"), given[i], i);
      if (given[i] >= 0)
        shape.emplace_back(given[i]);
      else if (dim_names && dim_names[i] && *dim_names[i])
        shape.push_back(Dim::parse(dim_names[i]));
      else
        shape.push_back(Dim::symbol(fmt::format("{}.{}", &need(name, "name"), i)));
    }
    Value* made = graph->graph->input(&need(name, "name"), checked_dtype(dtype), std::move(shape));
    if (value) *value = handle(made);
  });
}

amps_status amps_graph_constant(amps_graph* graph, const char* name, amps_dtype dtype, size_t rank,
                                const int64_t* dims, const void* data, amps_value** value) {
  return guard([&] {
    const TensorDesc desc(checked_dtype(dtype), checked_shape(rank, dims));
    require(data != nullptr || desc.count() == 0, "[api] data is NULL");
    require(desc.dtype != DType::kString, "[api] strings need amps_graph_string_constant");
    const auto* first = static_cast<const std::byte*>(data);
    Value* made =
        need(graph, "graph")
            .graph->constant(Constant::copy(desc.dtype, desc.shape, {first, desc.bytes()}),
                             name ? name : "");
    need(value, "value") = handle(made);
  });
}

amps_status amps_graph_op(amps_graph* graph, const amps_op* op, amps_value* const* inputs,
                          size_t input_count, const amps_attr* attrs, size_t attr_count,
                          const char* name, amps_value** outputs, size_t output_count) {
  return guard([&] {
    const Op& record = *op_of(&need(op, "op"));
    require(!record.is(kInternal), "[{}] is made by passes only", record.name);
    Graph& to = *need(graph, "graph").graph;
    require(inputs || input_count == 0, "[api] inputs is NULL");
    require(outputs || output_count == 0, "[api] outputs is NULL");
    std::vector<Value*> values;
    for (size_t i = 0; i < input_count; ++i)
      values.push_back(inputs[i] ? own_value(to, inputs[i], "input", i) : nullptr);
    NamedAttrs named;
    for (size_t i = 0; i < attr_count; ++i) {
      named.push_back(named_attr(need(attrs + i, "attrs")));
      if (attrs[i].kind != AMPS_ATTR_GRAPH || !attrs[i].graph) continue;
      const MappedFiles files = attrs[i].graph->files;  // of a body that was loaded
      graph->files.insert(graph->files.end(), files.begin(), files.end());
    }
    Node* node = to.add_node(record, std::move(values), named, name ? name : "", output_count);
    for (size_t i = 0; i < output_count; ++i) outputs[i] = handle(node->outputs[i]);
  });
}

amps_status amps_graph_set_outputs(amps_graph* graph, amps_value* const* outputs, size_t count) {
  return guard([&] {
    require(outputs || count == 0, "[api] outputs is NULL");
    Graph& of = *need(graph, "graph").graph;
    std::vector<Value*> values;
    for (size_t i = 0; i < count; ++i)
      values.push_back(own_value(of, &need(outputs[i], "output"), "output", i));
    of.set_outputs(std::move(values));
  });
}

amps_status amps_graph_gradient_seeded(amps_graph* graph, amps_value* y, amps_value* seed,
                                       amps_value* const* xs, size_t count, amps_value** grads) {
  return guard([&] {
    Graph& of = *need(graph, "graph").graph;
    require((xs && grads) || count == 0, "[api] xs or grads is NULL");
    std::vector<Value*> values;
    for (size_t i = 0; i < count; ++i) values.push_back(own_value(of, &need(xs[i], "x"), "x", i));
    const std::vector<Value*> results = gradient(of, own_value(of, &need(y, "y"), "y", 0), values,
                                                 seed ? own_value(of, seed, "seed", 0) : nullptr);
    for (size_t i = 0; i < count; ++i) grads[i] = handle(results[i]);
  });
}

amps_status amps_graph_gradient(amps_graph* graph, amps_value* y, amps_value* const* xs,
                                size_t count, amps_value** grads) {
  return amps_graph_gradient_seeded(graph, y, nullptr, xs, count, grads);
}

const char* amps_value_name(const amps_value* value) {
  return value ? value_of(value)->name.c_str() : "";
}
amps_dtype amps_value_dtype(const amps_value* value) {
  return value ? static_cast<amps_dtype>(value_of(value)->dtype()) : amps_dtype{};
}
int64_t amps_value_rank(const amps_value* value) {
  if (!value) return -1;
  const ValueType& type = value_of(value)->type;
  return type.ranked ? std::ssize(type.shape) : -1;
}
int64_t amps_value_dim(const amps_value* value, size_t axis) {
  if (!value) return -1;
  const Dims& shape = value_of(value)->shape();
  return axis < shape.size() && shape[axis].known() ? shape[axis].value() : -1;
}
const char* amps_value_dim_name(const amps_value* value, size_t axis) {
  if (!value) return nullptr;
  const Dims& shape = value_of(value)->shape();
  return axis < shape.size() ? shape[axis].symbol_text() : nullptr;
}

size_t amps_graph_input_count(const amps_graph* graph) {
  return graph ? graph->graph->inputs().size() : 0;
}
const amps_value* amps_graph_input_at(const amps_graph* graph, size_t index) {
  return index < amps_graph_input_count(graph) ? handle(graph->graph->inputs()[index]) : nullptr;
}
size_t amps_graph_output_count(const amps_graph* graph) {
  return graph ? graph->graph->outputs().size() : 0;
}
const amps_value* amps_graph_output_at(const amps_graph* graph, size_t index) {
  return index < amps_graph_output_count(graph) ? handle(graph->graph->outputs()[index]) : nullptr;
}

size_t amps_graph_default_count(const amps_graph* graph) {
  return graph ? graph->defaults.size() : 0;
}
const amps_value* amps_graph_default_at(const amps_graph* graph, size_t index) {
  return index < amps_graph_default_count(graph) ? handle(&graph->defaults[index]) : nullptr;
}

size_t amps_graph_values(amps_graph* graph, amps_value** values, size_t capacity) {
  if (!graph) return 0;
  const std::vector<Value*> all = graph->graph->values();
  for (size_t i = 0; values && i < all.size() && i < capacity; ++i) values[i] = handle(all[i]);
  return all.size();
}
const amps_op* amps_value_op(const amps_value* value) {
  const Node* producer = value ? value_of(value)->producer : nullptr;
  return producer ? reinterpret_cast<const amps_op*>(producer->op) : nullptr;
}

amps_status amps_graph_text(const amps_graph* graph, const char* format, amps_string** text) {
  return guard([&] {
    need(text, "text") = nullptr;
    *text = new_string(print_graph(*need(graph, "graph").graph, &need(format, "format")));
  });
}

}  // extern "C"
