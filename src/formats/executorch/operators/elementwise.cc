// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of torch: arithmetic, comparison, logic, bits. Operands are brought to the
// dtype that torch's rules of promotion give; bools are computed as integers or with logic.
#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

bool is_integral(DType dtype) { return is_int(dtype) || dtype == DType::kBool; }

// Rounding leaves whole numbers as they are.
Values rounding(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {is_integral(x->dtype()) ? x : c.add(c.engine_op, {x})};
}

// Of a bool: itself. NaN has no sign.
Values sign(KernelArguments& c) {
  Value* x = c.tensor(0);
  if (x->dtype() == DType::kBool) return {x};
  if (!is_float(x->dtype())) return {c.add("sign", {x})};
  return {c.add("where", {c.add("is_nan", {x}), c.scalar_like(x, 0), c.add("sign", {x})})};
}

Values abs(KernelArguments& c) {
  Value* x = c.tensor(0);
  if (x->dtype() == DType::kC64) return {c.add("complex_abs", {x})};
  return {x->dtype() == DType::kBool ? x : c.add("abs", {x})};
}

// An integer is neither NaN nor an infinity.
Values float_test(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {is_integral(x->dtype()) ? c.add("not_equal", {x, x}) : c.add(c.engine_op, {x})};
}

Values isfinite(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {is_integral(x->dtype()) ? c.add("equal", {x, x}) : c.add("is_finite", {x})};
}

Values logit(KernelArguments& c) {
  Value* x = c.tensor(0);
  x = c.cast(x, wide_dtype(float_dtype(x->dtype())));
  if (const auto eps = c.maybe_f(1); eps && *eps >= 0)
    x = c.add("clamp", {x}, {{"min", *eps}, {"max", 1 - *eps}});
  Value* one = c.scalar_like(x, 1);
  return {c.add("log", {c.add("div", {x, c.add("sub", {one, x})})})};
}

// Two operands, either of which may be a number. An op that has none for bools computes with i32.
Value* binary(KernelArguments& c, std::string_view op, size_t a, size_t b) {
  const DType common = common_dtype(c, {a, b});
  const DType computed = common == DType::kBool ? DType::kI32 : common;
  return c.cast(c.add(op, {operand(c, a, computed), operand(c, b, computed)}), common);
}

Values binary(KernelArguments& c) { return {binary(c, c.engine_op, 0, 1)}; }

Values float_binary(KernelArguments& c) {
  const DType dtype = float_dtype(common_dtype(c, {0, 1}));
  return {c.add(c.engine_op, {operand(c, 0, dtype), operand(c, 1, dtype)})};
}

Values comparison(KernelArguments& c) {
  const DType common = common_dtype(c, {0, 1});
  const DType computed = common == DType::kBool ? DType::kI32 : common;
  return {c.add(c.engine_op, {operand(c, 0, computed), operand(c, 1, computed)})};
}

Values logical(KernelArguments& c) {
  return {c.add(c.engine_op, {operand(c, 0, DType::kBool), operand(c, 1, DType::kBool)})};
}

Values logical_not(KernelArguments& c) {
  return {c.add("logical_not", {c.cast(c.tensor(0), DType::kBool)})};
}

// a + alpha * b with the sign of b
Value* sum(KernelArguments& c, const char* op, size_t a, size_t b, size_t alpha) {
  const DType common = common_dtype(c, {a, b});
  const bool scaled = !c.is_known(alpha) || c.f(alpha) != 1;
  const DType computed = common == DType::kBool ? DType::kI32
                         : scaled               ? wide_dtype(common)
                                                : common;
  Value *left = operand(c, a, computed), *right = operand(c, b, computed);
  if (scaled) right = c.add("mul", {right, c.number(alpha, computed)});
  return c.cast(c.add(op, {left, right}), common);
}

Values add(KernelArguments& c) { return {sum(c, "add", 0, 1, 2)}; }
Values sub(KernelArguments& c) { return {sum(c, "sub", 0, 1, 2)}; }
Values rsub(KernelArguments& c) { return {sum(c, "sub", 1, 0, 2)}; }

