// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/read/call.h"

#include <algorithm>

namespace anymps::onnx {

using Type = Attribute::Type;

bool Call::wants(size_t output) const {
  return output < node.outputs.size() && !node.outputs[output].empty();
}

Value* Call::opt(size_t i) {
  read_inputs_.insert(i);
  return i < inputs_.size() ? inputs_[i] : nullptr;
}

Value* Call::in(size_t i) {
  Value* value = opt(i);
  check(value != nullptr, "input {} is missing", i);
  return value;
}

Values Call::all() {
  Values values;
  for (size_t i = 0; i < inputs_.size(); ++i) values.push_back(in(i));
  check(!values.empty(), "needs at least one input");
  return values;
}

std::optional<std::vector<double>> known_floats(const Value* value) {
  if (!is_list(*value) || !is_float(value->dtype())) return std::nullopt;
  return doubles_of(*value->constant);
}

const Attribute* Call::read(const char* name, Type type, bool required) {
  read_attributes_.insert(name);
  const Attribute* attribute = node.find(name);
  check(attribute || !required, "attribute '{}' is missing", name);
  if (attribute)
    check(attribute->type == type, "attribute '{}' is {}, must be {}", name,
          onnx::name(attribute->type), onnx::name(type));
  return attribute;
}

int64_t Call::i(const char* name, std::optional<int64_t> otherwise) {
  const Attribute* attribute = read(name, Type::kInt, !otherwise);
  return attribute ? attribute->i : *otherwise;
}

DType Call::dtype(const char* name, std::optional<DType> otherwise) {
  const Attribute* attribute = read(name, Type::kInt, !otherwise);
  return attribute ? to_dtype(static_cast<DataType>(attribute->i)) : *otherwise;
}

double Call::f(const char* name, std::optional<double> otherwise) {
  const Attribute* attribute = read(name, Type::kFloat, !otherwise);
  return attribute ? double{attribute->f} : *otherwise;
}

std::string Call::s(const char* name, std::optional<std::string> otherwise) {
  const Attribute* attribute = read(name, Type::kString, !otherwise);
  return attribute ? std::string(attribute->s) : *otherwise;
}

std::optional<std::vector<int64_t>> Call::ints(const char* name) {
  const Attribute* attribute = read(name, Type::kInts, false);
  return attribute ? std::optional(attribute->ints) : std::nullopt;
}

std::optional<std::vector<float>> Call::floats(const char* name) {
  const Attribute* attribute = read(name, Type::kFloats, false);
  return attribute ? std::optional(attribute->floats) : std::nullopt;
}

std::optional<std::vector<std::string>> Call::strings(const char* name) {
  const Attribute* attribute = read(name, Type::kStrings, false);
  if (!attribute) return std::nullopt;
  return std::vector<std::string>(attribute->strings.begin(), attribute->strings.end());
}

const Tensor* Call::tensor(const char* name) {
  const Attribute* attribute = read(name, Type::kTensor, false);
  return attribute ? &attribute->tensors[0] : nullptr;
}

void Call::ignore(std::initializer_list<const char*> attributes) {
  for (const char* name : attributes) read_attributes_.insert(name);
}

void Call::check_all_read() const {
  for (const Attribute& attribute : node.attributes)
    if (!read_attributes_.contains(attribute.name) && attribute.name != "consumed_inputs")
      unsupported("attribute '{}' is not supported in opset {}", attribute.name, opset);
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i] && !read_inputs_.contains(i))
      unsupported("input {} (\"{}\") is not supported in opset {}", i, node.inputs[i], opset);
}

int64_t Call::axis(const char* attribute, std::optional<int64_t> otherwise, int64_t rank) {
  return normalize(i(attribute, otherwise), rank);
}

}  // namespace anymps::onnx
