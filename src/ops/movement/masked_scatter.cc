// SPDX-License-Identifier: Apache-2.0
// Elements put where a mask is true, in order.
#include "ops/expect.h"
#include "ops/gradient_parts.h"

namespace anymps {

OP(masked_scatter)
    .doc(
        "x with the elements at which the mask is true replaced by those of `source`, in row-major "
        "order. There must be as many of them, or more.")
    .formula("y = x, y[mask] = source[0 .. count(mask)]")
    .input("x", kEvery)
    .input("mask", kBoolean, "M", "of x's shape")
    .input("source", kEvery, "T", "any shape")
    .output("y")
    .infer([](InferContext& ctx) {
      expect_shape(ctx, 1, ctx.shape(0));
      ctx.shape(2);
      ctx.set(0, ctx.shape(0));
    })
    .sample({"matrix", {{2, 3}, {2, 3}, {4}}, {}, {{1, {0, 1, 1, 0, 0, 1}}}})
    .sample({"all", {{4}, {4}, {2, 2}}, {}, {{1, {1, 1, 1, 1}}}})
    .sample({"none", {{3}, {3}, {0}}, {}, {{1, {0, 0, 0}}}})
    .sample({"scalar", {{}, {}, {1}}, {}, {{1, {1}}}})
    .sample({"empty", {{0, 3}, {0, 3}, {2}}, {}, {{1, {}}}});

COMPLEX_GRADIENT(masked_scatter) {
  const Term mask = ctx.x(1), dy = ctx.dy(), source = ctx.x(2);
  ctx.set(0, where(mask, 0, dy));
  if (!ctx.wants(2)) return;
  if (source.type().static_shape() && element_count(to_shape(source.shape())) == 0)
    return ctx.set(2, ctx.fill_like(source, 0));
  const Term flat = ctx.reshape(mask, {-1});
  const Term places =
      flat.op("cast", {{"dtype", DType::kI64}}).op("cumsum", {{"axis", 0}, {"exclusive", true}});
  const Term sums = ctx.add("scatter",
                            {where(flat, ctx.reshape(dy, {-1}), 0), where(flat, places, 0),
                             ctx.reshape(ctx.fill_like(source, 0), {-1})},
                            {{"mode", "add"}});
  ctx.set(2, ctx.reshape_like(sums, source));
}

}  // namespace anymps
