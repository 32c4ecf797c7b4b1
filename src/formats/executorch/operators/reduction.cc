// SPDX-License-Identifier: Apache-2.0
// Reductions, running sums, sorting of torch. A scalar counts as a vector of one where an axis is
// named.
#include <cmath>
#include <limits>

#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

// Axes in the words of the op table: no axes stand for all.
Value* reduce(KernelArguments& c, std::string_view op, Value* x, const Ints& axes, bool keep_dims) {
  if (c.rank(x) == 0)
    return reshape(c, c.add(op, {reshape(c, x, {1})}, {{"axes", Ints{0}}, {"keep_dims", false}}),
                   {});
  return c.add(op, {x}, {{"axes", axes}, {"keep_dims", keep_dims}});
}

Value* as_number(KernelArguments& c, Value* x) {
  return x->dtype() == DType::kBool ? c.cast(x, DType::kU8) : x;
}

Value* as_bool(KernelArguments& c) { return c.cast(c.tensor(0), DType::kBool); }

Values logic(KernelArguments& c) { return {reduce(c, c.engine_op, as_bool(c), {}, false)}; }
Values logic_dim(KernelArguments& c) {
  Value* x = as_bool(c);
  return {reduce(c, c.engine_op, x, {c.axis(1, x)}, c.b(2))};
}
// Here a list of no axes means none, and only None means all.
Values logic_dims(KernelArguments& c) {
  Value* x = as_bool(c);
  const auto axes = c.maybe_ints(1);
  if (axes && axes->empty()) return {x};
  return {reduce(c, c.engine_op, x, c.axes(1, x), c.b(2))};
}

// Elements are brought to the dtype of the result before they are summed.
Values sum_all(KernelArguments& c) {
  return {reduce(c, c.engine_op, c.cast(c.tensor(0), c.out()), {}, false)};
}
Values sum_dims(KernelArguments& c) {
  Value* x = c.cast(c.tensor(0), c.out());
  return {reduce(c, c.engine_op, x, c.axes(1, x), c.b(2))};
}
Values sum_dim(KernelArguments& c) {
  Value* x = c.cast(c.tensor(0), c.out());
  return {reduce(c, c.engine_op, x, {c.axis(1, x)}, c.b(2))};
}

Values extreme_dims(KernelArguments& c) {
  Value* x = c.tensor(0);
  return {reduce(c, c.engine_op, x, c.axes(1, x), c.b(2))};
}
Values extreme_all(KernelArguments& c) { return {reduce(c, c.engine_op, c.tensor(0), {}, false)}; }

// Where the extreme is, along an axis or in the flattened tensor.
Value* arg_of(KernelArguments& c, const char* op, Value* x, int64_t axis, bool keep_dims) {
  x = as_number(c, x);
  if (c.rank(x) == 0) return reshape(c, c.add(op, {reshape(c, x, {1})}, {{"axis", 0}}), {});
  return c.add(op, {x}, {{"axis", axis}, {"keep_dims", keep_dims}});
}

Values arg(KernelArguments& c) {
  Value* x = c.tensor(0);
  if (!c.is_none(1)) return {arg_of(c, c.engine_op, x, c.axis(1, x), c.b(2))};
  Value* place_of = arg_of(c, c.engine_op, reshape(c, x, {-1}), 0, false);
  if (!c.b(2) || c.rank(x) == 0) return {place_of};
  return {reshape(c, place_of, Ints(place(c.rank(x)), 1))};
}

Values extreme_dim(KernelArguments& c, const char* op, const char* arg) {
  Value* x = c.tensor(0);
  const int64_t axis = c.axis(1, x);
  return {reduce(c, op, x, {axis}, c.b(2)), arg_of(c, arg, x, axis, c.b(2))};
}
Values max_dim(KernelArguments& c) { return extreme_dim(c, "reduce_max", "arg_max"); }
Values min_dim(KernelArguments& c) { return extreme_dim(c, "reduce_min", "arg_min"); }

Values aminmax(KernelArguments& c) {
  Value* x = c.tensor(0);
  Ints axes;
  if (!c.is_none(1)) axes = {c.axis(1, x)};
  return {reduce(c, "reduce_min", x, axes, c.b(2)), reduce(c, "reduce_max", x, axes, c.b(2))};
}

// The number of elements that are reduced to one, as a scalar of a float dtype.
Value* count_over(KernelArguments& c, Value* x, const Ints& axes) {
  Value* count = c.integer(1, DType::kI64);
  if (axes.empty()) return c.cast(c.add("size", {x}), DType::kF64);
  for (int64_t axis : axes) count = c.add("mul", {count, extent_of(c, x, axis)});
  return c.cast(count, DType::kF64);
}

struct Moments {
  Value *variance = nullptr, *mean = nullptr;
};

// sum((x - mean)^2) / max(n - correction, 0)
Moments moments(KernelArguments& c, const Ints& axes, double correction, bool keep_dims) {
  Value* x = at_least_1d(c, c.tensor(0));
  const bool scalar = c.rank(c.tensor(0)) == 0;
  x = c.cast(x, wide_dtype(x->dtype()));
  Value* centred = c.add("sub", {x, c.add("reduce_mean", {x}, {{"axes", axes}})});
  const NamedAttrs over = {{"axes", axes}, {"keep_dims", keep_dims && !scalar}};
  Value* squares = c.add("reduce_sum", {c.add("square", {centred})}, over);
  Value* divisor = with_scalar(c, "sub", count_over(c, x, axes), correction);
  divisor = c.cast(with_scalar(c, "max", divisor, 0), x->dtype());
  return {c.add("div", {squares, divisor}), c.add("reduce_mean", {x}, over)};
}

