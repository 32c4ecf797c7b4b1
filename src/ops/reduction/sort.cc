// SPDX-License-Identifier: Apache-2.0
// Order along an axis: sort, argsort, both at once, top_k and its gradient. Equal elements keep
// their order, and a NaN counts as greater than every number.
#include "ops/axis_input.h"
#include "ops/expect.h"
#include "ops/gradient_parts.h"

namespace anymps {

namespace {

void infer_sort(InferContext& ctx) {
  known_axis(ctx, 1, 0);
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, ctx.shape(0));
}

void infer_top_k(InferContext& ctx) {
  const std::optional<int64_t> axis = known_axis(ctx, 2, 0), k = known_int(ctx, 1, "k");
  Dims shape = ctx.shape(0);
  if (!axis) {
    for (Dim& extent : shape) extent = ctx.fresh("k");
  } else {
    Dim& extent = shape[*axis];
    ctx.check(!k || *k >= 0, "k is {}", k.value_or(0));
    ctx.check(!k || !extent.known() || *k <= extent.value(), "k is {}, axis {} has the extent {}",
              k.value_or(0), *axis, extent.str());
    extent = k ? Dim(*k) : ctx.fresh("k");
  }
  ctx.set(0, shape);
  ctx.set(1, shape);
}

}  // namespace

#define SORT(name, text, math)                                           \
  OP(name)                                                               \
      .doc(text)                                                         \
      .formula(math)                                                     \
      .input("x", kReal | kBoolean)                                      \
      .integer("axis", -1, "along which to sort")                        \
      .attr("descending", false, "the greatest first")                   \
      .infer(infer_sort)                                                 \
      .tolerance(kExact)                                                 \
      .sample({"vector", {{33}}, {}})                                    \
      .sample({"last", {{3, 17}}, {{"descending", true}}})               \
      .sample({"middle", {{2, 9, 4}}, {{"axis", 1}}})                    \
      .sample({"first", {{70, 3}}, {{"axis", 0}, {"descending", true}}}) \
      .sample({"axis_input", {{3, 5}, {}}, {}, {{1, {0}}}})              \
      .sample({"one", {{4, 1}}, {}})                                     \
      .sample({"empty", {{0, 3}}, {}})                                   \
      .sample({"empty_axis", {{3, 0}}, {}})

SORT(sort, "The elements in order along an axis.", "y = sorted(x)")
    .output("y")
    .mps("sortWithTensor:axis:descending:name:")
    .mps("sortWithTensor:axisTensor:descending:name:")
    .mps("sortWithTensor:axis:name:")
    .mps("sortWithTensor:axisTensor:name:");
SORT(argsort, "Where along an axis the elements in order come from.", "x[y] = sorted(x)")
    .output("y", "i64")
    .mps("argSortWithTensor:axis:descending:name:")
    .mps("argSortWithTensor:axisTensor:descending:name:")
    .mps("argSortWithTensor:axis:name:")
    .mps("argSortWithTensor:axisTensor:name:");

SORT(sort_with_indices, "The elements in order along an axis, and where they come from.",
     "values = sorted(x), x[indices] = values")
    .output("values")
    .output("indices", "i64");

OP(top_k)
    .doc(
        "The k greatest elements along an axis, greatest first, or the k lowest, lowest first, and "
        "where they come from. Of equal ones the first is taken first.")
    .formula("values = sorted(x)[:k]")
    .mps("topKWithSourceTensor:k:name:")
    .mps("topKWithSourceTensor:kTensor:name:")
    .mps("topKWithSourceTensor:axis:k:name:")
    .mps("topKWithSourceTensor:axisTensor:kTensor:name:")
    .mps("bottomKWithSourceTensor:axis:k:name:")
    .mps("bottomKWithSourceTensor:axisTensor:kTensor:name:")
    .input("x", kReal)
    .integer("k", 1, "how many", "K")
    .integer("axis", -1, "along which to look")
    .output("values")
    .output("indices", "i64")
    .attr("largest", true, "the greatest, not the lowest")
    .infer(infer_top_k)
    .tolerance(kExact)
    .sample({"vector", {{33}}, {{"k", 5}}})
    .sample({"last", {{3, 17}}, {{"k", 4}}})
    .sample({"lowest", {{3, 17}}, {{"k", 4}, {"largest", false}}})
    .sample({"middle", {{2, 9, 4}}, {{"axis", 1}, {"k", 3}}})
    .sample({"all", {{4, 3}}, {{"k", 3}}})
    .sample({"inputs", {{4, 3}, {1}, {}}, {}, {{1, {2}}, {2, {0}}}})
    .sample({"nothing", {{4, 3}}, {{"k", 0}}})
    .sample({"empty", {{0, 3}}, {{"k", 2}}});

