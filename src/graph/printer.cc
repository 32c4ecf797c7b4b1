// SPDX-License-Identifier: Apache-2.0
#include "graph/printer.h"

namespace anymps {

namespace {

std::string node_line(const Node& node) {
  std::string line;
  for (const Value* value : node.outputs)
    line += fmt::format("{}%{}: {}", line.empty() ? "" : ", ", value->name, to_string(value->type));
  line += " = " + node.op->name + "(";
  for (size_t i = 0; i < node.inputs.size(); ++i)
    line += (i ? ", " : "") + (node.inputs[i] ? "%" + node.inputs[i]->name : std::string("-"));
  line += ")";
  std::string attrs;
  for (const NamedAttr& attr : node.attrs.named()) {
    const AttrSpec& spec = node.op->attrs[static_cast<size_t>(node.op->attr_index(attr.name))];
    attrs += fmt::format("{}{}={}", attrs.empty() ? "" : ", ", attr.name,
                         to_string(spec.kind, attr.value));
  }
  if (!attrs.empty()) line += " {" + attrs + "}";
  return line;
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::string text = fmt::format("graph {} (", graph.name.empty() ? "main" : graph.name);
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    text += fmt::format("{}%{}: {}", i ? ", " : "", graph.inputs()[i]->name,
                        to_string(graph.inputs()[i]->type));
  text += ") {\n";
  for (const auto& node : graph.nodes()) text += "  " + node_line(*node) + "\n";
  text += "  return";
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    text += (i ? ", %" : " %") + graph.outputs()[i]->name;
  return text + "\n}\n";
}

std::string print_graph(const Graph& graph, const std::string& format) {
  if (format == "text") return to_text(graph);
  fail(Code::kInvalidArgument, "[print] format '{}' is not one of text, json, svg", format);
}

}  // namespace anymps
