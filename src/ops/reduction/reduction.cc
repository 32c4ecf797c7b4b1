// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, and positions of extrema.
#include <algorithm>

#include "ops/gradient_parts.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

std::vector<bool> reduced_axes(const InferContext& ctx, const std::vector<int64_t>& axes) {
  const int64_t rank = ctx.rank(0);
  const bool all = axes.empty() && ctx.attrs.s("empty_axes") == "all";
  std::vector<bool> reduced(rank, all);
  for (int64_t axis : axes) {
    ctx.check(axis >= -rank && axis < rank, "axis {} is out of range for rank {}", axis, rank);
    const size_t at = axis < 0 ? axis + rank : axis;
    ctx.check(!reduced[at], "axis {} is given twice", axis);
    reduced[at] = true;
  }
  return reduced;
}

// The number of elements of a shape tensor is computed by models as the product of its elements.
std::optional<Dim> reduce_content(const std::string& op, const Dims& content) {
  if (content.empty()) return std::nullopt;
  Dim result = content[0];
  for (size_t i = 1; i < content.size(); ++i) {
    int64_t unused = 0;
    const bool known = result.known() && content[i].known();
    if (op == "reduce_sum") {
      if (known && __builtin_add_overflow(result.value(), content[i].value(), &unused)) return {};
      result = result + content[i];
    } else if (op == "reduce_prod") {
      if (known && __builtin_mul_overflow(result.value(), content[i].value(), &unused)) return {};
      result = result * content[i];
    } else if (op == "reduce_max") {
      result = max(result, content[i]);
    } else if (op == "reduce_min") {
      result = min(result, content[i]);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

void infer_reduction(InferContext& ctx) {
  const bool keep = ctx.attrs.b("keep_dims");
  const auto axes = numbers(ctx.ints(1, "axes"));
  if (!axes) {
    if (!keep) return ctx.set_unranked(0);
    Dims shape = ctx.shape(0);
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = ctx.fresh(std::to_string(i));
    return ctx.set(0, std::move(shape));
  }
  const std::vector<bool> reduced = reduced_axes(ctx, *axes);
  Dims shape;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i])
      shape.push_back(ctx.shape(0)[i]);
    else if (keep)
      shape.push_back(1);
  }
  ctx.set(0, std::move(shape));
  const bool all = std::all_of(reduced.begin(), reduced.end(), [](bool r) { return r; });
  if (const Dims* content = ctx.content(0); content && all && ctx.dtype(0) == DType::kI64)
    if (const std::optional<Dim> result = reduce_content(ctx.op.name, *content))
      ctx.set_content(0, {*result});
}

void infer_arg(InferContext& ctx) {
  const size_t axis = ctx.axis("axis", 0);
  Dims shape = ctx.shape(0);
  ctx.check(!shape[axis].is(0), "axis {} of {} is empty: it has no extremum", axis,
            to_string(shape));
  if (ctx.attrs.b("keep_dims"))
    shape[axis] = 1;
  else
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  ctx.set(0, std::move(shape));
}

}  // namespace

#define REDUCTION(name, dtypes, text, math)                                         \
  OP(name)                                                                          \
      .doc(text)                                                                    \
      .formula(math)                                                                \
      .input("x", dtypes)                                                           \
      .ints("axes", "the axes to reduce; none given: all")                          \
      .output("y")                                                                  \
      .attr("keep_dims", true, "reduced axes stay, with extent 1")                  \
      .attr("empty_axes", "all", {"all", "none"}, "which axes an empty list means") \
      .layout(LayoutRule::kReduction)                                               \
      .infer(infer_reduction)                                                       \
      .sample({"all", {{3, 5}}, {}, {}})                                            \
      .sample({"vector", {{40}}, {{"keep_dims", false}}, {}})                       \
      .sample({"last", {{4, 33}}, {{"axes", Ints{-1}}}, {}})                        \
      .sample({"first", {{33, 4}}, {{"axes", Ints{0}}, {"keep_dims", false}}, {}})  \
      .sample({"middle", {{2, 7, 5}}, {{"axes", Ints{1}}}, {}})                     \
      .sample({"spatial", {{2, 3, 5, 7}}, {{"axes", Ints{2, 3}}}, {}})              \
      .sample({"outer", {{4, 3, 5}}, {{"axes", Ints{0, 2}}}, {}})                   \
      .sample({"input", {{2, 7, 5}, {2}}, {{"keep_dims", false}}, {{1, {0, -1}}}})  \
      .sample({"none", {{2, 5}}, {{"empty_axes", "none"}}, {}})                     \
      .sample({"scalar", {{}}, {}, {}})                                             \
      .sample({"empty_axis", {{3, 0}}, {{"axes", Ints{1}}}, {}})                    \
      .sample({"empty", {{0, 3}}, {{"axes", Ints{1}}}, {}})

