// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparison, logic, activations, casts.
#include <cmath>

#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

std::string with_number(Emit& e, const char* op, const std::string& x, double number) {
  return e.add(op, {x, e.number(e.dtype(), number)});
}

Names exp2(Emit& e) { return {e.add("Pow", {e.number(e.dtype(), 2), e.in(0)})}; }
Names exp10(Emit& e) { return {e.add("Pow", {e.number(e.dtype(), 10), e.in(0)})}; }
Names expm1(Emit& e) { return {with_number(e, "Sub", e.add("Exp", {e.in(0)}), 1)}; }
Names log2(Emit& e) { return {with_number(e, "Div", e.add("Log", {e.in(0)}), std::log(2.0))}; }
Names log10(Emit& e) { return {with_number(e, "Div", e.add("Log", {e.in(0)}), std::log(10.0))}; }
Names log1p(Emit& e) { return {e.add("Log", {with_number(e, "Add", e.in(0), 1)})}; }
Names square(Emit& e) { return {e.add("Mul", {e.in(0), e.in(0)})}; }
Names rsqrt(Emit& e) { return {e.add("Reciprocal", {e.add("Sqrt", {e.in(0)})})}; }

std::string truncated(Emit& e, const std::string& x, double more) {
  std::string size = e.add("Abs", {x});
  if (more != 0) size = with_number(e, "Add", size, more);
  return e.add("Mul", {e.add("Sign", {x}), e.add("Floor", {size})});
}
Names round(Emit& e) {
  return {is_float(e.dtype()) ? truncated(e, e.in(0), 0.5) : e.add("Identity", {e.in(0)})};
}
Names trunc(Emit& e) {
  return {is_float(e.dtype()) ? truncated(e, e.in(0), 0) : e.add("Identity", {e.in(0)})};
}
// The same as the op on floats; integers are whole already.
template <const char*& Op>
Names whole(Emit& e) {
  return {e.add(is_float(e.dtype()) ? Op : "Identity", {e.in(0)})};
}
const char *kCeil = "Ceil", *kFloor = "Floor", *kRound = "Round";

std::string floor_mod_of(Emit& e) {
  if (!is_float(e.dtype())) return e.add("Mod", {e.in(0), e.in(1)});
  // The remainder has the sign of a; where that is not b's, it is moved by b. A zero has b's sign.
  const std::string rest = e.add("Mod", {e.in(0), e.in(1)}, {{"fmod", 1}});
  const std::string zero = e.number(e.dtype(), 0), none = e.add("Equal", {rest, zero});
  const std::string apart =
      e.add("Xor", {e.add("Less", {rest, zero}), e.add("Less", {e.in(1), zero})});
  const std::string moved = e.add("Where", {apart, e.add("Add", {rest, e.in(1)}), rest});
  return e.add("Where", {none, e.add("Mul", {e.add("Sign", {e.in(1)}), zero}), moved});
}
Names floor_mod(Emit& e) { return {floor_mod_of(e)}; }
Names mod(Emit& e) { return {e.add("Mod", {e.in(0), e.in(1)}, {{"fmod", 1}})}; }

Names div(Emit& e) {
  const std::string& rounding = e.attrs().s("rounding");
  const bool real = is_float(e.dtype());
  if (rounding == "none" || (rounding == "trunc" && !real))
    return {e.add("Div", {e.in(0), e.in(1)})};
  if (!real) return {e.add("Div", {e.add("Sub", {e.in(0), floor_mod_of(e)}), e.in(1)})};
  const std::string quotient = e.add("Div", {e.in(0), e.in(1)});
  return {rounding == "floor" ? e.add("Floor", {quotient}) : truncated(e, quotient, 0)};
}

Names extremum(Emit& e, const char* op) {
  if (!e.attrs().b("propagate_nan") && is_float(e.dtype())) e.refuse("it passes over NaN");
  return {e.add(op, {e.in(0), e.in(1)})};
}
Names max(Emit& e) { return extremum(e, "Max"); }
Names min(Emit& e) { return extremum(e, "Min"); }

Names is_inf(Emit& e) {
  return {e.add("IsInf", {e.in(0)},
                {{"detect_positive", e.attrs().b("positive")},
                 {"detect_negative", e.attrs().b("negative")}})};
}
Names is_finite(Emit& e) {
  return {e.add("Not", {e.add("Or", {e.add("IsNaN", {e.in(0)}), e.add("IsInf", {e.in(0)})})})};
}

std::string negated(Emit& e, const char* op) { return e.add("Not", {e.add(op, e.all())}); }
Names not_equal(Emit& e) { return {negated(e, "Equal")}; }
Names logical_nand(Emit& e) { return {negated(e, "And")}; }
Names logical_nor(Emit& e) { return {negated(e, "Or")}; }
Names logical_xnor(Emit& e) { return {negated(e, "Xor")}; }

