// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/schema/schemas.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"

namespace anymps::onnx {

namespace {

// One line of schemas.inc. Inputs and outputs are names of type variables; "T*": any number of that
// variable, "V~": any number, each of a type of its own. Types: "T=f32,f64 I=i64".
struct Row {
  const char *op, *inputs, *outputs, *types;
};
const Row kRows[] = {
#include "formats/onnx/schema/schemas.inc"
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

struct Schema {
  std::vector<std::string> inputs, outputs;
  std::map<std::string, DTypeSet> types;

  explicit Schema(const Row& row)
      : inputs(split(row.inputs, ' ')), outputs(split(row.outputs, ' ')) {
    for (const std::string& entry : split(row.types, ' ')) {
      const size_t at = entry.find('=');
      DTypeSet& set = types[entry.substr(0, at)];
      for (const std::string& type : split(std::string_view(entry).substr(at + 1), ','))
        set |= bit(parse_dtype(type));
    }
  }

  // The variable of a parameter, without its mark; "" past the last.
  static std::string variable(const std::vector<std::string>& list, size_t i, char& mark) {
    mark = ' ';
    if (list.empty()) return "";
    const bool more = list.back().back() == '*' || list.back().back() == '~';
    if (i >= list.size() && !more) return "";
    std::string name = list[std::min(i, list.size() - 1)];
    if (name.back() != '*' && name.back() != '~') return name;
    mark = name.back();
    name.pop_back();
    return name;
  }
};

const Schema& schema_of(std::string_view op) {
  static const auto* kTable = [] {
    auto* table = new std::map<std::string_view, Schema>();
    for (const Row& row : kRows) table->emplace(row.op, Schema(row));
    return table;
  }();
  auto found = kTable->find(op);
  if (found == kTable->end())
    fail(Code::kInternal, "[onnx] schemas.inc has no {}: run make_schemas.py", op);
  return found->second;
}

}  // namespace

std::vector<std::optional<DType>> check_types(std::string_view op,
                                              const std::vector<std::optional<DType>>& inputs,
                                              size_t outputs, std::optional<DType> result) {
  const Schema& schema = schema_of(op);
  std::map<std::string, DType> bound;
  char mark;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string variable = Schema::variable(schema.inputs, i, mark);
    if (!inputs[i] || variable.empty()) continue;
    const DTypeSet allowed = schema.types.at(variable);
    if (!contains(allowed, *inputs[i]))
      fail(Code::kUnsupported, "input {} of ONNX's {} is {}, must be one of {}", i, op,
           name(*inputs[i]), to_string(allowed));
    if (mark == '~') continue;
    const auto [place, fresh] = bound.emplace(variable, *inputs[i]);
    if (!fresh && place->second != *inputs[i])
      fail(Code::kUnsupported,
           "input {} of ONNX's {} is {}, but another, which must be alike, is {}", i, op,
           name(*inputs[i]), name(place->second));
  }
  if (result) {
    const DTypeSet allowed = schema.types.at(Schema::variable(schema.outputs, 0, mark));
    if (!contains(allowed, *result))
      fail(Code::kUnsupported, "what ONNX's {} makes is {}, must be one of {}", op, name(*result),
           to_string(allowed));
  }
  std::vector<std::optional<DType>> made(outputs);
  for (size_t i = 0; i < outputs; ++i) {
    const std::string variable = Schema::variable(schema.outputs, i, mark);
    if (variable.empty() || mark == '~') continue;
    if (auto found = bound.find(variable); found != bound.end()) {
      made[i] = found->second;
      continue;
    }
    const DTypeSet allowed = schema.types.at(variable);
    for (int code = 0; code < kDTypeCount; ++code)
      if (allowed == bit(static_cast<DType>(code))) made[i] = static_cast<DType>(code);
  }
  if (result) made.at(0) = result;
  return made;
}

}  // namespace anymps::onnx
