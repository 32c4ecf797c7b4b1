// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/write/emit.h"

#include <numeric>
#include <unordered_map>

#include "semantics/fused_activation.h"

namespace anymps::onnx {

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
  return std::ssize(value(i).shape());
}

std::string Emit::add(std::string_view op, const Names& inputs, const OutAttrs& attrs) {
  return add_all(op, inputs, attrs, 1)[0];
}

Names Emit::add_all(std::string_view op, const Names& inputs, const OutAttrs& attrs,
                    size_t outputs) {
  return writer_.node(op, inputs, attrs, outputs, node.output()->name);
}

std::string Emit::ints(const Ints& values) {
  const Shape shape{std::ssize(values)};
  return writer_.constant(*anymps::Constant::of<int64_t>(shape, values), "ints");
}

std::string Emit::floats(const std::vector<double>& values) {
  const std::vector<float> narrow(values.begin(), values.end());
  const Shape shape{std::ssize(values)};
  return writer_.constant(*anymps::Constant::of<float>(shape, narrow), "floats");
}

std::string Emit::number(DType dtype, double value) {
  anymps::Graph one;
  return writer_.constant(*one.scalar(dtype, value)->constant, "number");
}

std::string Emit::cast(const std::string& x, DType to) {
  if (writer_.dtype_of(x) == to) return x;
  return add("Cast", {x}, {{"to", to}});
}

std::string Emit::transpose(const std::string& x, const Ints& perm) {
  return add("Transpose", {x}, {{"perm", perm}});
}

std::string Emit::list(size_t i, const char* attr) {
  return has(i) ? cast(in(i), DType::kI64) : ints(attrs().ints(attr));
}

std::string Emit::scalar(size_t i) {
  const std::string number = cast(in(i), DType::kI64);
  const bool plain = value(i).type.ranked && value(i).shape().empty();
  return plain ? number : add("Reshape", {number, ints({})});
}

Names Emit::inlined(const anymps::Graph& body, const Names& inputs) {
  return write_nodes(writer_, body, inputs);
}

OutGraph Emit::graph(const std::vector<ValueType>& inputs, const std::vector<ValueType>& outputs,
                     const Body& write) {
  GraphWriter writer(writer_.model());
  Emit inner(writer, node, inputs_);
  std::vector<OutInfo> in, out;
  Names names;
  for (const ValueType& type : inputs) {
    names.push_back(writer.unique(node.output()->name + "_in"));
    writer.set_dtype(names.back(), type.dtype);
    in.push_back({names.back(), type});
  }
  const Names results = write(inner, names);
  // A result is made by a node of the graph itself.
  for (size_t i = 0; i < outputs.size(); ++i) {
    out.push_back({writer.unique(node.output()->name + "_out"), outputs[i]});
    writer.alias(results.at(i), out.back().name);
  }
  return {writer.bytes(node.output()->name, in, out, false)};
}

Ints counted(int64_t count) {
  Ints list(count);
  std::iota(list.begin(), list.end(), 0);
  return list;
}

std::string last_two_swapped(Emit& e, size_t i) {
  Ints perm = counted(e.rank(i));
  if (perm.size() < 2) return e.in(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return e.transpose(e.in(i), perm);
}

std::string Layout::first(const std::string& x, int64_t rank) const {
  if (!last) return x;
  Ints perm = counted(rank);
  perm.insert(perm.begin() + 1, rank - 1);
  perm.pop_back();
  return e.transpose(x, perm);
}

std::string Layout::back(const std::string& y, int64_t rank) const {
  if (!last) return y;
  Ints perm = counted(rank);
  perm.erase(perm.begin() + 1);
  perm.push_back(1);
  return e.transpose(y, perm);
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

namespace {

using WriteTable = std::unordered_map<std::string_view, Write>;

WriteTable& write_table() {
  static auto* table = new WriteTable();
  return *table;
}

OutAttr attr_of(const Emit& e, const AttrSpec& spec) {
  const char* name = spec.name.c_str();
  switch (spec.kind) {
    case AttrKind::kInt:
      return {spec.name, e.attrs().i(name)};
    case AttrKind::kBool:
      return {spec.name, e.attrs().b(name)};
    case AttrKind::kFloat:
      return {spec.name, e.attrs().f(name)};
    case AttrKind::kString:
      return {spec.name, e.attrs().s(name)};
    default:
      fail(Code::kInternal, "[onnx] attribute '{}' of {} needs a writer", name, e.node.op->name);
  }
}

Names write_same(Emit& e) {
  const Op& op = *e.node.op;
  OutAttrs attrs;
  for (const std::string& name : op.onnx_attrs)
    attrs.push_back(attr_of(e, op.attrs[op.attr_index(name)]));
  return {e.add(op.onnx, e.all(), attrs)};
}

}  // namespace

WriteRegistrar::WriteRegistrar(const char* op, Write write) {
  if (!write_table().emplace(op, write).second)
    fail(Code::kInternal, "[onnx] {} is written in two ways", op);
}

Write find_write(const Op& op) {
  const auto found = write_table().find(op.name);
  if (found != write_table().end()) return found->second;
  return op.onnx.empty() ? nullptr : write_same;
}

}  // namespace anymps::onnx