REDUCTION(reduce_sum, kNumber, "Sum; 0 of nothing.", "y = sum(x)")
    .facts(kSums)
    .mps("reductionSumWithTensor:axis:name:")
    .mps("reductionSumWithTensor:axes:name:");
REDUCTION(reduce_mean, kNumber,
          "Mean; NaN of nothing. Of integers, rounded toward zero, 0 of "
          "nothing.",
          "y = sum(x) / count(x)")
    .facts(kSums)
    .mps("meanOfTensor:axes:name:");
REDUCTION(reduce_max, kReal | kBoolean, "Maximum; the lowest value of the dtype for nothing.",
          "y = max(x)")
    .mps("reductionMaximumWithTensor:axis:name:")
    .mps("reductionMaximumWithTensor:axes:name:")
    .mps("reductionMaximumPropagateNaNWithTensor:axis:name:")
    .mps("reductionMaximumPropagateNaNWithTensor:axes:name:")
    .attr("propagate_nan", true, "one NaN makes the result NaN; otherwise it is passed over")
    .tolerance(kExact);
REDUCTION(reduce_min, kReal | kBoolean, "Minimum; the highest value of the dtype for nothing.",
          "y = min(x)")
    .mps("reductionMinimumWithTensor:axis:name:")
    .mps("reductionMinimumWithTensor:axes:name:")
    .mps("reductionMinimumPropagateNaNWithTensor:axis:name:")
    .mps("reductionMinimumPropagateNaNWithTensor:axes:name:")
    .attr("propagate_nan", true, "one NaN makes the result NaN; otherwise it is passed over")
    .tolerance(kExact);
REDUCTION(reduce_prod, kNumber, "Product; 1 of nothing.", "y = product(x)")
    .mps("reductionProductWithTensor:axis:name:")
    .mps("reductionProductWithTensor:axes:name:")
    .domain(0.5, 1.5);
REDUCTION(reduce_l1, kReal, "Sum of absolute values.", "y = sum(|x|)");
REDUCTION(reduce_l2, kReal, "Euclidean length.", "y = sqrt(sum(x * x))");
REDUCTION(reduce_sum_square, kReal, "Sum of squares.", "y = sum(x * x)");
REDUCTION(reduce_log_sum, kFloat, "Logarithm of the sum.", "y = ln(sum(x))").domain(0.1, 4);
REDUCTION(reduce_log_sum_exp, kFloat, "Logarithm of the sum of exponentials; -inf of nothing.",
          "y = max(x) + ln(sum(exp(x - max(x))))");
REDUCTION(reduce_and, kBoolean, "True if all are.", "y = all(x)")
    .mps("reductionAndWithTensor:axis:name:")
    .mps("reductionAndWithTensor:axes:name:");
REDUCTION(reduce_or, kBoolean, "True if one is.", "y = any(x)")
    .mps("reductionOrWithTensor:axis:name:")
    .mps("reductionOrWithTensor:axes:name:");

