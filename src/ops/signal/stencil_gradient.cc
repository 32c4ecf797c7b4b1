// SPDX-License-Identifier: Apache-2.0
// The gradients of stencils to the tensor and to the weights.
#include "ops/expect.h"
#include "ops/gradient.h"
#include "ops/signal/stencil.h"

namespace anymps {

namespace {

void infer_stencil_gradient(InferContext& ctx) {
  expect_rank(ctx, 2, 1, ctx.rank(1));
  const Dims &x = ctx.shape(1), &weights = ctx.shape(2);
  Dims y = x;
  const size_t lead = y.size() - weights.size();
  const Dims in(y.begin() + static_cast<std::ptrdiff_t>(lead), y.end());
  if (all_known(in) && all_known(weights)) {
    const Shape out = stencil_of(ctx.attrs, to_shape(in), to_shape(weights)).out;
    for (size_t i = 0; i < in.size(); ++i) y[lead + i] = out[i];
    expect_shape(ctx, 0, y);
  }
  check_border(ctx, in);
  ctx.set(0, x);
  ctx.set(1, weights);
}

}  // namespace

OP(stencil_gradient)
    .doc(
        "The gradients of stencil to x and to the weights. Of a minimum or a maximum, the first "
        "product that is the extremum has it.")
    .formula("dx[i * stride + j * dilation + first] += gradient[i] * weights[j] * slope(i, j)")
    .input("gradient", kFloat, "T", "of stencil's y")
    .input("x", kFloat)
    .input("weights", kFloat)
    .outputs({"dx", "dweights"})
    .attr("reduce", "sum", {"sum", "product", "min", "max"})
    .with(stencil_attrs)
    .reference_only("rare: nobody has needed it fast")
    .infer(infer_stencil_gradient)
    .tolerance({.f32 = 5e-5, .f16 = 1e-2, .bf16 = 6e-2, .f64 = 1e-10})
    .sample({"valid", {{4, 4}, {5, 6}, {2, 3}}, {}})
    .sample({"same",
             {{2, 5, 6}, {2, 5, 6}, {3, 2}},
             {{"padding", "same_upper"}, {"border", "anti_wrap"}}})
    .sample({"max",
             {{7}, {7}, {3}},
             {{"reduce", "max"}, {"padding", "same_lower"}, {"border", "reflect"}}})
    .sample({"product",
             {{8}, {8}, {2}},
             {{"reduce", "product"}, {"padding", "offset"}, {"offsets", Ints{-1}}, {"value", 3.0}}})
    .sample({"empty", {{0, 4}, {0, 6}, {3}}, {}});

NO_GRADIENT(stencil_gradient, "stencils have no second gradient");

}  // namespace anymps