Moments corrected(KernelArguments& c) {
  const double correction = c.maybe_f(2).value_or(1);
  return moments(c, c.axes(1, c.tensor(0)), correction, c.b(3));
}

Values var_correction(KernelArguments& c) { return {corrected(c).variance}; }
Values var(KernelArguments& c) {
  return {moments(c, c.axes(1, c.tensor(0)), c.b(2) ? 1 : 0, c.b(3)).variance};
}
Values var_mean(KernelArguments& c) {
  const Moments both = corrected(c);
  return {both.variance, both.mean};
}
Values std_correction(KernelArguments& c) { return {c.add("sqrt", {corrected(c).variance})}; }

Values logsumexp(KernelArguments& c) {
  Value* x = c.cast(c.tensor(0), c.out());
  return {reduce(c, "reduce_log_sum_exp", x, c.axes(1, x), c.b(2))};
}

// The p-norm over axes.
Value* norm(KernelArguments& c, Value* x, double p, const Ints& axes, bool keep_dims) {
  const auto over = [&](const char* op, Value* y) { return reduce(c, op, y, axes, keep_dims); };
  if (p == 2) return over("reduce_l2", x);
  Value* size = c.add("abs", {x});
  if (p == 1) return over("reduce_sum", size);
  if (p == 0) return over("reduce_sum", c.cast(with_scalar(c, "not_equal", x, 0), x->dtype()));
  if (std::isinf(p)) return over(p > 0 ? "reduce_max" : "reduce_min", size);
  return with_scalar(c, "pow", over("reduce_sum", with_scalar(c, "pow", size, p)), 1 / p);
}

Values linalg_vector_norm(KernelArguments& c) {
  Value* x = c.cast(c.tensor(0), wide_dtype(c.out()));
  return {norm(c, x, c.f(1), c.axes(2, x), c.b(3))};
}
Values norm_dims(KernelArguments& c) {
  Value* x = c.cast(c.tensor(0), wide_dtype(c.out()));
  return {norm(c, x, c.maybe_f(1).value_or(2), c.axes(2, x), c.b(3))};
}

Values running(KernelArguments& c) {
  Value* x = c.cast(c.tensor(0), c.out());
  const int64_t axis = c.axis(1, x), rank = c.rank(x);
  Value* y = c.add(c.engine_op, {at_least_1d(c, x)}, {{"axis", axis}});
  return {rank == 0 ? reshape(c, y, {}) : y};
}

// Values and places that were made of a vector instead of a scalar.
Values all_as_given(KernelArguments& c, Values results, const Value* x) {
  if (c.rank(x) == 0)
    for (Value*& result : results) result = reshape(c, result, {});
  return results;
}

Values topk(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t axis = c.axis(2, x);
  Values inputs = {at_least_1d(c, x)};
  NamedAttrs attrs = {{"axis", axis}, {"largest", c.b(3)}};
  if (c.is_known(1))
    attrs.emplace_back("k", c.i(1));
  else
    inputs.push_back(c.number(1, DType::kI64));
  return all_as_given(c, c.add_all("top_k", inputs, attrs, 2), x);
}

// `from`: where the axis is among the arguments.
Values sorted(KernelArguments& c, size_t from) {
  Value* x = c.tensor(0);
  const int64_t axis = c.axis(from, x);
  Value* vector = at_least_1d(c, x);
  Value* order = c.add("argsort", {vector}, {{"axis", axis}, {"descending", c.b(from + 1)}});
  return all_as_given(c, {c.add("gather_along_axis", {vector, order}, {{"axis", axis}}), order}, x);
}
Values sort(KernelArguments& c) { return sorted(c, 1); }
Values sort_stable(KernelArguments& c) { return sorted(c, 2); }

const KernelConverters kAtenReduce{
    {"aten::all.all_out", logic, "reduce_and"},
    {"aten::all.dims_out", logic_dims, "reduce_and"},
    {"aten::all.out", logic_dim, "reduce_and"},
    {"aten::amax.out", extreme_dims, "reduce_max"},
    {"aten::amin.out", extreme_dims, "reduce_min"},
    {"aten::aminmax.out", aminmax},
    {"aten::any.all_out", logic, "reduce_or"},
    {"aten::any.dims_out", logic_dims, "reduce_or"},
    {"aten::any.out", logic_dim, "reduce_or"},
    {"aten::argmax.out", arg, "arg_max"},
    {"aten::argmin.out", arg, "arg_min"},
    {"aten::cumprod.out", running, "cumprod"},
    {"aten::cumsum.out", running, "cumsum"},
    {"aten::linalg_vector_norm.out", linalg_vector_norm},
    {"aten::logsumexp.out", logsumexp},
    {"aten::max.dim_max", max_dim},
    {"aten::max.unary_out", extreme_all, "reduce_max"},
    {"aten::mean.dtype_out", sum_all, "reduce_mean"},
    {"aten::mean.out", sum_dims, "reduce_mean"},
    {"aten::min.dim_min", min_dim},
    {"aten::min.unary_out", extreme_all, "reduce_min"},
    {"aten::norm.out", norm_dims},
    {"aten::prod.int_out", sum_dim, "reduce_prod"},
    {"aten::prod.out", sum_all, "reduce_prod"},
    {"aten::sort.values", sort},
    {"aten::sort.values_stable", sort_stable},
    {"aten::std.correction_out", std_correction},
    {"aten::sum.IntList_out", sum_dims, "reduce_sum"},
    {"aten::sum.out", sum_all, "reduce_sum"},
    {"aten::topk.values", topk},
    {"aten::var.correction_out", var_correction},
    {"aten::var.out", var},
    {"aten::var_mean.correction_out", var_mean},
};

}  // namespace

}  // namespace anymps::executorch