#define EXTREMUM(name, text, math)                                                      \
  OP(name)                                                                              \
      .doc(text)                                                                        \
      .formula(math)                                                                    \
      .input("x", kReal)                                                                \
      .output("y", "i64")                                                               \
      .attr("axis", 0, "along which to look")                                           \
      .attr("keep_dims", true, "the axis stays, with extent 1")                         \
      .attr("select_last", false, "of several equal ones take the last, not the first") \
      .infer(infer_arg)                                                                 \
      .sample({"vector", {{17}}, {{"keep_dims", false}}, {}})                           \
      .sample({"last", {{3, 33}}, {{"axis", -1}}, {}})                                  \
      .sample({"middle", {{2, 9, 4}}, {{"axis", 1}, {"keep_dims", false}}, {}})         \
      .sample({"select_last", {{4, 9}}, {{"axis", 1}, {"select_last", true}}, {}})      \
      .sample({"one", {{3, 1}}, {{"axis", 1}}, {}})                                     \
      .sample({"empty", {{0, 3}}, {{"axis", 1}}, {}})

EXTREMUM(arg_max, "Position of the maximum along an axis; a NaN counts as the maximum.",
         "y = argmax(x)")
    .mps("reductionArgMaximumWithTensor:axis:name:");
EXTREMUM(arg_min, "Position of the minimum along an axis; a NaN counts as the minimum.",
         "y = argmin(x)")
    .mps("reductionArgMinimumWithTensor:axis:name:");

namespace {

// A reduced tensor with its axes back, of extent 1.
Term kept(GradientContext& ctx, const Term& reduced) {
  if (ctx.attrs().b("keep_dims")) return reduced;
  const std::vector<int64_t> axes = reduced_axes(ctx);
  return axes.empty() ? reduced : reduced.op("unsqueeze", {{"axes", axes}});
}

Term spread(GradientContext& ctx, const Term& kept) { return ctx.expand_like(kept, ctx.x()); }

void extremum(GradientContext& ctx) {
  const Term mask = (ctx.x() == kept(ctx, ctx.y())).op("cast", {{"dtype", ctx.x().dtype()}});
  ctx.set(0, mask * (kept(ctx, ctx.dy()) / ctx.sum(mask, reduced_axes(ctx))));
}

}  // namespace

COMPLEX_GRADIENT(reduce_sum) { ctx.set(0, spread(ctx, kept(ctx, ctx.dy()))); }

COMPLEX_GRADIENT(reduce_mean) {
  ctx.set(0, spread(ctx, kept(ctx, ctx.dy()) / ctx.ratio(ctx.x(), ctx.y())));
}

GRADIENT(reduce_max) { extremum(ctx); }
GRADIENT(reduce_min) { extremum(ctx); }

// The product of the others, which is not y / x where an element is 0.
COMPLEX_GRADIENT(reduce_prod) {
  const Term x = ctx.x(), zero = x == 0.0, filled = where(zero, 1, x);
  const std::vector<int64_t> axes = reduced_axes(ctx);
  const Term zeros = ctx.sum(zero.op("cast", {{"dtype", x.dtype()}}), axes);
  const Term product =
      axes.empty() ? filled : filled.op("reduce_prod", {{"axes", axes}, {"keep_dims", true}});
  const Term others =
      where(zero, where(zeros == 1.0, product, 0), where(zeros == 0.0, product / filled, 0));
  ctx.set(0, kept(ctx, ctx.dy()) * conjugated(others));
}

GRADIENT(reduce_l1) { ctx.set(0, kept(ctx, ctx.dy()) * ctx.x().op("sign")); }

GRADIENT(reduce_l2) {
  const Term y = kept(ctx, ctx.y()), dy = kept(ctx, ctx.dy());
  ctx.set(0, ctx.x() * where(y == 0.0, 0, dy / where(y == 0.0, 1, y)));
}

GRADIENT(reduce_sum_square) { ctx.set(0, ctx.x() * (kept(ctx, ctx.dy()) * 2)); }

GRADIENT(reduce_log_sum) {
  ctx.set(0, spread(ctx, kept(ctx, ctx.dy()) * (-kept(ctx, ctx.y())).op("exp")));
}

GRADIENT(reduce_log_sum_exp) {
  ctx.set(0, kept(ctx, ctx.dy()) * (ctx.x() - kept(ctx, ctx.y())).op("exp"));
}

ZERO_GRADIENT(reduce_and, "gives bool");
ZERO_GRADIENT(reduce_or, "gives bool");
ZERO_GRADIENT(arg_max, "gives places");
ZERO_GRADIENT(arg_min, "gives places");

}  // namespace anymps
