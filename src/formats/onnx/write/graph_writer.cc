// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/write/graph_writer.h"

#include <algorithm>
#include <cctype>
#include <protozero/pbf_writer.hpp>

#include "base/string_store.h"
#include "formats/onnx/schema/schemas.h"

namespace anymps::onnx {

namespace {

using Message = protozero::pbf_writer;

// Field numbers of onnx.proto.
enum GraphField {
  kNode = 1,
  kGraphName = 2,
  kInitializer = 5,
  kGraphInput = 11,
  kGraphOutput = 12
};
enum NodeField { kInput = 1, kOutput = 2, kNodeName = 3, kOpType = 4, kAttribute = 5 };
enum AttributeField {
  kName = 1,
  kF = 2,
  kI = 3,
  kS = 4,
  kG = 6,
  kFloats = 7,
  kInts = 8,
  kStrings = 9,
  kTp = 14,
  kType = 20
};
enum AttributeType {
  kFloatType = 1,
  kIntType = 2,
  kStringType = 3,
  kGraphType = 5,
  kFloatsType = 6,
  kIntsType = 7,
  kStringsType = 8,
  kTypeProtoType = 13
};
enum TensorField { kDims = 1, kDataType = 2, kStringData = 6, kTensorName = 8, kRawData = 9 };
enum InfoField { kInfoName = 1, kInfoType = 2 };
enum TypeField { kTensorType = 1, kSequenceType = 4, kOptionalType = 9, kInnerType = 1 };
enum TensorTypeField { kElemType = 1, kShape = 2, kDim = 1, kValue = 1, kParam = 2 };

int bits_of(DType dtype) {
  switch (dtype) {
    case DType::kI2:
    case DType::kU2:
      return 2;
    case DType::kI4:
    case DType::kU4:
    case DType::kF4E2M1:
      return 4;
    default:
      return 8;
  }
}

// Narrow elements lie several in a byte, the first in its lowest bits.
std::string packed(const std::byte* data, int64_t count, int bits) {
  const int in_byte = 8 / bits;
  std::string bytes(static_cast<size_t>((count + in_byte - 1) / in_byte), '\0');
  for (int64_t i = 0; i < count; ++i) {
    const int code = static_cast<int>(data[i]) & ((1 << bits) - 1);
    char& byte = bytes[static_cast<size_t>(i / in_byte)];
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
  tensor.add_int32(kElemType, data_type_of(type.dtype));
  if (!type.ranked) return bytes;
  std::string shape;  // a message without fields counts too: a scalar, an extent that is not known
  for (const Dim& extent : type.shape) {
    std::string dim;
    if (extent.known())
      Message(dim).add_int64(kValue, extent.value());
    else if (symbols && is_name(extent.str()))
      Message(dim).add_string(kParam, extent.str());
    Message(shape).add_message(kDim, dim);
  }
  tensor.add_message(kShape, shape);
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
  message.add_string(kInfoName, info.name);
  message.add_message(kInfoType, type_bytes(info.type, symbols));
  return bytes;
}

void write_value(Message& to, const OutAttr& attr) {
  const auto kind = [&](AttributeType type) { to.add_int32(kType, type); };
  to.add_string(kName, attr.name);
  if (const auto* i = std::get_if<int64_t>(&attr.value)) {
    to.add_int64(kI, *i);
    kind(kIntType);
  } else if (const auto* f = std::get_if<double>(&attr.value)) {
    to.add_float(kF, static_cast<float>(*f));
    kind(kFloatType);
  } else if (const auto* s = std::get_if<std::string>(&attr.value)) {
    to.add_bytes(kS, *s);
    kind(kStringType);
  } else if (const auto* ints = std::get_if<Ints>(&attr.value)) {
    for (int64_t number : *ints) to.add_int64(kInts, number);
    kind(kIntsType);
  } else if (const auto* floats = std::get_if<std::vector<double>>(&attr.value)) {
    for (double number : *floats) to.add_float(kFloats, static_cast<float>(number));
    kind(kFloatsType);
  } else if (const auto* strings = std::get_if<Names>(&attr.value)) {
    for (const std::string& text : *strings) to.add_bytes(kStrings, text);
    kind(kStringsType);
  } else if (const auto* graph = std::get_if<OutGraph>(&attr.value)) {
    to.add_message(kG, graph->bytes);
    kind(kGraphType);
  } else {
    to.add_message(kTp, std::get<OutType>(attr.value).bytes);
    kind(kTypeProtoType);
  }
}

const std::vector<std::pair<DType, int32_t>>& numbers() {
  static const auto* kNumbers = new std::vector<std::pair<DType, int32_t>>{
      {DType::kF32, 1},         {DType::kU8, 2},          {DType::kI8, 3},
      {DType::kU16, 4},         {DType::kI16, 5},         {DType::kI32, 6},
      {DType::kI64, 7},         {DType::kString, 8},      {DType::kBool, 9},
      {DType::kF16, 10},        {DType::kF64, 11},        {DType::kU32, 12},
      {DType::kU64, 13},        {DType::kC64, 14},        {DType::kBF16, 16},
      {DType::kF8E4M3, 17},     {DType::kF8E4M3FNUZ, 18}, {DType::kF8E5M2, 19},
      {DType::kF8E5M2FNUZ, 20}, {DType::kU4, 21},         {DType::kI4, 22},
      {DType::kF4E2M1, 23},     {DType::kF8E8M0, 24},     {DType::kU2, 25},
      {DType::kI2, 26}};
  return *kNumbers;
}

// The type that an attribute gives to the result.
std::optional<DType> result_type(std::string_view op, const OutAttrs& attrs) {
  if (op != "Cast" && op != "EyeLike" && op != "SequenceEmpty") return std::nullopt;
  for (const OutAttr& attr : attrs)
    if (attr.name == "to" || attr.name == "dtype")
      for (const auto& [ours, theirs] : numbers())
        if (theirs == std::get<int64_t>(attr.value)) return ours;
  return std::nullopt;
}

}  // namespace

int32_t data_type_of(DType dtype) {
  for (const auto& [ours, theirs] : numbers())
    if (ours == dtype) return theirs;
  fail(Code::kUnsupported, "ONNX has no type {}", name(dtype));
}

std::string type_bytes(const ValueType& type, bool symbols) {
  std::string bytes = wrapped(kTensorType, tensor_type(type, symbols));
  if (type.container == Container::kMaps) fail(Code::kUnsupported, "maps are not written");
  if (type.container == Container::kSequence || type.container == Container::kOptionalSequence)
    bytes = wrapped(kSequenceType, wrapped(kInnerType, bytes));
  if (type.container == Container::kOptional || type.container == Container::kOptionalSequence)
    bytes = wrapped(kOptionalType, wrapped(kInnerType, bytes));
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
  Message node(graph, kNode);
  size_t count = inputs.size();
  while (count > 0 && inputs[count - 1].empty()) --count;  // absent ones at the end
  for (size_t i = 0; i < count; ++i) node.add_string(kInput, inputs[i]);
  for (const std::string& output : outputs) node.add_string(kOutput, output);
  node.add_string(kNodeName, outputs[0] + "/" + std::string(op));
  node.add_string(kOpType, op.data(), op.size());
  for (const OutAttr& attr : attrs) {
    Message written(node, kAttribute);
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
  Message tensor(graph, kInitializer);
  for (int64_t extent : constant.shape()) tensor.add_int64(kDims, extent);
  tensor.add_int32(kDataType, data_type_of(dtype));
  tensor.add_string(kTensorName, written);
  const int64_t count = constant.desc().count();
  const int bits = bits_of(dtype);
  if (dtype == DType::kString)
    for (const Text text :
         std::span(reinterpret_cast<const Text*>(bytes.get()), static_cast<size_t>(count)))
      tensor.add_bytes(kStringData, text_of(text));
  else if (bits < 8)
    tensor.add_bytes(kRawData, packed(bytes.get(), count, bits));
  else
    tensor.add_bytes(kRawData, reinterpret_cast<const char*>(bytes.get()), constant.bytes());
  return written;
}

std::string GraphWriter::bytes(const std::string& name, const std::vector<OutInfo>& inputs,
                               const std::vector<OutInfo>& outputs, bool symbols) const {
  std::string bytes = nodes_;
  Message graph(bytes);
  graph.add_string(kGraphName, name);
  bytes += initializers_;
  for (const OutInfo& info : inputs) graph.add_message(kGraphInput, info_bytes(info, symbols));
  for (const OutInfo& info : outputs) graph.add_message(kGraphOutput, info_bytes(info, symbols));
  return bytes;
}

}  // namespace anymps::onnx
