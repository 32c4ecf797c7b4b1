// SPDX-License-Identifier: Apache-2.0
#include "api/builder_header.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "ops/op.h"

namespace anymps::api {

namespace {

std::string camel(const std::string& name) {
  std::string text;
  bool upper = true;
  for (const char c : name) {
    if (c == '_')
      upper = true;
    else
      text += upper ? static_cast<char>(std::toupper(c)) : c, upper = false;
  }
  return text;
}

std::string type_of(AttrKind kind) {
  switch (kind) {
    case AttrKind::kBool:
      return "bool";
    case AttrKind::kDType:
      return "DType";
    case AttrKind::kFloat:
      return "double";
    case AttrKind::kString:
      return "std::string";
    case AttrKind::kInts:
      return "std::vector<int64_t>";
    case AttrKind::kFloats:
      return "std::vector<double>";
    default:
      return "int64_t";
  }
}

std::string literal(const AttrSpec& attr) {
  switch (attr.kind) {
    case AttrKind::kBool:
      return std::get<int64_t>(attr.default_value) ? "true" : "false";
    case AttrKind::kDType:
      return fmt::format("DType({})", std::get<int64_t>(attr.default_value));
    case AttrKind::kInt: {
      const int64_t value = std::get<int64_t>(attr.default_value);
      if (value == INT64_MAX) return "INT64_MAX";
      return value == INT64_MIN ? "INT64_MIN" : std::to_string(value);
    }
    case AttrKind::kFloat: {
      const double value = std::get<double>(attr.default_value);
      if (std::isinf(value)) return value < 0 ? "-HUGE_VAL" : "HUGE_VAL";
      return fmt::format("{:#}", value);
    }
    case AttrKind::kString:
      return "\"" + std::get<std::string>(attr.default_value) + "\"";
    case AttrKind::kInts:
      return fmt::format("{{{}}}",
                         fmt::join(std::get<std::vector<int64_t>>(attr.default_value), ", "));
    case AttrKind::kFloats:
      return fmt::format("{{{}}}",
                         fmt::join(std::get<std::vector<double>>(attr.default_value), ", "));
    case AttrKind::kGraph:
      return "{}";
  }
  return "{}";
}

// Names that C++ keeps for itself get an underscore.
std::string safe(const std::string& name) {
  static const std::vector<std::string> kWords = {"and", "or", "not", "xor", "default", "switch"};
  for (const std::string& word : kWords)
    if (name == word) return name + "_";
  return name;
}

void write_options(std::string& text, const Op& op) {
  if (op.attrs.empty()) return;
  text += fmt::format("struct {}Options {{\n", camel(op.name));
  for (const AttrSpec& attr : op.attrs)
    text +=
        fmt::format("  {} {} = {};\n", type_of(attr.kind), safe(attr.name),
                    attr.required && attr.kind != AttrKind::kInt && attr.kind != AttrKind::kBool &&
                            attr.kind != AttrKind::kFloat && attr.kind != AttrKind::kDType
                        ? "{}"
                        : literal(attr));
  text += "};\n\n";
}

// With `optional`, inputs that may be left out are parameters too; without, options come at once:
// reduce_sum(x, {.axes = {1}}).
void write_method(std::string& text, const Op& op, bool optional) {
  // By-products are for those who ask for them, with op(…).
  const size_t count = op.main_outputs();
  const bool many = count > 1 || op.variadic_outputs;
  std::string parameters, inputs;
  bool variadic = false, optional_before = false;
  auto add_parameter = [&](const std::string& parameter) {
    parameters += (parameters.empty() ? "" : ", ") + parameter;
  };
  // The number of outputs has no default, so it stands before the first input that has one.
  auto add_outputs = [&] {
    if (op.variadic_outputs) add_parameter("size_t outputs");
  };
  for (const InputSpec& in : op.inputs) {
    if (in.optional && !optional) continue;
    const std::string name = safe(in.name);
    if (in.optional && !optional_before) add_outputs();
    optional_before = optional_before || in.optional;
    const std::string otherwise = optional_before ? " = {}" : "";
    if (in.variadic) {
      variadic = true;
      add_parameter("std::vector<Value> " + name + otherwise);
      if (inputs.empty())
        inputs = name;
      else
        inputs = fmt::format("with({}}}, {})", inputs, name);
    } else {
      add_parameter("Value " + name + otherwise);
      inputs += (inputs.empty() ? "{" : ", ") + name;
    }
  }
  if (!variadic) inputs += inputs.empty() ? "{}" : "}";
  if (!optional_before) add_outputs();
  const bool required = std::any_of(op.attrs.begin(), op.attrs.end(),
                                    [](const AttrSpec& attr) { return attr.required; });
  if (!op.attrs.empty())
    parameters +=
        fmt::format("{}const {}Options& options{}", parameters.empty() ? "" : ", ", camel(op.name),
                    !optional || (required && !optional_before) ? "" : " = {}");
  parameters += fmt::format("{}const char* name = nullptr", parameters.empty() ? "" : ", ");
  text += fmt::format("  // {}\n  {} {}({}) {{\n", op.doc.substr(0, op.doc.find('\n')),
                      many ? "std::vector<Value>" : "Value", safe(op.name), parameters);
  std::string attrs = "{";
  for (size_t i = 0; i < op.attrs.size(); ++i)
    attrs += fmt::format("{}{{\"{}\", options.{}}}", i ? ", " : "", op.attrs[i].name,
                         safe(op.attrs[i].name));
  attrs += "}";
  text += fmt::format("    return self().op(\"{}\", {}, {}, name, {}){};\n  }}\n", op.name, inputs,
                      attrs, op.variadic_outputs ? "outputs" : std::to_string(count),
                      many ? "" : "[0]");
}

// Ops that hold graphs are added by their name, with op(…).
bool has_method(const Op& op) {
  return !op.is(kInternal) && std::none_of(op.attrs.begin(), op.attrs.end(), [](const auto& attr) {
    return attr.kind == AttrKind::kGraph;
  });
}

// Optional inputs before options; a variadic input behind them could not tell its place.
bool has_short_form(const Op& op) {
  const auto optional = [](const InputSpec& in) { return in.optional; };
  return !op.attrs.empty() && std::any_of(op.inputs.begin(), op.inputs.end(), optional) &&
         std::is_partitioned(op.inputs.begin(), op.inputs.end(), std::not_fn(optional));
}

}  // namespace

std::string builder_header() {
  std::string text =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// Builder methods, one for each op. Generated by `anymps ops --hpp` from the op table; do "
      "not\n"
      "// edit. Included by anymps/anymps.hpp.\n"
      "#pragma once\n\n"
      "// clang-format off\n"
      "#ifndef ANYMPS_HPP_INSIDE\n#error \"include anymps/anymps.hpp\"\n#endif\n\n"
      "namespace amps {\n\n";
  for (const Op* op : all_ops())
    if (has_method(*op)) write_options(text, *op);
  text +=
      "// For a builder of graphs, whose values are a graph's, and for one that computes at once.\n"
      "template <typename Derived, typename Value>\nclass OpMethods {\n public:\n";
  for (const Op* op : all_ops()) {
    if (!has_method(*op)) continue;
    write_method(text, *op, true);
    if (has_short_form(*op)) write_method(text, *op, false);
  }
  text +=
      "\n private:\n  Derived& self() { return static_cast<Derived&>(*this); }\n"
      "  static std::vector<Value> with(std::vector<Value> inputs, const std::vector<Value>& rest) "
      "{\n"
      "    inputs.insert(inputs.end(), rest.begin(), rest.end());\n    return inputs;\n  }\n};\n\n"
      "}  // namespace amps\n";
  return text;
}

}  // namespace anymps::api
