// SPDX-License-Identifier: Apache-2.0
// Running sums, products and extrema along an axis.
#include <cmath>

#include "ops/axis_input.h"
#include "ops/gradient_parts.h"

namespace anymps {

#define CUMULATIVE(name, dtypes, text, math)                                                 \
  OP(name)                                                                                   \
      .doc(text)                                                                             \
      .formula(math)                                                                         \
      .input("x", dtypes)                                                                    \
      .integer("axis", 0, "along which to run")                                              \
      .output("y")                                                                           \
      .attr("exclusive", false, "y[i] leaves out x[i]; the first is that of nothing")        \
      .attr("reverse", false, "run from the end")                                            \
      .infer([](InferContext& ctx) {                                                         \
        known_axis(ctx, 1, 0);                                                               \
        infer_same(ctx);                                                                     \
      })                                                                                     \
      .sample({"vector", {{9}}, {}, {}})                                                     \
      .sample({"last", {{3, 17}}, {{"axis", -1}}, {}})                                       \
      .sample({"exclusive", {{3, 5, 4}}, {{"axis", 1}, {"exclusive", true}}, {}})            \
      .sample({"reverse", {{6, 4}}, {{"reverse", true}}, {}})                                \
      .sample({"both", {{6, 4}}, {{"axis", 1}, {"exclusive", true}, {"reverse", true}}, {}}) \
      .sample({"axis_input", {{3, 4, 2}, {}}, {}, {{1, {-2}}}})                              \
      .sample({"empty", {{3, 0}}, {{"axis", 1}}, {}})

CUMULATIVE(cumsum, kNumber, "Running sum along an axis.", "y[i] = sum(x[0 .. i])")
    .mps("cumulativeSumWithTensor:axis:exclusive:reverse:name:")
    .mps("cumulativeSumWithTensor:axisTensor:exclusive:reverse:name:")
    .mps("cumulativeSumWithTensor:axis:name:")
    .mps("cumulativeSumWithTensor:axisTensor:name:");
CUMULATIVE(cumprod, kNumber, "Running product along an axis.", "y[i] = product(x[0 .. i])")
    .mps("cumulativeProductWithTensor:axis:exclusive:reverse:name:")
    .mps("cumulativeProductWithTensor:axisTensor:exclusive:reverse:name:")
    .mps("cumulativeProductWithTensor:axis:name:")
    .mps("cumulativeProductWithTensor:axisTensor:name:")
    .domain(0.5, 1.5)
    .sample({"zeros", {{5}}, {}, {{0, {2, 0, 3, 0, 4}}}})
    .sample({"zeros, exclusive",
             {{2, 4}},
             {{"axis", 1}, {"exclusive", true}, {"reverse", true}},
             {{0, {2, 0, 3, 1, 0, 2, 3, 4}}}});
CUMULATIVE(
    cummin, kReal,
    "Lowest element so far along an axis; NaN from the first NaN on. Of nothing: the highest "
    "value of the dtype.",
    "y[i] = min(x[0 .. i])")
    .mps("cumulativeMinimumWithTensor:axis:exclusive:reverse:name:")
    .mps("cumulativeMinimumWithTensor:axisTensor:exclusive:reverse:name:")
    .mps("cumulativeMinimumWithTensor:axis:name:")
    .mps("cumulativeMinimumWithTensor:axisTensor:name:");
CUMULATIVE(
    cummax, kReal,
    "Highest element so far along an axis; NaN from the first NaN on. Of nothing: the lowest "
    "value of the dtype.",
    "y[i] = max(x[0 .. i])")
    .mps("cumulativeMaximumWithTensor:axis:exclusive:reverse:name:")
    .mps("cumulativeMaximumWithTensor:axisTensor:exclusive:reverse:name:")
    .mps("cumulativeMaximumWithTensor:axis:name:")
    .mps("cumulativeMaximumWithTensor:axisTensor:name:");

CUMULATIVE(log_cumsum_exp, kFloat,
           "Logarithm of the running sum of exponentials along an axis. Of nothing: -inf.",
           "y[i] = ln(sum(exp(x[0 .. i])))");

#define RUNNING_EXTREMUM(name, text, math)                                           \
  OP(name)                                                                           \
      .doc(text)                                                                     \
      .formula(math)                                                                 \
      .input("x", kReal | kBoolean)                                                  \
      .output("values")                                                              \
      .output("indices", "i64", "where along the axis it is: at the last of equals") \
      .attr("axis", 0, "along which to run")                                         \
      .infer([](InferContext& ctx) {                                                 \
        ctx.axis("axis", 0);                                                         \
        ctx.set(0, ctx.shape(0));                                                    \
        ctx.set(1, ctx.shape(0));                                                    \
      })                                                                             \
      .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0})                          \
      .sample({"vector", {{9}}, {}})                                                 \
      .sample({"last", {{3, 17}}, {{"axis", -1}}})                                   \
      .sample({"middle", {{3, 5, 4}}, {{"axis", 1}}})                                \
      .sample({"empty", {{3, 0}}, {{"axis", 1}}})

