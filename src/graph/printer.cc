// SPDX-License-Identifier: Apache-2.0
#include "graph/printer.h"

#include <cmath>
#include <cstring>

#include "base/string_store.h"
#include "base/text.h"
#include "memory/refreshable.h"
#include "ops/elementwise/elementwise_program.h"

namespace anymps {

namespace {

constexpr int64_t kShownElements = 8;

// The elements of a small constant: "[1, 2]", or "3" for a scalar; nothing for larger ones, and
// for those that may change.
std::string elements(const Constant& constant) {
  const int64_t count = constant.desc().count();
  const bool strings = constant.dtype() == DType::kString;
  if (count > kShownElements || !contains(kReal | kBoolean | kText, constant.dtype())) return {};
  if (is_refreshable(constant)) return {};
  const auto bytes = constant.data();
  std::string text;
  for (int64_t i = 0; strings && i < count; ++i)
    text += (i ? ", " : "") + json_string(text_of(reinterpret_cast<const Text*>(bytes.get())[i]));
  if (strings) return constant.shape().empty() ? text : "[" + text + "]";
  dispatch<kReal | kBoolean>(constant.dtype(), [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i) {
      T element;
      std::memcpy(&element, bytes.get() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
      text += fmt::format("{}{}", i ? ", " : "", +static_cast<Compute<T>>(element));
    }
  });
  return constant.shape().empty() ? text : "[" + text + "]";
}

std::string typed(const Value& value) {
  return fmt::format("%{}: {}", shown(value.name), shown(to_string(value.type)));
}

void add_graph(const Graph& graph, const std::string& indent, std::string& text) {
  text += "(";
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    text += (i ? ", " : "") + typed(*graph.inputs()[i]);
  text += ") {\n";
  for (const Value* value : graph.values()) {
    if (!value->is_constant()) continue;
    const std::string content = elements(*value->constant);
    text += fmt::format(
        "{}  {} = constant{}\n", indent, typed(*value),
        content.empty() ? "  // " + human_bytes(value->constant->bytes()) : " " + content);
  }
  for (const auto& node : graph.nodes()) {
    text += indent + "  " + to_text(*node);
    if (node->outputs.empty() || node->name != node->outputs[0]->name)
      text += fmt::format("  // \"{}\"", shown(node->name));
    text += "\n";
    for (size_t i = 0; i < node->op->attrs.size(); ++i) {
      if (node->op->attrs[i].kind != AttrKind::kGraph) continue;
      const auto& inner = std::get<std::shared_ptr<Graph>>(node->attrs.values()[i]);
      if (!inner) continue;
      text += fmt::format("{}    {}: graph ", indent, node->op->attrs[i].name);
      add_graph(*inner, indent + "    ", text);
    }
  }
  text += indent + "  return";
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    text += (i ? ", %" : " %") + shown(graph.outputs()[i]->name);
  text += "\n" + indent + "}\n";
}

std::string json_number(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  return fmt::format("{}", value);
}

template <typename List, typename Fn>
std::string json_list(const List& list, Fn&& item) {
  std::string text = "[";
  for (const auto& element : list) text += (text.size() > 1 ? ", " : "") + item(element);
  return text + "]";
}

std::string json_attr(const Op& op, const AttrSpec& spec, const AttrValue& value) {
  if (const auto program = program_text(op, spec, value)) return json_string(*program);
  switch (spec.kind) {
    case AttrKind::kInt:
      return fmt::format("{}", std::get<int64_t>(value));
    case AttrKind::kBool:
      return std::get<int64_t>(value) ? "true" : "false";
    case AttrKind::kDType:
      return json_string(name(static_cast<DType>(std::get<int64_t>(value))));
    case AttrKind::kFloat:
      return json_number(std::get<double>(value));
    case AttrKind::kString:
      return json_string(std::get<std::string>(value));
    case AttrKind::kInts:
      return json_list(std::get<std::vector<int64_t>>(value),
                       [](int64_t element) { return fmt::format("{}", element); });
    case AttrKind::kFloats:
      return json_list(std::get<std::vector<double>>(value), json_number);
    case AttrKind::kGraph: {
      const auto& graph = std::get<std::shared_ptr<Graph>>(value);
      return graph ? to_json(*graph) : "null";
    }
  }
  return "null";
}

std::string json_value(const Value* value, const std::string& more = "") {
  const std::string shape =
      value->type.ranked ? json_list(value->shape(),
                                     [](const Dim& dim) {
                                       return dim.known() ? dim.str() : json_string(dim.str());
                                     })
                         : "null";
  const std::string container =
      value->type.container == Container::kTensor
          ? ""
          : fmt::format(", \"container\": \"{}\"", name(value->type.container));
  return fmt::format("{{\"name\": {}, \"dtype\": \"{}\", \"shape\": {}{}{}}}",
                     json_string(value->name), name(value->dtype()), shape, container, more);
}

std::string json_node(const Node& node) {
  std::string attrs;
  for (size_t i = 0; i < node.op->attrs.size(); ++i) {
    const AttrSpec& spec = node.op->attrs[i];
    const AttrValue& value = node.attrs.values()[i];
    if (!spec.required && value == spec.default_value) continue;
    attrs += fmt::format("{}{}: {}", attrs.empty() ? "" : ", ", json_string(spec.name),
                         json_attr(*node.op, spec, value));
  }
  return fmt::format(
      "{{\"op\": {}, \"family\": {}, \"name\": {}, \"inputs\": {}, \"outputs\": {}, "
      "\"attrs\": {{{}}}}}",
      json_string(node.op->name), json_string(node.op->family), json_string(node.name),
      json_list(node.inputs,
                [](const Value* value) { return value ? json_string(value->name) : "null"; }),
      json_list(node.outputs, [](const Value* value) { return json_value(value); }), attrs);
}

}  // namespace

std::string attr_text(const Op& op, const NamedAttr& attr) {
  const AttrSpec& spec = op.attrs[op.attr_index(attr.name)];
  const auto program = program_text(op, spec, attr.value);
  return program ? "\"" + *program + "\"" : to_string(spec.kind, attr.value);
}

std::string to_text(const Node& node) {
  std::string line;
  for (const Value* value : node.outputs) line += (line.empty() ? "" : ", ") + typed(*value);
  line += " = " + node.op->name + "(";
  for (size_t i = 0; i < node.inputs.size(); ++i)
    line += (i ? ", " : "") + (node.inputs[i] ? "%" + shown(node.inputs[i]->name) : "-");
  line += ")";
  std::string attrs;
  for (const NamedAttr& attr : node.attrs.named())
    attrs += (attrs.empty() ? "" : ", ") + attr.name + "=" + shown(attr_text(*node.op, attr));
  if (!attrs.empty()) line += " {" + attrs + "}";
  return line;
}

std::string to_text(const Graph& graph) {
  std::string text = fmt::format("graph {} ", graph.name.empty() ? "main" : shown(graph.name));
  add_graph(graph, "", text);
  return text;
}

std::string to_json(const Graph& graph) {
  std::string text = fmt::format("{{\"name\": {},\n", json_string(graph.name));
  auto lines = [&](const char* key, const std::vector<std::string>& items) {
    text += fmt::format(" \"{}\": [{}{}],\n", key, items.empty() ? "" : "\n  ",
                        fmt::join(items, ",\n  "));
  };
  std::vector<std::string> inputs, constants, nodes;
  for (const Value* value : graph.inputs()) inputs.push_back(json_value(value));
  for (const Value* value : graph.values())
    if (value->is_constant())
      constants.push_back(
          json_value(value, fmt::format(", \"bytes\": {}", value->constant->bytes())));
  for (const auto& node : graph.nodes()) nodes.push_back(json_node(*node));
  lines("inputs", inputs);
  lines("constants", constants);
  lines("nodes", nodes);
  text += " \"outputs\": " +
          json_list(graph.outputs(), [](const Value* value) { return json_string(value->name); });
  return text + "}\n";
}

std::string print_graph(const Graph& graph, const std::string& format) {
  if (format == "text") return to_text(graph);
  if (format == "json") return to_json(graph);
  if (format == "svg") return to_svg(graph);
  fail(Code::kInvalidArgument, "[print] format '{}' is not one of text, json, svg", format);
}

}  // namespace anymps