Values div(KernelArguments& c) {
  const DType dtype = float_dtype(common_dtype(c, {0, 1}));
  return {c.add("div", {operand(c, 0, dtype), operand(c, 1, dtype)})};
}

// torch's floor division of floats: exact where a / b was rounded up to a whole number.
Value* floor_quotient(KernelArguments& c, Value* a, Value* b) {
  const DType dtype = a->dtype();
  if (!is_float(dtype)) return c.add("div", {a, b}, {{"rounding", "floor"}});
  a = c.cast(a, wide_dtype(dtype));
  b = c.cast(b, wide_dtype(dtype));
  Value* zero = c.scalar_like(a, 0);
  Value* rest = c.add("mod", {a, b});
  Value* whole = c.add("div", {c.add("sub", {a, rest}), b});
  Value* signs_differ =
      c.add("logical_xor", {c.add("less", {b, zero}), c.add("less", {rest, zero})});
  Value* low = c.add("logical_and", {c.add("not_equal", {rest, zero}), signs_differ});
  whole = c.add("where", {low, with_scalar(c, "sub", whole, 1), whole});
  Value* floor = c.add("floor", {whole});
  Value* far = with_scalar(c, "greater", c.add("sub", {whole, floor}), 0.5);
  floor = c.add("where", {far, with_scalar(c, "add", floor, 1), floor});
  Value* by_zero = c.add("equal", {b, zero});
  return c.add("where", {by_zero, c.add("div", {a, b}), floor});
}

Values floor_divide(KernelArguments& c) {
  const DType dtype = common_dtype(c, {0, 1});
  return {floor_quotient(c, operand(c, 0, dtype), operand(c, 1, dtype))};
}

Values div_mode(KernelArguments& c) {
  const auto mode = c.maybe_s(2);
  if (!mode) return div(c);
  if (*mode == "floor") return floor_divide(c);
  c.check(*mode == "trunc", "rounding_mode '{}' is not floor or trunc", *mode);
  const DType dtype = common_dtype(c, {0, 1});
  Value *a = operand(c, 0, dtype), *b = operand(c, 1, dtype);
  if (!is_float(dtype)) return {c.add("div", {a, b}, {{"rounding", "trunc"}})};
  return {c.add("trunc", {c.add("div", {a, b})})};  // of the quotient as a half has it
}

Values mul(KernelArguments& c) {
  const DType dtype = common_dtype(c, {0, 1});
  const char* op = dtype == DType::kBool ? "logical_and" : "mul";
  return {c.add(op, {operand(c, 0, dtype), operand(c, 1, dtype)})};
}

Values bitwise(KernelArguments& c) {
  const DType dtype = common_dtype(c, {0, 1});
  const std::string op =
      (dtype == DType::kBool ? "logical_" : "bitwise_") + std::string(c.engine_op);
  return {c.add(op, {operand(c, 0, dtype), operand(c, 1, dtype)})};
}

Values bitwise_not(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {c.add(x->dtype() == DType::kBool ? "logical_not" : "bitwise_not", {x})};
}

// A shift by less than 0 or by all bits leaves no bit but, to the right, copies of the sign.
Values shift(KernelArguments& c) {
  const DType dtype = common_dtype(c, {0, 1});
  c.check(is_int(dtype), "shifts of {}", name(dtype));
  Value *x = operand(c, 0, dtype), *by = operand(c, 1, dtype);
  const double last = static_cast<double>(size_of(dtype) * 8 - 1);
  Value* outside =
      c.add("logical_or", {with_scalar(c, "less", by, 0), with_scalar(c, "greater", by, last)});
  const bool left = std::string_view(c.engine_op) == "left_shift";
  if (left) {
    Value* some = c.add("where", {outside, c.scalar_like(by, 0), by});
    return {c.add("where", {outside, c.scalar_like(x, 0), c.add("left_shift", {x, some})})};
  }
  if (!contains(kSigned, dtype)) {
    Value* some = c.add("where", {outside, c.scalar_like(by, 0), by});
    return {c.add("where", {outside, c.scalar_like(x, 0), c.add("right_shift", {x, some})})};
  }
  return {c.add("right_shift", {x, c.add("where", {outside, c.scalar_like(by, last), by})})};
}

