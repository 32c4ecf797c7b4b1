// SPDX-License-Identifier: Apache-2.0
// Elementwise nodes: arithmetic, comparison, logic, activations.
#include <cmath>
#include <limits>

#include "formats/executorch/payload/node_kinds.h"

namespace anymps::executorch {

namespace {

using field::Binary;
using field::Unary;

struct Operands {
  Value *a, *b;
  DType type;
};

// Both operands of a binary node, in the type in which PyTorch computes.
Operands operands(NodeCall& c) {
  Value *a = c.in(Binary::kInput1), *b = c.in(Binary::kInput2);
  const DType type = c.computed({a, b}, Binary::kOutput);
  return {c.as(a, type), c.as(b, type), type};
}

void binary_result(NodeCall& c, Value* y) { c.out(Binary::kOutput, y); }

// `logic` stands in for the op when both are bools; null: there is none.
void binary_node(NodeCall& c, const char* op, const char* logic) {
  const auto [a, b, type] = operands(c);
  if (type == DType::kBool && !logic) c.unsupported("bools are not supported");
  binary_result(c, c.add(type == DType::kBool ? logic : op, {a, b}));
}

void Mul(NodeCall& c) { binary_node(c, "mul", "logical_and"); }
void Min(NodeCall& c) { binary_node(c, "min", "logical_and"); }
void Max(NodeCall& c) { binary_node(c, "max", "logical_or"); }
void Pow(NodeCall& c) { binary_node(c, "pow", nullptr); }
void BitwiseAnd(NodeCall& c) { binary_node(c, "bitwise_and", "logical_and"); }
void BitwiseOr(NodeCall& c) { binary_node(c, "bitwise_or", "logical_or"); }
void BitwiseXor(NodeCall& c) { binary_node(c, "bitwise_xor", "logical_xor"); }
void Fmod(NodeCall& c) { binary_node(c, "mod", nullptr); }
void Remainder(NodeCall& c) { binary_node(c, "floor_mod", nullptr); }

void Atan2(NodeCall& c) {
  Value *a = c.in(Binary::kInput1), *b = c.in(Binary::kInput2);
  DType type = c.promoted({a, b});
  if (!is_float(type)) type = DType::kF32;
  binary_result(c, c.add("atan2", {c.as(a, type), c.as(b, type)}));
}

// a + alpha * b
void scaled(NodeCall& c, const char* op, const char* logic) {
  auto [a, b, type] = operands(c);
  const double alpha = c.f(Binary::kAlpha);
  if (type == DType::kBool) {
    if (!logic || alpha != 1) c.unsupported("bools are not supported");
    return binary_result(c, c.add(logic, {a, b}));
  }
  c.check(is_float(type) || type == DType::kC64 || alpha == std::trunc(alpha),
          "alpha is {}, but the values are integers", alpha);
  if (alpha != 1) b = c.add("mul", {b, c.as(c.graph.scalar(DType::kF64, alpha), type)});
  binary_result(c, c.add(op, {a, b}));
}

void Add(NodeCall& c) { scaled(c, "add", "logical_or"); }
void Sub(NodeCall& c) { scaled(c, "sub", nullptr); }

// As PyTorch divides: by way of the remainder, which is exact where the quotient is rounded.
Value* floor_div(NodeCall& c, Value* a, Value* b) {
  Value* zero = c.scalar_like(a, 0);
  Value* rest = c.add("mod", {a, b});
  Value* whole = c.add("rint", {c.add("div", {c.add("sub", {a, rest}), b})});
  Value* signs_differ =
      c.add("logical_xor", {c.add("less", {rest, zero}), c.add("less", {b, zero})});
  Value* below = c.add("logical_and", {c.add("not_equal", {rest, zero}), signs_differ});
  whole = c.add("sub", {whole, c.cast(below, a->dtype())});
  return c.add("where", {c.add("equal", {b, zero}), c.add("div", {a, b}), whole});
}

void Div(NodeCall& c) {
  Value *a = c.in(Binary::kInput1), *b = c.in(Binary::kInput2);
  std::string rounding = c.s(Binary::kRounding);
  DType type = c.computed({a, b}, Binary::kOutput);
  // A quotient is a float unless it is rounded; the exporter drops the mode of floor_divide.
  if (rounding.empty() && is_int(type)) rounding = "floor";
  a = c.as(a, type);
  b = c.as(b, type);
  if (rounding.empty()) return binary_result(c, c.add("div", {a, b}));
  c.check(rounding == "floor" || rounding == "trunc", "rounding_mode '{}' is not floor or trunc",
          rounding);
  if (rounding == "floor" && is_float(type)) return binary_result(c, floor_div(c, a, b));
  binary_result(c, c.add("div", {a, b}, {{"rounding", rounding}}));
}

void compare(NodeCall& c, const char* op, bool orders) {
  Value *a = c.in(Binary::kInput1), *b = c.in(Binary::kInput2);
  DType type = c.promoted({a, b});
  if (type == DType::kBool && orders) type = DType::kU8;
  binary_result(c, c.add(op, {c.as(a, type), c.as(b, type)}));
}

void Eq(NodeCall& c) { compare(c, "equal", false); }
void Ne(NodeCall& c) { compare(c, "not_equal", false); }
void Ge(NodeCall& c) { compare(c, "greater_equal", true); }
void Gt(NodeCall& c) { compare(c, "greater", true); }
void Le(NodeCall& c) { compare(c, "less_equal", true); }
void Lt(NodeCall& c) { compare(c, "less", true); }

void LogicalNot(NodeCall& c) {
  c.out(Unary::kOutput, c.add("logical_not", {c.as(c.in(Unary::kInput), DType::kBool)}));
}

void BitwiseNot(NodeCall& c) {
  Value* x = c.in(Unary::kInput);
  const char* op = x->dtype() == DType::kBool ? "logical_not" : "bitwise_not";
  c.out(Unary::kOutput, c.add(op, {x}));
}

void Where(NodeCall& c) {
  using F = field::Ternary;
  Value *a = c.in(F::kInput2), *b = c.in(F::kInput3);
  const DType type = c.computed({a, b}, F::kOutput);
  Value* condition = c.as(c.in(F::kInput1), DType::kBool);
  c.out(F::kOutput, c.add("where", {condition, c.as(a, type), c.as(b, type)}));
}

void limit(NodeCall& c, double low, double high) {
  Value* x = c.in(Unary::kInput);
  x = c.as(x, c.computed({x}, Unary::kOutput));
  c.out(Unary::kOutput, c.add("clamp", {x}, {{"min", low}, {"max", high}}));
}

// The bounds are in a table of the node, not in that of its kind.
void Clamp(NodeCall& c) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto bounds = c.node.maybe(field::MpsNode::kMinMax, "MPSMinMax");
  if (!bounds) return limit(c, -kInfinity, kInfinity);
  limit(c, double{bounds->scalar<float>(field::MpsMinMax::kMin)},
        double{bounds->scalar<float>(field::MpsMinMax::kMax)});
}

void HardTanh(NodeCall& c) { limit(c, c.f(field::HardTanh::kMin), c.f(field::HardTanh::kMax)); }

// Its table has room for a second input that it does not have.
void ReLU(NodeCall& c) { binary_result(c, c.add("relu", {c.in(Binary::kInput1)})); }

void GELU(NodeCall& c) {
  std::string approximate = c.s(field::Gelu::kApproximate);
  if (approximate.empty()) approximate = "none";
  c.check(approximate == "none" || approximate == "tanh", "approximate '{}' is not none or tanh",
          approximate);
  c.out(Unary::kOutput, c.add("gelu", {c.in(Unary::kInput)}, {{"approximate", approximate}}));
}

void LeakyReLU(NodeCall& c) {
  c.out(Unary::kOutput,
        c.add("leaky_relu", {c.in(Unary::kInput)}, {{"alpha", c.f(field::LeakyRelu::kSlope)}}));
}

const NodeConverters kMpsMath{
    {"MPSAdd", Add},
    {"MPSAtan2", Atan2},
    {"MPSBitwiseAnd", BitwiseAnd},
    {"MPSBitwiseNot", BitwiseNot},
    {"MPSBitwiseOr", BitwiseOr},
    {"MPSBitwiseXor", BitwiseXor},
    {"MPSClamp", Clamp},
    {"MPSDiv", Div},
    {"MPSEq", Eq},
    {"MPSFmod", Fmod},
    {"MPSGELU", GELU},
    {"MPSGe", Ge},
    {"MPSGt", Gt},
    {"MPSHardTanh", HardTanh},
    {"MPSLe", Le},
    {"MPSLeakyReLU", LeakyReLU},
    {"MPSLogicalNot", LogicalNot},
    {"MPSLt", Lt},
    {"MPSMax", Max},
    {"MPSMin", Min},
    {"MPSMinimum", Min},
    {"MPSMul", Mul},
    {"MPSNe", Ne},
    {"MPSPow", Pow},
    {"MPSReLU", ReLU},
    {"MPSRemainder", Remainder},
    {"MPSSub", Sub},
    {"MPSWhere", Where},
};

}  // namespace

}  // namespace anymps::executorch
