// SPDX-License-Identifier: Apache-2.0
#include "exporters/onnx/emit.h"

#include <cstring>
#include <protozero/pbf_writer.hpp>

#include "ops/fused_activation.h"

namespace anymps::onnx {

namespace {

// Field numbers of onnx.proto.
enum GraphField { kNode = 1, kInitializer = 5 };
enum NodeField { kInput = 1, kOutput = 2, kNodeName = 3, kOpType = 4, kAttribute = 5 };
enum AttributeField { kName = 1, kF = 2, kI = 3, kS = 4, kInts = 8, kType = 20 };
enum AttributeType { kFloatType = 1, kIntType = 2, kStringType = 3, kIntsType = 7 };
enum TensorField { kDims = 1, kDataType = 2, kTensorName = 8, kRawData = 9 };

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

}  // namespace

int32_t data_type_of(DType dtype) {
  static const std::map<DType, int32_t> kNumbers = {
      {DType::kF32, 1},         {DType::kU8, 2},          {DType::kI8, 3},
      {DType::kU16, 4},         {DType::kI16, 5},         {DType::kI32, 6},
      {DType::kI64, 7},         {DType::kString, 8},      {DType::kBool, 9},
      {DType::kF16, 10},        {DType::kF64, 11},        {DType::kU32, 12},
      {DType::kU64, 13},        {DType::kC64, 14},        {DType::kBF16, 16},
      {DType::kF8E4M3, 17},     {DType::kF8E4M3FNUZ, 18}, {DType::kF8E5M2, 19},
      {DType::kF8E5M2FNUZ, 20}, {DType::kU4, 21},         {DType::kI4, 22},
      {DType::kF4E2M1, 23},     {DType::kF8E8M0, 24},     {DType::kU2, 25},
      {DType::kI2, 26}};
  auto found = kNumbers.find(dtype);
  if (found == kNumbers.end()) fail(Code::kUnsupported, "ONNX has no type {}", name(dtype));
  return found->second;
}

std::string GraphWriter::unique(const std::string& stem) {
  std::string name = stem;
  for (size_t i = 1; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", stem, i);
  return name;
}

void GraphWriter::write_node(std::string_view op, const Names& inputs, const Names& outputs,
                             const OutAttrs& attrs) {
  protozero::pbf_writer graph(nodes);
  protozero::pbf_writer node(graph, kNode);
  size_t count = inputs.size();
  while (count > 0 && inputs[count - 1].empty()) --count;  // absent ones at the end
  for (size_t i = 0; i < count; ++i) node.add_string(kInput, inputs[i]);
  for (const std::string& output : outputs) node.add_string(kOutput, output);
  node.add_string(kNodeName, outputs[0] + "/" + std::string(op));
  node.add_string(kOpType, op.data(), op.size());
  for (const OutAttr& attr : attrs) {
    protozero::pbf_writer written(node, kAttribute);
    written.add_string(kName, attr.name);
    if (const auto* i = std::get_if<int64_t>(&attr.value)) {
      written.add_int64(kI, *i);
      written.add_int32(kType, kIntType);
    } else if (const auto* f = std::get_if<double>(&attr.value)) {
      written.add_float(kF, static_cast<float>(*f));
      written.add_int32(kType, kFloatType);
    } else if (const auto* s = std::get_if<std::string>(&attr.value)) {
      written.add_bytes(kS, *s);
      written.add_int32(kType, kStringType);
    } else {
      for (int64_t i : std::get<Ints>(attr.value)) written.add_int64(kInts, i);
      written.add_int32(kType, kIntsType);
    }
  }
}

Names GraphWriter::node(std::string_view op, const Names& inputs, const OutAttrs& attrs,
                        size_t outputs, const std::string& stem) {
  Names names;
  for (size_t i = 0; i < outputs; ++i) names.push_back(unique(stem));
  write_node(op, inputs, names, attrs);
  return names;
}

void GraphWriter::alias(const std::string& from, const std::string& to) {
  write_node("Identity", {from}, {to}, {});
}

std::string GraphWriter::constant(const anymps::Constant& constant, const std::string& name) {
  const std::string written = unique(name);
  const DType dtype = constant.dtype();
  if (dtype == DType::kString) fail(Code::kUnsupported, "constants of strings are not supported");
  const auto bytes = constant.data();
  protozero::pbf_writer graph(initializers);
  protozero::pbf_writer tensor(graph, kInitializer);
  for (int64_t extent : constant.shape()) tensor.add_int64(kDims, extent);
  tensor.add_int32(kDataType, data_type_of(dtype));
  tensor.add_string(kTensorName, written);
  const int bits = bits_of(dtype);
  if (bits < 8)
    tensor.add_bytes(kRawData, packed(bytes.get(), constant.desc().count(), bits));
  else
    tensor.add_bytes(kRawData, reinterpret_cast<const char*>(bytes.get()), constant.bytes());
  return written;
}

void ReadAttrs::check_all_read() const {
  const std::vector<AttrSpec>& specs = attrs_.op()->attrs;
  for (size_t i = 0; i < specs.size(); ++i)
    if (!read_.contains(specs[i].name) && attrs_.values()[i] != specs[i].default_value)
      fail(Code::kUnsupported, "its attribute '{}' is {}", specs[i].name,
           to_string(specs[i].kind, attrs_.values()[i]));
}

const std::string& Emit::in(size_t i) const {
  static const std::string kAbsent;
  read_.insert(i);
  return i < inputs_.size() ? inputs_[i] : kAbsent;
}

Names Emit::all() const {
  for (size_t i = 0; i < inputs_.size(); ++i) read_.insert(i);
  return inputs_;
}

void Emit::check_all_read() const {
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!inputs_[i].empty() && !read_.contains(i)) refuse("its input {} is not written", i);
  attrs_.check_all_read();
}

int64_t Emit::rank(size_t i) const {
  if (!value(i).type.ranked) refuse("the rank of input {} is not known", i);
  return static_cast<int64_t>(value(i).shape().size());
}

std::string Emit::add(std::string_view op, const Names& inputs, const OutAttrs& attrs) {
  return add_all(op, inputs, attrs, 1)[0];
}

Names Emit::add_all(std::string_view op, const Names& inputs, const OutAttrs& attrs,
                    size_t outputs) {
  return writer_.node(op, inputs, attrs, outputs, node.output()->name);
}

std::string Emit::ints(const Ints& values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return writer_.constant(*anymps::Constant::of<int64_t>(shape, values), "ints");
}

std::string Emit::floats(const std::vector<double>& values) {
  const std::vector<float> narrow(values.begin(), values.end());
  const Shape shape{static_cast<int64_t>(values.size())};
  return writer_.constant(*anymps::Constant::of<float>(shape, narrow), "floats");
}

std::string Emit::number(DType dtype, double value) {
  anymps::Graph one;
  return writer_.constant(*one.scalar(dtype, value)->constant, "number");
}

std::string Emit::cast(const std::string& x, DType to) {
  return add("Cast", {x}, {{"to", int64_t{data_type_of(to)}}});
}

std::string Emit::transpose(const std::string& x, const Ints& perm) {
  return add("Transpose", {x}, {{"perm", perm}});
}

std::string Emit::list(size_t i, const char* attr) {
  return has(i) ? cast(in(i), DType::kI64) : ints(attrs().ints(attr));
}

std::string activated(Emit& e, const std::string& x, const char* alpha, const char* beta) {
  const double a = e.attrs().f(alpha), b = e.attrs().f(beta);
  const DType dtype = e.node.output()->dtype();
  switch (parse_activation(e.attrs().s("activation"))) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return e.add("Relu", {x});
    case Activation::kClamp:
      return e.add("Clip", {x, e.number(dtype, a), e.number(dtype, b)});
    case Activation::kLeakyRelu:
      return e.add("LeakyRelu", {x}, {{"alpha", a}});
    case Activation::kElu:
      return e.add("Elu", {x}, {{"alpha", a}});
    case Activation::kGelu:
      return e.add("Gelu", {x});
    case Activation::kGeluTanh:
      return e.add("Gelu", {x}, {{"approximate", "tanh"}});
    case Activation::kSilu:
      return e.add("Mul", {x, e.add("Sigmoid", {x})});
    case Activation::kSigmoid:
      return e.add("Sigmoid", {x});
    case Activation::kTanh:
      return e.add("Tanh", {x});
    case Activation::kHardSwish:
      return e.add("HardSwish", {x});
    case Activation::kHardSigmoid:
      return e.add("HardSigmoid", {x}, {{"alpha", a}, {"beta", b}});
  }
  e.refuse("the activation is not known");
}

const Writer* find_writer(std::string_view op) {
  static const auto* kTable = [] {
    auto* table = new std::map<std::string_view, const Writer*>();
    for (auto family : {data_writers(), elementwise_writers(), layer_writers(), move_writers()})
      for (const Writer& writer : family) table->emplace(writer.op, &writer);
    return table;
  }();
  auto found = kTable->find(op);
  return found == kTable->end() ? nullptr : found->second;
}

}  // namespace anymps::onnx
