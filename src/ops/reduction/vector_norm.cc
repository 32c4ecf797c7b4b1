// SPDX-License-Identifier: Apache-2.0
// Norms of any order over any axes, and slices cut down to a norm.
#include <algorithm>

#include "ops/gradient_parts.h"
#include "ops/infer.h"

namespace anymps {

namespace {

using NormInts = std::vector<int64_t>;

// Attribute `axes` of the first input, counted from the front; none given: all.
NormInts norm_axes(const Attrs& attrs, int64_t rank) {
  const NormInts& given = attrs.ints("axes");
  return given.empty() ? axes_from(0, rank) : normalize_axes(given, rank, "vector_norm");
}

void infer_vector_norm(InferContext& ctx) {
  const NormInts axes = norm_axes(ctx.attrs, ctx.rank(0));
  Dims y;
  for (int64_t i = 0; i < ctx.rank(0); ++i) {
    if (std::count(axes.begin(), axes.end(), i) == 0)
      y.push_back(ctx.shape(0)[i]);
    else if (ctx.attrs.b("keep_dims"))
      y.push_back(1);
  }
  ctx.set(0, real_dtype(ctx.dtype(0)), std::move(y));
}

void infer_renorm(InferContext& ctx) {
  ctx.axis("axis", 0);
  ctx.check(ctx.attrs.f("p") > 0, "p is {}, must be positive", ctx.attrs.f("p"));
  ctx.check(ctx.attrs.f("max_norm") >= 0, "max_norm is {}, must not be negative",
            ctx.attrs.f("max_norm"));
  infer_same(ctx);
}

const double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

OP(vector_norm)
    .doc(
        "The norm of any order p: 0 counts the elements that are not 0, inf and -inf take the "
        "largest and the smallest absolute value. Of nothing it is 0, and inf for a negative p.")
    .formula("y = sum(|x|^p)^(1/p)")
    .input("x", kFloat | kComplex)
    .output("y", "T", "real")
    .attr("p", 2.0, "the order")
    .attr("axes", NormInts{}, "the axes to reduce; none given: all")
    .attr("keep_dims", true, "reduced axes stay, with extent 1")
    .infer(infer_vector_norm)
    .domain(0.2, 2)
    .sample({"all", {{3, 5}}, {}})
    .sample({"last", {{4, 33}}, {{"axes", NormInts{-1}}, {"keep_dims", false}}})
    .sample({"first", {{33, 4}}, {{"axes", NormInts{0}}, {"p", 1.0}}})
    .sample({"outer", {{4, 3, 5}}, {{"axes", NormInts{0, 2}}, {"p", 3.0}, {"keep_dims", false}}})
    .sample({"root", {{2, 7, 5}}, {{"axes", NormInts{1}}, {"p", 0.5}}})
    .sample({"negative", {{2, 7}}, {{"axes", NormInts{1}}, {"p", -1.5}}})
    .sample({"largest", {{3, 5}}, {{"axes", NormInts{0}}, {"p", kInfinite}}})
    .sample({"smallest", {{3, 5}}, {{"axes", NormInts{1}}, {"p", -kInfinite}}})
    .sample({"count", {{3, 5}}, {{"axes", NormInts{1}}, {"p", 0.0}}})
    .sample({"scalar", {{}}, {{"p", 3.0}}})
    .sample({"empty_axis", {{3, 0}}, {{"axes", NormInts{1}}}})
    .sample({"empty", {{0, 3}}, {{"axes", NormInts{1}}}});

OP(renorm)
    .doc(
        "Slices along an axis whose norm of order p is above max_norm are scaled down to it; the "
        "others stay.")
    .formula("y[i] = x[i] * (norm(x[i]) > max_norm ? max_norm / (norm(x[i]) + 1e-7) : 1)")
    .input("x", kFloat)
    .output("y")
    .attr("p", 2.0, "the order of the norm")
    .attr("axis", 0, "that counts the slices")
    .attr("max_norm", 1.0)
    .reference_only("rare: weights are cut once a step")
    .infer(infer_renorm)
    .sample({"rows", {{4, 5}}, {}})
    .sample({"middle", {{2, 3, 4}}, {{"axis", 1}, {"p", 1.0}, {"max_norm", 3.0}}})
    .sample({"largest", {{3, 4}}, {{"axis", -1}, {"p", kInfinite}}})
    .sample({"empty", {{0, 4}}, {}});

namespace {

Term power(const Term& base, double exponent) {
  return base.ctx().add("pow", {base, base.ctx().scalar(exponent, base.dtype())});
}

}  // namespace

GRADIENT(vector_norm) {
  const double p = ctx.attrs().f("p");
  const NormInts axes = norm_axes(ctx.attrs(), ctx.x().rank());
  const auto kept = [&](const Term& reduced) {
    return ctx.attrs().b("keep_dims") || axes.empty() ? reduced
                                                      : reduced.op("unsqueeze", {{"axes", axes}});
  };
  const Term x = ctx.x(), y = kept(ctx.y()), dy = kept(ctx.dy());
  if (p == 0) return ctx.set(0, ctx.fill_like(x, 0));
  const Term sign = x.op("sign"), size = x.op("abs"), none = y == 0.0, zero = size == 0.0;
  if (p == 1) return ctx.set(0, sign * dy);
  if (p == 2) return ctx.set(0, x * where(none, 0, dy / where(none, 1, y)));
  if (std::isinf(p)) {
    const Term mask = (size == y).op("cast", {{"dtype", x.dtype()}});
    return ctx.set(0, sign * mask * (dy / ctx.sum(mask, axes)));
  }
  const Term ratio = where(zero, 1, size) / where(none, 1, y);
  ctx.set(0, where(either(zero, none), 0, sign * power(ratio, p - 1) * dy));
}

GRADIENT(renorm) {
  const double limit = ctx.attrs().f("max_norm");
  const Term x = ctx.x();
  const NormInts others = axes_without(axis_of(ctx), x.rank());
  const Term norm = others.empty()
                        ? x.op("abs")
                        : x.op("vector_norm", {{"p", ctx.attrs().f("p")}, {"axes", others}});
  const Term scale = limit / (norm + 1e-7);
  ctx.through({x * where(norm > limit, scale, 1)});
}

}  // namespace anymps