Names clamp(Emit& e) {
  Names inputs = {e.in(0)};
  static const char* kBounds[] = {"min", "max"};
  for (size_t i = 0; i < 2; ++i) {
    const double bound = e.attrs().f(kBounds[i]);
    if (e.has(i + 1) && e.rank(i + 1) > 0) e.refuse("a bound is not a scalar");
    inputs.push_back(e.has(i + 1)        ? e.in(i + 1)
                     : std::isinf(bound) ? std::string()
                                         : e.number(e.dtype(), bound));
  }
  return {e.add("Clip", inputs)};
}

Names cast(Emit& e) {
  OutAttrs attrs = {{"to", e.attrs().dtype("dtype")}};
  if (!e.attrs().b("saturate")) attrs.emplace_back("saturate", 0);
  return {e.add("Cast", {e.in(0)}, attrs)};
}

template <const char*& Op>
Names with_alpha(Emit& e) {
  return {e.add(Op, {e.in(0)}, {{"alpha", e.attrs().f("alpha")}})};
}
const char *kLeakyRelu = "LeakyRelu", *kElu = "Elu", *kCelu = "Celu",
           *kThresholdedRelu = "ThresholdedRelu";

Names selu(Emit& e) {
  return {
      e.add("Selu", {e.in(0)}, {{"alpha", e.attrs().f("alpha")}, {"gamma", e.attrs().f("gamma")}})};
}
Names gelu(Emit& e) {
  return {e.add("Gelu", {e.in(0)}, {{"approximate", e.attrs().s("approximate")}})};
}
Names silu(Emit& e) { return {e.add("Mul", {e.in(0), e.add("Sigmoid", {e.in(0)})})}; }
Names hard_sigmoid(Emit& e) {
  return {e.add("HardSigmoid", {e.in(0)},
                {{"alpha", e.attrs().f("alpha")}, {"beta", e.attrs().f("beta")}})};
}
Names softmax(Emit& e) { return {e.add("Softmax", {e.in(0)}, {{"axis", e.attrs().i("axis")}})}; }
Names log_softmax(Emit& e) {
  return {e.add("LogSoftmax", {e.in(0)}, {{"axis", e.attrs().i("axis")}})};
}

const Writer kElementwiseTable[] = {
    {"abs", "Abs"},
    {"acos", "Acos"},
    {"acosh", "Acosh"},
    {"add", "Add"},
    {"asin", "Asin"},
    {"asinh", "Asinh"},
    {"atan", "Atan"},
    {"atanh", "Atanh"},
    {"cast", cast},
    {"ceil", whole<kCeil>},
    {"celu", with_alpha<kCelu>},
    {"clamp", clamp},
    {"cos", "Cos"},
    {"cosh", "Cosh"},
    {"div", div},
    {"elu", with_alpha<kElu>},
    {"equal", "Equal"},
    {"erf", "Erf"},
    {"exp", "Exp"},
    {"exp10", exp10},
    {"exp2", exp2},
    {"expm1", expm1},
    {"floor", whole<kFloor>},
    {"floor_mod", floor_mod},
    {"gelu", gelu},
    {"greater", "Greater"},
    {"greater_equal", "GreaterOrEqual"},
    {"hard_sigmoid", hard_sigmoid},
    {"hard_swish", "HardSwish"},
    {"identity", "Identity"},
    {"is_finite", is_finite},
    {"is_inf", is_inf},
    {"is_nan", "IsNaN"},
    {"leaky_relu", with_alpha<kLeakyRelu>},
    {"less", "Less"},
    {"less_equal", "LessOrEqual"},
    {"log", "Log"},
    {"log10", log10},
    {"log1p", log1p},
    {"log2", log2},
    {"log_softmax", log_softmax},
    {"logical_and", "And"},
    {"logical_nand", logical_nand},
    {"logical_nor", logical_nor},
    {"logical_not", "Not"},
    {"logical_or", "Or"},
    {"logical_xnor", logical_xnor},
    {"logical_xor", "Xor"},
    {"max", max},
    {"min", min},
    {"mish", "Mish"},
    {"mod", mod},
    {"mul", "Mul"},
    {"neg", "Neg"},
    {"not_equal", not_equal},
    {"pow", "Pow"},
    {"prelu", "PRelu"},
    {"reciprocal", "Reciprocal"},
    {"relu", "Relu"},
    {"rint", whole<kRound>},
    {"round", round},
    {"rsqrt", rsqrt},
    {"selu", selu},
    {"sigmoid", "Sigmoid"},
    {"sign", "Sign"},
    {"silu", silu},
    {"sin", "Sin"},
    {"sinh", "Sinh"},
    {"softmax", softmax},
    {"softplus", "Softplus"},
    {"softsign", "Softsign"},
    {"sqrt", "Sqrt"},
    {"square", square},
    {"sub", "Sub"},
    {"tan", "Tan"},
    {"tanh", "Tanh"},
    {"thresholded_relu", with_alpha<kThresholdedRelu>},
    {"trunc", trunc},
    {"where", "Where"},
};

}  // namespace

std::span<const Writer> elementwise_writers() { return kElementwiseTable; }

}  // namespace anymps::onnx
