// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparison, logic, activations, casts.
#include <cmath>

#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

std::string with_number(Emit& e, const char* op, const std::string& x, double number) {
  return e.add(op, {x, e.number(e.dtype(), number)});
}

ONNX_WRITE(exp2) { return {e.add("Pow", {e.number(e.dtype(), 2), e.in(0)})}; }
ONNX_WRITE(exp10) { return {e.add("Pow", {e.number(e.dtype(), 10), e.in(0)})}; }
ONNX_WRITE(expm1) { return {with_number(e, "Sub", e.add("Exp", {e.in(0)}), 1)}; }
ONNX_WRITE(log2) { return {with_number(e, "Div", e.add("Log", {e.in(0)}), std::log(2.0))}; }
ONNX_WRITE(log10) { return {with_number(e, "Div", e.add("Log", {e.in(0)}), std::log(10.0))}; }
ONNX_WRITE(log1p) { return {e.add("Log", {with_number(e, "Add", e.in(0), 1)})}; }
ONNX_WRITE(square) { return {e.add("Mul", {e.in(0), e.in(0)})}; }
ONNX_WRITE(rsqrt) { return {e.add("Reciprocal", {e.add("Sqrt", {e.in(0)})})}; }

std::string truncated(Emit& e, const std::string& x, double more) {
  std::string size = e.add("Abs", {x});
  if (more != 0) size = with_number(e, "Add", size, more);
  return e.add("Mul", {e.add("Sign", {x}), e.add("Floor", {size})});
}
ONNX_WRITE(round) {
  return {is_float(e.dtype()) ? truncated(e, e.in(0), 0.5) : e.add("Identity", {e.in(0)})};
}
ONNX_WRITE(trunc) {
  return {is_float(e.dtype()) ? truncated(e, e.in(0), 0) : e.add("Identity", {e.in(0)})};
}
// The same as the op on floats; integers are whole already.
Names whole(Emit& e, const char* op) {
  return {e.add(is_float(e.dtype()) ? op : "Identity", {e.in(0)})};
}
ONNX_WRITE(ceil) { return whole(e, "Ceil"); }
ONNX_WRITE(floor) { return whole(e, "Floor"); }
ONNX_WRITE(rint) { return whole(e, "Round"); }

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
ONNX_WRITE(floor_mod) { return {floor_mod_of(e)}; }
ONNX_WRITE(mod) { return {e.add("Mod", {e.in(0), e.in(1)}, {{"fmod", 1}})}; }

ONNX_WRITE(div) {
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
ONNX_WRITE(max) { return extremum(e, "Max"); }
ONNX_WRITE(min) { return extremum(e, "Min"); }

ONNX_WRITE(is_inf) {
  return {e.add("IsInf", {e.in(0)},
                {{"detect_positive", e.attrs().b("positive")},
                 {"detect_negative", e.attrs().b("negative")}})};
}
ONNX_WRITE(is_finite) {
  return {e.add("Not", {e.add("Or", {e.add("IsNaN", {e.in(0)}), e.add("IsInf", {e.in(0)})})})};
}

std::string negated(Emit& e, const char* op) { return e.add("Not", {e.add(op, e.all())}); }
ONNX_WRITE(not_equal) { return {negated(e, "Equal")}; }
ONNX_WRITE(logical_nand) { return {negated(e, "And")}; }
ONNX_WRITE(logical_nor) { return {negated(e, "Or")}; }
ONNX_WRITE(logical_xnor) { return {negated(e, "Xor")}; }

ONNX_WRITE(clamp) {
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

ONNX_WRITE(cast) {
  OutAttrs attrs = {{"to", e.attrs().dtype("dtype")}};
  if (!e.attrs().b("saturate")) attrs.emplace_back("saturate", 0);
  return {e.add("Cast", {e.in(0)}, attrs)};
}

ONNX_WRITE(silu) { return {e.add("Mul", {e.in(0), e.add("Sigmoid", {e.in(0)})})}; }

Names shift(Emit& e, const char* direction) {
  if (contains(kSigned, e.dtype())) e.refuse("BitShift is for unsigned integers");
  return {e.add("BitShift", e.all(), {{"direction", direction}})};
}

ONNX_WRITE(left_shift) { return shift(e, "LEFT"); }

ONNX_WRITE(right_shift) { return shift(e, "RIGHT"); }

}  // namespace

}  // namespace anymps::onnx