OP(top_k_gradient)
    .doc("The gradient of top_k's values: dy at the places that top_k takes, 0 elsewhere.")
    .formula("dx[indices] = dy, 0 elsewhere, with indices = top_k(x).indices")
    .mps("topKWithGradientTensor:source:k:name:")
    .mps("topKWithGradientTensor:source:axis:k:name:")
    .mps("topKWithGradientTensor:source:kTensor:name:")
    .mps("topKWithGradientTensor:source:axisTensor:kTensor:name:")
    .mps("bottomKWithGradientTensor:source:axis:k:name:")
    .mps("bottomKWithGradientTensor:source:axisTensor:kTensor:name:")
    .input("dy", kFloat)
    .input("x", kFloat)
    .integer("axis", -1, "along which top_k looked; dy's extent there is k")
    .output("dx")
    .attr("largest", true, "the greatest, not the lowest")
    .infer([](InferContext& ctx) {
      ctx.check(ctx.rank(0) == ctx.rank(1), "dy has rank {}, x has rank {}", ctx.rank(0),
                ctx.rank(1));
      if (const auto axis = known_axis(ctx, 2, 1)) {
        Dims expected = ctx.shape(1);
        Dim& extent = expected[*axis];
        const Dim k = ctx.shape(0)[*axis];
        ctx.check(!k.known() || !extent.known() || k.value() <= extent.value(),
                  "dy has {} elements along axis {}, x only {}", k.str(), *axis, extent.str());
        extent = k;
        expect_shape(ctx, 0, expected);
      }
      ctx.set(0, ctx.shape(1));
    })
    .sample({"vector", {{3}, {8}}, {}})
    .sample({"middle", {{2, 2, 4}, {2, 5, 4}}, {{"axis", 1}}})
    .sample({"lowest", {{2, 2}, {2, 5}}, {{"largest", false}}})
    .sample({"axis_input", {{2, 3}, {4, 3}, {}}, {}, {{2, {0}}}})
    .sample({"empty", {{0, 2}, {0, 3}}, {}});

GRADIENT(sort) {
  const int64_t axis = known_axis(ctx, 1, ctx.x());
  const Term order =
      ctx.x().op("argsort", {{"axis", axis}, {"descending", ctx.attrs().b("descending")}});
  ctx.set(0, ctx.add("scatter_along_axis", {ctx.dy(), order, ctx.fill_like(ctx.x(), 0)},
                     {{"axis", axis}}));
}

GRADIENT(sort_with_indices) {
  if (!ctx.dy()) return;
  ctx.set(0, ctx.add("scatter_along_axis", {ctx.dy(), ctx.y(1), ctx.fill_like(ctx.x(), 0)},
                     {{"axis", known_axis(ctx, 1, ctx.x())}}));
}

GRADIENT(top_k) {
  if (!ctx.dy()) return;
  ctx.set(0, ctx.add("scatter_along_axis", {ctx.dy(), ctx.y(1), ctx.fill_like(ctx.x(), 0)},
                     {{"axis", known_axis(ctx, 2, ctx.x())}}));
}

GRADIENT(top_k_gradient) {
  const Term x = ctx.x(1), dy = ctx.dy();
  const int64_t axis = known_axis(ctx, 2, x);
  const Term order = x.op("argsort", {{"axis", axis}, {"descending", ctx.attrs().b("largest")}});
  const Dim k = ctx.x().shape()[axis];
  if (!k.known()) ctx.refuse("k is not known");
  const Term first =
      order.op("slice", {{"starts", Ints{0}}, {"ends", Ints{k.value()}}, {"axes", Ints{axis}}});
  ctx.set(0, ctx.add("gather_along_axis", {dy, first}, {{"axis", axis}}));
}

ZERO_GRADIENT(argsort, "gives places");

}  // namespace anymps