// A negative power of an integer is an error in torch when it is a number.
Values pow(KernelArguments& c) {
  const DType common = common_dtype(c, {0, 1});
  if (is_integral(common) && !c.is_tensor(1))
    c.check(!c.is_known(1) || c.f(1) >= 0, "an integer to the power {}", c.f(1));
  return {binary(c, "pow", 0, 1)};
}

Values clamp(KernelArguments& c) {
  const DType common = common_dtype(c, {0, 1, 2});
  const DType computed = common == DType::kBool ? DType::kI32 : common;
  Value* x = operand(c, 0, computed);
  c.check(!c.is_none(1) || !c.is_none(2), "has neither a lower nor an upper bound");
  // Bounds one after the other, so that a NaN in them is passed on and the upper one wins.
  if (!c.is_none(1)) x = c.add("max", {x, operand(c, 1, computed)});
  if (!c.is_none(2)) x = c.add("min", {x, operand(c, 2, computed)});
  return {c.cast(x, common)};
}

// The bounds are numbers: as attributes passes can read them.
Values clamp_numbers(KernelArguments& c) {
  const DType common = common_dtype(c, {0, 1, 2});
  if (!is_float(common) || !c.is_known(1) || !c.is_known(2)) return clamp(c);
  NamedAttrs attrs;
  if (const auto low = c.maybe_f(1)) attrs.emplace_back("min", *low);
  if (const auto high = c.maybe_f(2)) attrs.emplace_back("max", *high);
  c.check(!attrs.empty(), "has neither a lower nor an upper bound");
  return {c.add("clamp", {operand(c, 0, common)}, attrs)};
}

Values where(KernelArguments& c) {
  const DType dtype = common_dtype(c, {1, 2});
  return {
      c.add("where", {operand(c, 0, DType::kBool), operand(c, 1, dtype), operand(c, 2, dtype)})};
}

// self + value * a * b, and self + value * a / b
Value* add_scaled(KernelArguments& c, const char* op) {
  const DType dtype = wide_dtype(common_dtype(c, {0, 1, 2}));
  Value* inner = c.add(op, {operand(c, 1, dtype), operand(c, 2, dtype)});
  return c.add("add", {operand(c, 0, dtype), c.add("mul", {inner, c.number(3, dtype)})});
}
Values addcmul(KernelArguments& c) { return {add_scaled(c, "mul")}; }
Values addcdiv(KernelArguments& c) { return {add_scaled(c, "div")}; }

// One truth: all |a - b| <= atol + rtol * |b|.
Values allclose(KernelArguments& c) {
  const DType dtype = wide_dtype(float_dtype(common_dtype(c, {0, 1})));
  Value *a = operand(c, 0, dtype), *b = operand(c, 1, dtype);
  Value* bound = with_scalar(c, "add", with_scalar(c, "mul", c.add("abs", {b}), c.f(2)), c.f(3));
  Value* far = c.add("abs", {c.add("sub", {a, b})});
  Value* near =
      c.add("logical_and", {c.add("less_equal", {far, bound}), c.add("is_finite", {far})});
  Value* close = c.add("logical_or", {c.add("equal", {a, b}), near});
  if (c.b(4))
    close = c.add("logical_or",
                  {close, c.add("logical_and", {c.add("is_nan", {a}), c.add("is_nan", {b})})});
  return {c.add("reduce_and", {close}, {{"keep_dims", false}})};
}

