// SPDX-License-Identifier: Apache-2.0
// The gradients of pooling, and max_unpool, which takes elements back to where max_pool found them.
#include "ops/expect.h"
#include "ops/layers/pooling.h"

namespace anymps {

namespace {

void infer_pool_gradient(InferContext& ctx) {
  const Dims& x = ctx.shape(1);
  if (ctx.op.attr_index("p") >= 0)
    ctx.check(ctx.attrs.i("p") >= 1, "p is {}, must be at least 1", ctx.attrs.i("p"));
  expect_shape(ctx, 0, pooled_shape(ctx, x));
  ctx.set(0, x);
}

void infer_max_unpool(InferContext& ctx) {
  const Dims& x = ctx.shape(0);
  expect_shape(ctx, 1, x);
  const Ints& kernel = ctx.attrs.ints("kernel");
  ctx.check(!kernel.empty() && kernel.size() + 2 == x.size(),
            "x has shape {}, but kernel has {} entries: it must have one for each spatial axis",
            to_string(x), kernel.size());
  if (ctx.has(2) || !ctx.attrs.ints("shape").empty()) {
    const std::optional<Dims> shape = ctx.ints(2, "shape");
    Dims y = x;
    if (shape) {
      ctx.check(shape->size() == x.size(), "shape has {} extents, x has rank {}", shape->size(),
                x.size());
      y = *shape;
    } else {
      for (size_t i = 0; i < y.size(); ++i) y[i] = ctx.fresh(std::to_string(i));
    }
    ctx.check(may_equal(x[0], y[0]), "x has {} images, the output {}", x[0].str(), y[0].str());
    return ctx.set(0, std::move(y));
  }
  ctx.check(ctx.attrs.s("auto_pad") == "explicit" || ctx.attrs.s("auto_pad") == "valid",
            "auto_pad {} does not tell the output's extents: shape is needed",
            ctx.attrs.s("auto_pad"));
  const auto entry = [&](const char* attr, size_t i, int64_t otherwise) {
    const Ints& values = ctx.attrs.ints(attr);
    return i < values.size() ? values[i] : otherwise;
  };
  const TensorAxes axes = tensor_axes(ctx.attrs, x.size());
  Dims y = x;
  for (size_t i = 0; i < kernel.size(); ++i) {
    ctx.check(kernel[i] > 0, "kernel has the entry {}", kernel[i]);
    const int64_t span = entry("dilations", i, 1) * (kernel[i] - 1) + 1;
    const int64_t pads = entry("pads", i, 0) + entry("pads", i + kernel.size(), 0);
    y[axes.spatial + i] = (x[axes.spatial + i] - 1) * entry("strides", i, 1) + (span - pads);
  }
  ctx.set(0, std::move(y));
}

OpWriter& gradient_samples(OpWriter& op) {
  return op.tolerance({.f32 = 2e-5, .f16 = 4e-3, .bf16 = 3e-2, .f64 = 1e-10})
      .sample({"1d", {{2, 3, 5}, {2, 3, 11}}, {{"kernel", Ints{3}}, {"strides", Ints{2}}}})
      .sample(
          {"2d", {{2, 3, 4, 4}, {2, 3, 8, 9}}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}}})
      .sample({"2d overlapping",
               {{1, 4, 6, 6}, {1, 4, 12, 12}},
               {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}})
      .sample({"2d ceil",
               {{1, 2, 3, 5}, {1, 2, 7, 10}},
               {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", true}}})
      .sample({"2d ceil, larger than x",
               {{1, 2, 1, 1}, {1, 2, 2, 3}},
               {{"kernel", Ints{3, 4}}, {"strides", Ints{2, 3}}, {"ceil_mode", true}}})
      .sample({"2d same_upper",
               {{1, 2, 4, 4}, {1, 2, 7, 7}},
               {{"kernel", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"auto_pad", "same_upper"}}})
      .sample({"2d dilated",
               {{1, 2, 6, 4}, {1, 2, 9, 8}},
               {{"kernel", Ints{2, 3}}, {"dilations", Ints{3, 2}}}})
      .sample({"2d channels_last",
               {{2, 3, 3, 5}, {2, 7, 8, 5}},
               {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"layout", "channels_last"}}})
      .sample({"4d",
               {{1, 1, 2, 2, 2, 2}, {1, 1, 3, 4, 3, 4}},
               {{"kernel", Ints{2, 2, 2, 2}}, {"strides", Ints{1, 2, 1, 2}}}})
      .sample({"empty batch",
               {{0, 3, 4, 4}, {0, 3, 8, 8}},
               {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}}});
}

OpWriter& pool_gradient(OpWriter& op) {
  return op.input("gradient", kFloat, "T", "of the pool's y")
      .input("x", kFloat)
      .output("dx")
      .with(pooling_window)
      .infer(infer_pool_gradient)
      .with(gradient_samples);
}

}  // namespace