RUNNING_EXTREMUM(cummax_with_indices,
                 "Highest element so far along an axis, and its place; NaN from the first NaN on.",
                 "values[i] = max(x[0 .. i])");
RUNNING_EXTREMUM(cummin_with_indices,
                 "Lowest element so far along an axis, and its place; NaN from the first NaN on.",
                 "values[i] = min(x[0 .. i])");

namespace {

// The same op from the other end.
Term from_other_end(GradientContext& ctx, const char* op, const Term& x, int64_t axis) {
  return x.op(op, {{"axis", axis},
                   {"exclusive", ctx.attrs().b("exclusive")},
                   {"reverse", !ctx.attrs().b("reverse")}});
}

// The last place so far at which the extremum stands gets the gradient.
void running_extremum_back(GradientContext& ctx) {
  const Term x = ctx.x(), dy = ctx.dy();
  const int64_t axis = known_axis(ctx, 1, x);
  const bool reverse = ctx.attrs().b("reverse");
  const double sign = reverse ? -1 : 1, far = -0x1p40;
  const NamedAttrs run = {{"axis", axis}, {"reverse", reverse}};
  const Term places =
      ctx.add("coordinate_along_axis", {ctx.shape_of(x)}, {{"axis", axis}, {"dtype", DType::kI64}});
  const Term inclusive = x.op(ctx.op().name.c_str(), run);
  NamedAttrs last = run;
  last.emplace_back("exclusive", ctx.attrs().b("exclusive"));
  const Term found = where(x == inclusive, places * sign, far).op("cummax", last);
  const Term there = found > far / 2;
  ctx.set(0, ctx.add("scatter_along_axis",
                     {where(there, dy, 0), where(there, found * sign, 0), ctx.fill_like(x, 0)},
                     {{"axis", axis}, {"mode", "add"}}));
}

}  // namespace

COMPLEX_GRADIENT(cumsum) {
  ctx.set(0, from_other_end(ctx, "cumsum", ctx.dy(), known_axis(ctx, 1, ctx.x())));
}

// The sums of dy * y over x are the gradient up to the first 0. There it is the product of the
// others, and behind it nothing changes anything.
COMPLEX_GRADIENT(cumprod) {
  const Term x = ctx.x(), dy = ctx.dy(), zero = x == 0.0;
  const int64_t axis = known_axis(ctx, 1, x);
  const NamedAttrs run = {{"axis", axis}, {"reverse", ctx.attrs().b("reverse")}};
  const Term zeros = zero.op("cast", {{"dtype", DType::kI64}}).op("cumsum", run);
  const Term first = both(zero, zeros == 1.0);
  NamedAttrs same = run;
  same.emplace_back("exclusive", ctx.attrs().b("exclusive"));
  const Term others = where(first, 1, x).op("cumprod", same);
  const auto sums = [&](const Term& products) {
    return from_other_end(ctx, "cumsum", dy * conjugated(products), axis);
  };
  const Term before = sums(ctx.y()) / conjugated(where(zero, 1, x));
  ctx.set(0, where(zeros == 0.0, before, where(first, sums(others), 0)));
}

// In logarithms, so that nothing overflows: the sums of what is above 0 and of what is below.
GRADIENT(log_cumsum_exp) {
  const Term x = ctx.x(), y = ctx.y(), dy = ctx.dy();
  const int64_t axis = known_axis(ctx, 1, x);
  const auto part = [&](const Term& slopes) {
    const Term above = slopes > 0.0;
    const Term logs = where(above, where(above, slopes, 1).op("log") - y, -INFINITY);
    return (from_other_end(ctx, "log_cumsum_exp", logs, axis) + x).op("exp");
  };
  ctx.set(0, part(dy) - part(-dy));
}

namespace {

void indexed_extremum_back(GradientContext& ctx) {
  if (!ctx.dy()) return;
  ctx.set(0, ctx.add("scatter_along_axis", {ctx.dy(), ctx.y(1), ctx.fill_like(ctx.x(), 0)},
                     {{"axis", axis_of(ctx)}, {"mode", "add"}}));
}

}  // namespace

GRADIENT(cummax_with_indices) { indexed_extremum_back(ctx); }
GRADIENT(cummin_with_indices) { indexed_extremum_back(ctx); }
GRADIENT(cummin) { running_extremum_back(ctx); }
GRADIENT(cummax) { running_extremum_back(ctx); }

}  // namespace anymps
