// SPDX-License-Identifier: Apache-2.0
// Operators on numbers instead of tensors: sizes of tensors and what a program computes of them.
// Results are scalars of i64, f64 or bool; inference follows integers through the graph, so that a
// size that is computed still ends up in a shape. It cannot follow fractions: those of known
// numbers are computed here.
#include <algorithm>
#include <cmath>

#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

bool is_double(const KernelArguments& c, size_t i) { return is_float(c.number_dtype(i)); }

// Both as i64, or as f64 if one of them is a fraction.
Value* number_op(KernelArguments& c, std::string_view op, const NamedAttrs& attrs = {}) {
  const DType dtype = is_double(c, 0) || is_double(c, 1) ? DType::kF64 : DType::kI64;
  return c.add(op, {c.number(0, dtype), c.number(1, dtype)}, attrs);
}

std::optional<double> known_double(const KernelArguments& c, size_t i) {
  return c.is_known(i) ? std::optional(c.f(i)) : std::nullopt;
}

bool both_known_doubles(const KernelArguments& c) {
  return (is_double(c, 0) || is_double(c, 1)) && c.is_known(0) && c.is_known(1);
}

Value* of(KernelArguments& c, double value) { return c.graph.scalar(DType::kF64, value); }

Values add_numbers(KernelArguments& c) {
  return {both_known_doubles(c) ? of(c, c.f(0) + c.f(1)) : number_op(c, "add")};
}
Values sub_numbers(KernelArguments& c) {
  return {both_known_doubles(c) ? of(c, c.f(0) - c.f(1)) : number_op(c, "sub")};
}
Values mul_numbers(KernelArguments& c) {
  return {both_known_doubles(c) ? of(c, c.f(0) * c.f(1)) : number_op(c, "mul")};
}

Values floordiv(KernelArguments& c) {
  c.check(!c.is_known(1) || c.f(1) != 0, "division by 0");
  if (both_known_doubles(c)) return {of(c, std::floor(c.f(0) / c.f(1)))};
  return {number_op(c, "div", {{"rounding", "floor"}})};
}

Values truediv(KernelArguments& c) {
  const auto a = known_double(c, 0), b = known_double(c, 1);
  c.check(!b || *b != 0, "division by 0");
  if (a && b) return {of(c, *a / *b)};
  return {c.add("div", {c.number(0, DType::kF64), c.number(1, DType::kF64)})};
}

Values mod(KernelArguments& c) {
  c.check(!c.is_known(1) || c.f(1) != 0, "division by 0");
  return {number_op(c, "floor_mod")};
}

Value* truth(KernelArguments& c, bool value) { return c.graph.scalar(DType::kBool, value); }

Values compare_numbers(KernelArguments& c) {
  if (!both_known_doubles(c)) return {number_op(c, c.engine_op)};
  const double a = c.f(0), b = c.f(1);
  const std::string_view op = c.engine_op;
  return {truth(c, op == "equal"           ? a == b
                   : op == "greater"       ? a > b
                   : op == "greater_equal" ? a >= b
                   : op == "less"          ? a < b
                                           : a <= b)};
}
Values sym_max(KernelArguments& c) {
  return {both_known_doubles(c) ? of(c, std::max(c.f(0), c.f(1))) : number_op(c, "max")};
}
Values sym_min(KernelArguments& c) {
  return {both_known_doubles(c) ? of(c, std::min(c.f(0), c.f(1))) : number_op(c, "min")};
}

Values neg(KernelArguments& c) {
  if (is_double(c, 0) && c.is_known(0)) return {of(c, -c.f(0))};
  return {c.add("neg", {c.number(0, is_double(c, 0) ? DType::kF64 : DType::kI64)})};
}

// A fraction as a whole number.
Values whole(KernelArguments& c) {
  if (!is_double(c, 0)) return {c.number(0, DType::kI64)};
  const std::string_view op = c.engine_op;
  if (const auto x = known_double(c, 0)) {
    const double y = op == "ceil"   ? std::ceil(*x)
                     : op == "rint" ? std::nearbyint(*x)
                                    : std::trunc(*x);
    c.check(std::abs(y) < 9e18, "{} is out of the range of integers", y);
    return {c.integer(static_cast<int64_t>(y), DType::kI64)};
  }
  return {c.cast(c.add(op, {c.number(0, DType::kF64)}), DType::kI64)};
}

Values sym_float(KernelArguments& c) { return {c.number(0, DType::kF64)}; }
Values sym_not(KernelArguments& c) {
  if (c.is_known(0)) return {truth(c, c.f(0) == 0)};
  return {c.add("logical_not", {c.number(0, DType::kBool)})};
}

Values sym_ite(KernelArguments& c) {
  const DType dtype = is_double(c, 1) || is_double(c, 2) ? DType::kF64 : DType::kI64;
  if (c.is_known(0)) return {c.number(c.f(0) != 0 ? 1 : 2, dtype)};
  return {c.add("where", {c.number(0, DType::kBool), c.number(1, dtype), c.number(2, dtype)})};
}

Values sym_size(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {extent_of(c, x, c.axis(1, x))};
}

Values sym_numel(KernelArguments& c) {
  return {reshape(c, c.cast(c.add("size", {c.tensor(0)}), DType::kI64), {})};
}

// The only element of a tensor as a number.
Values local_scalar_dense(KernelArguments& c) {
  Value* x = c.tensor(0);
  const DType dtype = x->dtype() == DType::kBool ? DType::kBool
                      : is_float(x->dtype())     ? DType::kF64
                                                 : DType::kI64;
  return {reshape(c, c.cast(x, dtype), {})};
}

const KernelConverters kPrim{
    {"aten::_local_scalar_dense", local_scalar_dense},
    {"aten::sym_numel", sym_numel},
    {"aten::sym_size.int", sym_size},
    {"executorch_prim::add.Scalar", add_numbers},
    {"executorch_prim::ceil.Scalar", whole, "ceil"},
    {"executorch_prim::eq.Scalar", compare_numbers, "equal"},
    {"executorch_prim::floordiv.Scalar", floordiv},
    {"executorch_prim::ge.Scalar", compare_numbers, "greater_equal"},
    {"executorch_prim::gt.Scalar", compare_numbers, "greater"},
    {"executorch_prim::le.Scalar", compare_numbers, "less_equal"},
    {"executorch_prim::lt.Scalar", compare_numbers, "less"},
    {"executorch_prim::mod.Scalar", mod},
    {"executorch_prim::mul.Scalar", mul_numbers},
    {"executorch_prim::neg.Scalar", neg},
    {"executorch_prim::round.Scalar", whole, "rint"},
    {"executorch_prim::sub.Scalar", sub_numbers},
    {"executorch_prim::sym_float.Scalar", sym_float},
    {{"executorch_prim::sym_int.Scalar", "executorch_prim::trunc.Scalar"}, whole, "trunc"},
    {"executorch_prim::sym_ite.Scalar", sym_ite},
    {"executorch_prim::sym_max.Scalar", sym_max},
    {"executorch_prim::sym_min.Scalar", sym_min},
    {"executorch_prim::sym_not.Scalar", sym_not},
    {"executorch_prim::truediv.Scalar", truediv},
};

}  // namespace

}  // namespace anymps::executorch