const KernelConverters kAtenMath{
    {{"allclose.Tensor", "allclose.out", "aten::allclose.Tensor", "aten::allclose.out"}, allclose},
    {{"aten::__lshift__.Scalar_out", "aten::__lshift__.Tensor_out",
      "aten::bitwise_left_shift.Scalar_Tensor_out", "aten::bitwise_left_shift.Tensor_Scalar_out",
      "aten::bitwise_left_shift.Tensor_out"},
     shift,
     "left_shift"},
    {{"aten::__rshift__.Scalar_out", "aten::__rshift__.Tensor_out",
      "aten::bitwise_right_shift.Scalar_Tensor_out", "aten::bitwise_right_shift.Tensor_Scalar_out",
      "aten::bitwise_right_shift.Tensor_out"},
     shift,
     "right_shift"},
    {"aten::abs.out", abs},
    {{"aten::add.Scalar_out", "aten::add.out"}, add},
    {"aten::addcdiv.out", addcdiv},
    {"aten::addcmul.out", addcmul},
    {"aten::atan2.out", float_binary, "atan2"},
    {{"aten::bitwise_and.Scalar_out", "aten::bitwise_and.Tensor_out"}, bitwise, "and"},
    {"aten::bitwise_not.out", bitwise_not},
    {{"aten::bitwise_or.Scalar_out", "aten::bitwise_or.Tensor_out"}, bitwise, "or"},
    {{"aten::bitwise_xor.Scalar_out", "aten::bitwise_xor.Tensor_out"}, bitwise, "xor"},
    {"aten::ceil.out", rounding, "ceil"},
    {"aten::clamp.Tensor_out", clamp},
    {"aten::clamp.out", clamp_numbers},
    {{"aten::clamp_max.Tensor_out", "aten::clamp_max.out", "aten::minimum.out"}, binary, "min"},
    {{"aten::clamp_min.Tensor_out", "aten::clamp_min.out", "aten::maximum.out"}, binary, "max"},
    {{"aten::div.Scalar_mode_out", "aten::div.out_mode"}, div_mode},
    {{"aten::div.Scalar_out", "aten::div.out"}, div},
    {{"aten::eq.Scalar_out", "aten::eq.Tensor_out"}, comparison, "equal"},
    {"aten::floor.out", rounding, "floor"},
    {"aten::floor_divide.out", floor_divide},
    {{"aten::fmod.Scalar_out", "aten::fmod.Tensor_out"}, binary, "mod"},
    {{"aten::ge.Scalar_out", "aten::ge.Tensor_out"}, comparison, "greater_equal"},
    {{"aten::gt.Scalar_out", "aten::gt.Tensor_out"}, comparison, "greater"},
    {"aten::isfinite.out", isfinite},
    {"aten::isinf.out", float_test, "is_inf"},
    {"aten::isnan.out", float_test, "is_nan"},
    {{"aten::le.Scalar_out", "aten::le.Tensor_out"}, comparison, "less_equal"},
    {"aten::logical_and.out", logical, "logical_and"},
    {"aten::logical_not.out", logical_not},
    {"aten::logical_or.out", logical, "logical_or"},
    {"aten::logical_xor.out", logical, "logical_xor"},
    {"aten::logit.out", logit},
    {{"aten::lt.Scalar_out", "aten::lt.Tensor_out"}, comparison, "less"},
    {{"aten::mul.Scalar_out", "aten::mul.out"}, mul},
    {{"aten::ne.Scalar_out", "aten::ne.Tensor_out"}, comparison, "not_equal"},
    {{"aten::pow.Scalar_out", "aten::pow.Tensor_Scalar_out", "aten::pow.Tensor_Tensor_out"}, pow},
    {{"aten::remainder.Scalar_Tensor_out", "aten::remainder.Scalar_out",
      "aten::remainder.Tensor_out"},
     binary,
     "floor_mod"},
    {"aten::round.out", rounding, "rint"},
    {"aten::rsub.Scalar_out", rsub},
    {"aten::sign.out", sign},
    {{"aten::sub.Scalar_out", "aten::sub.out"}, sub},
    {"aten::trunc.out", rounding, "trunc"},
    {"aten::where.self_out", where},
};

}  // namespace

}  // namespace anymps::executorch
