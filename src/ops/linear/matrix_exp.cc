// SPDX-License-Identifier: Apache-2.0
// The exponential of matrices.
#include "ops/gradient_parts.h"
#include "ops/linear/matrix_shapes.h"

namespace anymps {

OP(matrix_exp)
    .doc("The exponential of each matrix, by scaling and squaring. NaN where x is not finite.")
    .formula("y = 1 + x + x @ x / 2! + x @ x @ x / 3! + ...")
    .input("x", kMatrix, "T", "[…, n, n]")
    .output("y")
    .infer([](InferContext& ctx) {
      square_shape(ctx, 0);
      ctx.set(0, ctx.shape(0));
    })
    .with(cubic_work(20))
    .with(square_samples)
    .sample({"nilpotent", {{2, 2}}, {}, {{0, {0, 1, 0, 0}}}})
    .sample({"far", {{2, 2}}, {}, {{0, {-3, 7, -9, 4}}}});

// The block above the diagonal of exp([[x^H, dy], [0, x^H]]) is the derivative at x^H along dy.
COMPLEX_GRADIENT(matrix_exp) {
  using Ints = std::vector<int64_t>;
  const Dim extent = ctx.x().shape().back();
  if (!extent.known()) ctx.refuse("matrices of extents that are not known");
  const int64_t n = extent.value();
  const Term back = conjugated(ctx.swap_last(ctx.x()));
  const Term above = ctx.add("concat", {back, ctx.dy()}, {{"axis", -1}});
  const Term below = ctx.add("concat", {ctx.fill_like(back, 0), back}, {{"axis", -1}});
  const Term whole = ctx.add("concat", {above, below}, {{"axis", -2}}).op("matrix_exp");
  ctx.set(0, whole.op("slice",
                      {{"starts", Ints{0, n}}, {"ends", Ints{n, 2 * n}}, {"axes", Ints{-2, -1}}}));
}

}  // namespace anymps
