// SPDX-License-Identifier: Apache-2.0
// Pooling to a given size: window i of an axis reaches from floor(i * in / out) to
// ceil((i + 1) * in / out), so that windows differ by one and may overlap.
#include "ops/expect.h"
#include "ops/gradient.h"
#include "ops/layers/window.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

// The shape of x pooled to the attribute's size.
Dims adaptive_shape(const InferContext& ctx, size_t x) {
  expect_rank(ctx, x, 3, 5);
  Dims shape = ctx.shape(x);
  const TensorAxes axes = tensor_axes(ctx.attrs, shape.size());
  const Ints& size = ctx.attrs.ints("output_size");
  ctx.check(size.size() == axes.count, "output_size has {} extents, x has {} spatial axes",
            size.size(), axes.count);
  for (size_t i = 0; i < size.size(); ++i) {
    ctx.check(size[i] >= 0, "output_size has {}, must not be negative", size[i]);
    ctx.check(size[i] == 0 || !shape[axes.spatial + i].is(0), "x {} has an empty spatial axis",
              to_string(shape));
    shape[axes.spatial + i] = size[i];
  }
  return shape;
}

void infer_adaptive_pool(InferContext& ctx) {
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, adaptive_shape(ctx, 0));
}

void infer_adaptive_pool_gradient(InferContext& ctx) {
  const Dims y = adaptive_shape(ctx, 1);
  expect_shape(ctx, 0, y);
  if (ctx.op.inputs.size() > 2) expect_shape(ctx, 2, y);
  ctx.set(0, ctx.shape(1));
}

OpWriter& adaptive_attrs(OpWriter& op) {
  return op.required("output_size", AttrKind::kInts, "an extent for each spatial axis")
      .attr("layout", "channels_first", layout_choices());
}

OpWriter& adaptive_samples(OpWriter& op) {
  return op.with(adaptive_attrs)
      .infer(infer_adaptive_pool)
      .sample({"2d", {{2, 3, 7, 5}}, {{"output_size", Ints{3, 2}}}})
      .sample({"one", {{2, 20, 4, 6}}, {{"output_size", Ints{1, 1}}}})
      .sample({"larger", {{1, 2, 3, 2}}, {{"output_size", Ints{5, 4}}}})
      .sample({"1d", {{2, 3, 40}}, {{"output_size", Ints{7}}}})
      .sample({"3d", {{1, 2, 3, 4, 5}}, {{"output_size", Ints{2, 2, 3}}}})
      .sample({"channels last",
               {{2, 7, 5, 33}},
               {{"output_size", Ints{3, 2}}, {"layout", "channels_last"}}})
      .sample({"empty batch", {{0, 3, 4, 4}}, {{"output_size", Ints{2, 2}}}})
      .sample({"no output", {{1, 3, 4, 4}}, {{"output_size", Ints{0, 2}}}});
}

const char* const kAdaptiveDoc = "[N, C, …], or [N, …, C] for channels_last";
const char* const kPlacesDoc = "where in the spatial axes of x, counted in row-major order";

}  // namespace

OP(adaptive_avg_pool)
    .doc("The mean over windows that together make an output of the given size.")
    .formula("y[i] = mean(x[floor(i * in / out) : ceil((i + 1) * in / out)]) along each axis")
    .input("x", kFloat, "T", kAdaptiveDoc)
    .output("y")
    .with(adaptive_samples);

OP(adaptive_max_pool)
    .doc(
        "The maximum over windows that together make an output of the given size; NaN if there is "
        "one. Where it was is an output if asked for.")
    .formula("y[i] = max(x[floor(i * in / out) : ceil((i + 1) * in / out)]) along each axis")
    .input("x", kFloat, "T", kAdaptiveDoc)
    .output("y")
    .by_product("places", "i64", kPlacesDoc)
    .with(adaptive_samples)
    .tolerance({.f32 = 0, .f16 = 0, .bf16 = 0, .f64 = 0});

OP(adaptive_avg_pool_gradient)
    .doc("The gradient of adaptive_avg_pool: each window's, shared out evenly.")
    .formula("dx[j] = sum of dy[i] / size of window i, over the windows that hold j")
    .input("dy", kFloat)
    .input("x", kFloat, "T", "only its shape is read")
    .output("dx")
    .with(adaptive_attrs)
    .infer(infer_adaptive_pool_gradient)
    .sample({"2d", {{2, 3, 3, 2}, {2, 3, 7, 5}}, {{"output_size", Ints{3, 2}}}})
    .sample({"larger", {{1, 2, 5, 4}, {1, 2, 3, 2}}, {{"output_size", Ints{5, 4}}}})
    .sample({"channels last",
             {{2, 3, 2, 33}, {2, 7, 5, 33}},
             {{"output_size", Ints{3, 2}}, {"layout", "channels_last"}}})
    .sample({"empty batch", {{0, 3, 2, 2}, {0, 3, 4, 4}}, {{"output_size", Ints{2, 2}}}});

OP(adaptive_max_pool_gradient)
    .doc("The gradient of adaptive_max_pool: each window's goes to where its maximum was.")
    .formula("dx[places[i]] += dy[i]")
    .input("dy", kFloat)
    .input("x", kFloat, "T", "only its shape is read")
    .input("places", bit(DType::kI64), "I", kPlacesDoc)
    .output("dx")
    .with(adaptive_attrs)
    .infer(infer_adaptive_pool_gradient)
    .domain("places", 0, 3)
    .sample({"2d", {{2, 3, 3, 2}, {2, 3, 7, 5}, {2, 3, 3, 2}}, {{"output_size", Ints{3, 2}}}})
    .sample({"channels last",
             {{2, 3, 2, 33}, {2, 7, 5, 33}, {2, 3, 2, 33}},
             {{"output_size", Ints{3, 2}}, {"layout", "channels_last"}}})
    .sample({"empty batch",
             {{0, 3, 2, 2}, {0, 3, 4, 4}, {0, 3, 2, 2}},
             {{"output_size", Ints{2, 2}}}});

GRADIENT(adaptive_avg_pool) {
  ctx.set(0, ctx.add("adaptive_avg_pool_gradient", {ctx.dy(), ctx.x()}, ctx.attrs().named()));
}

GRADIENT(adaptive_max_pool) {
  const Term places = ctx.output_count() > 1
                          ? ctx.y(1)
                          : ctx.add_all("adaptive_max_pool", {ctx.x()}, ctx.attrs().named(), 2)[1];
  ctx.set(0,
          ctx.add("adaptive_max_pool_gradient", {ctx.dy(), ctx.x(), places}, ctx.attrs().named()));
}

GRADIENT(adaptive_avg_pool_gradient) {
  ctx.set(0, ctx.add("adaptive_avg_pool", {ctx.dy()}, ctx.attrs().named()));
  ctx.set(1, ctx.fill_like(ctx.x(1), 0));
}

NO_GRADIENT(adaptive_max_pool_gradient, "a second derivative of a choice");

}  // namespace anymps
