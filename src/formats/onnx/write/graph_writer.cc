// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/write/graph_writer.h"

#include <algorithm>
#include <cctype>
#include <protozero/pbf_writer.hpp>

#include "base/string_store.h"
#include "formats/onnx/schema/fields.h"
#include "formats/onnx/schema/model.h"
#include "formats/onnx/schema/schemas.h"

namespace anymps::onnx {

namespace {

using Message = protozero::pbf_writer;

int32_t number(DType dtype) { return static_cast<int32_t>(to_data_type(dtype)); }

// Narrow elements lie several in a byte, the first in its lowest bits.
std::string packed(const std::byte* data, int64_t count, int bits) {
  const int in_byte = 8 / bits;
  std::string bytes((count + in_byte - 1) / in_byte, '\0');
  for (int64_t i = 0; i < count; ++i) {
    const int code = static_cast<int>(data[i]) & ((1 << bits) - 1);
    char& byte = bytes[i / in_byte];
    byte = static_cast<char>(static_cast<uint8_t>(byte) | code << (i % in_byte * bits));
  }
  return bytes;
}

// A plain symbol; an expression over symbols is not written.
bool is_name(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
}

std::string tensor_type(const ValueType& type, bool symbols) {
  std::string bytes;
  Message tensor(bytes);
  tensor.add_int32(field::TensorType::kElemType, number(type.dtype));
  if (!type.ranked) return bytes;
  std::string shape;  // a message without fields counts too: a scalar, an extent that is not known
  for (const Dim& extent : type.shape) {
    std::string dim;
    if (extent.known())
      Message(dim).add_int64(field::Dimension::kDimValue, extent.value());
    else if (symbols && is_name(extent.str()))
      Message(dim).add_string(field::Dimension::kDimParam, extent.str());
    Message(shape).add_message(field::TensorShape::kDim, dim);
  }
  tensor.add_message(field::TensorType::kShape, shape);
  return bytes;
}

// A TypeProto with one field, around what it holds.
std::string wrapped(uint32_t field, const std::string& inner) {
  std::string bytes;
  Message(bytes).add_message(field, inner);
  return bytes;
}

std::string info_bytes(const OutInfo& info, bool symbols) {
  std::string bytes;
  Message message(bytes);
  message.add_string(field::ValueInfo::kName, info.name);
  message.add_message(field::ValueInfo::kType, type_bytes(info.type, symbols));
  return bytes;
}

void write_value(Message& to, const OutAttr& attr) {
  using Field = field::Attribute;
  const auto kind = [&](Attribute::Type type) {
    to.add_int32(Field::kType, static_cast<int32_t>(type));
  };
  to.add_string(Field::kName, attr.name);
  if (const auto* i = std::get_if<int64_t>(&attr.value)) {
    to.add_int64(Field::kI, *i);
    kind(Attribute::Type::kInt);
  } else if (const auto* f = std::get_if<double>(&attr.value)) {
    to.add_float(Field::kF, static_cast<float>(*f));
    kind(Attribute::Type::kFloat);
  } else if (const auto* s = std::get_if<std::string>(&attr.value)) {
    to.add_bytes(Field::kS, *s);
    kind(Attribute::Type::kString);
  } else if (const auto* ints = std::get_if<Ints>(&attr.value)) {
    for (int64_t number : *ints) to.add_int64(Field::kInts, number);
    kind(Attribute::Type::kInts);
  } else if (const auto* floats = std::get_if<std::vector<double>>(&attr.value)) {
    for (double number : *floats) to.add_float(Field::kFloats, static_cast<float>(number));
    kind(Attribute::Type::kFloats);
  } else if (const auto* strings = std::get_if<Names>(&attr.value)) {
    for (const std::string& text : *strings) to.add_bytes(Field::kStrings, text);
    kind(Attribute::Type::kStrings);
  } else if (const auto* graph = std::get_if<OutGraph>(&attr.value)) {
    to.add_message(Field::kG, graph->bytes);
    kind(Attribute::Type::kGraph);
  } else {
    to.add_message(Field::kTp, std::get<OutType>(attr.value).bytes);
    kind(Attribute::Type::kTypeProto);
  }
}

// The type that an attribute gives to the result.
std::optional<DType> result_type(std::string_view op, const OutAttrs& attrs) {
  if (op != "Cast" && op != "EyeLike" && op != "SequenceEmpty") return std::nullopt;
  for (const OutAttr& attr : attrs)
    if (attr.name == "to" || attr.name == "dtype")
      return to_dtype(static_cast<DataType>(std::get<int64_t>(attr.value)));
  return std::nullopt;
}

}  // namespace

std::string type_bytes(const ValueType& type, bool symbols) {
  std::string bytes = wrapped(field::Type::kTensorType, tensor_type(type, symbols));
  if (type.container == Container::kMaps) fail(Code::kUnsupported, "maps are not written");
  if (type.container == Container::kSequence || type.container == Container::kOptionalSequence)
    bytes = wrapped(field::Type::kSequenceType, wrapped(field::HolderType::kElemType, bytes));
  if (type.container == Container::kOptional || type.container == Container::kOptionalSequence)
    bytes = wrapped(field::Type::kOptionalType, wrapped(field::HolderType::kElemType, bytes));
  return bytes;
}

std::string GraphWriter::unique(const std::string& stem) {
  std::string name = stem;
  for (size_t i = 1; !model_.taken.insert(name).second; ++i) name = fmt::format("{}_{}", stem, i);
  return name;
}

std::optional<DType> GraphWriter::dtype_of(const std::string& name) const {
  auto found = model_.dtypes.find(name);
  return found == model_.dtypes.end() ? std::nullopt : std::optional(found->second);
}

void GraphWriter::set_dtype(const std::string& name, DType dtype) {
  const auto [place, fresh] = model_.dtypes.emplace(name, dtype);
  if (!fresh && place->second != dtype)
    fail(Code::kUnsupported, "what ONNX makes is {}, not {}", anymps::name(place->second),
         anymps::name(dtype));
}

void GraphWriter::write_node(std::string_view op, const Names& inputs, const Names& outputs,
                             const OutAttrs& attrs) {
  Message graph(nodes_);
  Message node(graph, field::Graph::kNode);
  size_t count = inputs.size();
  while (count > 0 && inputs[count - 1].empty()) --count;  // absent ones at the end
  for (size_t i = 0; i < count; ++i) node.add_string(field::Node::kInput, inputs[i]);
  for (const std::string& output : outputs) node.add_string(field::Node::kOutput, output);
  node.add_string(field::Node::kName, outputs[0] + "/" + std::string(op));
  node.add_string(field::Node::kOpType, op.data(), op.size());
  for (const OutAttr& attr : attrs) {
    Message written(node, field::Node::kAttribute);
    write_value(written, attr);
  }
}

Names GraphWriter::node(std::string_view op, const Names& inputs, const OutAttrs& attrs,
                        size_t outputs, const std::string& stem) {
  std::vector<std::optional<DType>> given;
  for (const std::string& input : inputs) given.push_back(dtype_of(input));
  const std::vector<std::optional<DType>> made =
      check_types(op, given, outputs, result_type(op, attrs));
  Names names;
  for (size_t i = 0; i < outputs; ++i) {
    names.push_back(unique(stem));
    if (made[i]) model_.dtypes[names[i]] = *made[i];
  }
  write_node(op, inputs, names, attrs);
  return names;
}

void GraphWriter::alias(const std::string& from, const std::string& to) {
  check_types("Identity", {dtype_of(from)}, 1);
  write_node("Identity", {from}, {to}, {});
}

std::string GraphWriter::constant(const anymps::Constant& constant, const std::string& name) {
  std::string written = unique(name);
  const DType dtype = constant.dtype();
  model_.dtypes[written] = dtype;
  const auto bytes = constant.data();
  Message graph(initializers_);
  Message tensor(graph, field::Graph::kInitializer);
  for (int64_t extent : constant.shape()) tensor.add_int64(field::Tensor::kDims, extent);
  tensor.add_int32(field::Tensor::kDataType, number(dtype));
  tensor.add_string(field::Tensor::kName, written);
  const int64_t count = constant.desc().count();
  const int bits = bit_width(to_data_type(dtype));
  if (dtype == DType::kString)
    for (const Text text :
         std::span(reinterpret_cast<const Text*>(bytes.get()), static_cast<size_t>(count)))
      tensor.add_bytes(field::Tensor::kStringData, text_of(text));
  else if (bits < 8)
    tensor.add_bytes(field::Tensor::kRawData, packed(bytes.get(), count, bits));
  else
    tensor.add_bytes(field::Tensor::kRawData, reinterpret_cast<const char*>(bytes.get()),
                     constant.bytes());
  return written;
}

std::string GraphWriter::bytes(const std::string& name, const std::vector<OutInfo>& inputs,
                               const std::vector<OutInfo>& outputs, bool symbols) const {
  std::string bytes = nodes_;
  Message graph(bytes);
  graph.add_string(field::Graph::kName, name);
  bytes += initializers_;
  for (const OutInfo& info : inputs)
    graph.add_message(field::Graph::kInput, info_bytes(info, symbols));
  for (const OutInfo& info : outputs)
    graph.add_message(field::Graph::kOutput, info_bytes(info, symbols));
  return bytes;
}

}  // namespace anymps::onnx