OP(max_pool_gradient)
    .doc(
        "The gradient of max_pool to x: each element goes to the first of the largest "
        "elements of its window.")
    .formula("dx[argmax of window p] += gradient[p]")
    .mps("maxPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:")
    .mps("maxPooling4DGradientWithGradientTensor:sourceTensor:descriptor:name:")
    .with(pool_gradient);

OP(avg_pool_gradient)
    .doc("The gradient of avg_pool to x, of which only the shape is used.")
    .formula("dx[q] = sum over the windows p that hold q of gradient[p] / count(p)")
    .mps("avgPooling2DGradientWithGradientTensor:sourceTensor:descriptor:name:")
    .mps("avgPooling4DGradientWithGradientTensor:sourceTensor:descriptor:name:")
    .with(pool_gradient)
    .facts(kSums)
    .attr("count_include_pad", false)
    .attr("divisor_override", 0, "as in avg_pool");

OP(lp_pool_gradient)
    .doc("The gradient of lp_pool to x; 0 for a window of zeros.")
    .formula("dx[q] = sum over p of gradient[p] * sign(x) * (|x[q]| / y[p])^(p-1)")
    .mps("L2NormPooling4DGradientWithGradientTensor:sourceTensor:descriptor:name:")
    .with(pool_gradient)
    .attr("p", 2, "at least 1");

OP(max_unpool)
    .doc(
        "Puts the elements of x, the output or the gradient of a max_pool, to the places "
        "that its indices name, among zeros. Elements for one place overwrite each other "
        "or are summed. The shape is given, or the smallest that the pool can have had. An "
        "index of -1 names no place.")
    .formula("y[indices[p]] = x[p], or += x[p]")
    .mps("maxPooling2DGradientWithGradientTensor:indicesTensor:outputShape:descriptor:name:")
    .mps(
        "maxPooling2DGradientWithGradientTensor:indicesTensor:outputShapeTensor:descriptor:"
        "name:")
    .mps("maxPooling4DGradientWithGradientTensor:indicesTensor:outputShape:descriptor:name:")
    .mps(
        "maxPooling4DGradientWithGradientTensor:indicesTensor:outputShapeTensor:descriptor:"
        "name:")
    .input("x", kFloat)
    .input("indices", kIndex, "I", "has x's shape")
    .output("y")
    .with(pooling_window)
    .ints("shape", "of y; used without the input", "S", "of y")
    .attr("reduce", "set", {"set", "add"})
    .attr("indices", "tensor", pool_index_choices(), "as in max_pool")
    .infer(infer_max_unpool)
    .no_layout_tests()
    .sample({"2d",
             {{1, 1, 2, 2}, {1, 1, 2, 2}},
             {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}},
             {{1, {5, 7, 8, 15}}}})
    .sample({"2d shape",
             {{1, 2, 1, 2}, {1, 2, 1, 2}, {4}},
             {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"reduce", "add"}},
             {{1, {3, 3, 17, -1}}, {2, {1, 2, 3, 5}}}})
    .sample({"2d in planes",
             {{2, 2, 1, 2}, {2, 2, 1, 2}},
             {{"kernel", Ints{1, 1}},
              {"shape", Ints{2, 2, 2, 3}},
              {"reduce", "add"},
              {"indices", "global_2d"}},
             {{1, {0, 5, 3, 3, 1, -1, 2, 4}}}})
    .sample({"2d local",
             {{1, 1, 2, 2}, {1, 1, 2, 2}},
             {{"kernel", Ints{2, 2}},
              {"strides", Ints{2, 2}},
              {"shape", Ints{1, 1, 5, 5}},
              {"indices", "local_2d"}},
             {{1, {0, 1, 2, 3}}}})
    .sample({"empty", {{0, 1, 2, 2}, {0, 1, 2, 2}}, {{"kernel", Ints{2, 2}}}, {{1, {}}}});

}  // namespace anymps
