// SPDX-License-Identifier: Apache-2.0
// Pooling over any number of spatial axes.
#include "ops/layers/pooling.h"

#include "ops/expect.h"

namespace anymps {

OpWriter& pooling_window(OpWriter& op) {
  return op.required("kernel", AttrKind::kInts, "one extent for each spatial axis")
      .with(padded_window)
      .with(window_auto_pad)
      .attr("ceil_mode", false, "extents are rounded up: a last window may stick out")
      .attr("layout", "channels_first", layout_choices());
}

std::vector<std::string> pool_index_choices() {
  return {"tensor",    "column_major", "global_1d", "global_2d", "global_3d",
          "global_4d", "local_1d",     "local_2d",  "local_3d",  "local_4d"};
}

Shape spatial_extents(const Attrs& attrs, const Shape& x) {
  const TensorAxes axes = tensor_axes(attrs, x.size());
  Shape spatial;
  for (size_t i = 0; i < axes.count; ++i) spatial.push_back(x[axes.spatial + i]);
  return spatial;
}

Window pool_window(const Attrs& attrs, const Shape& x) {
  const std::vector<int64_t>& kernel = attrs.ints("kernel");
  return resolve_window(attrs, spatial_extents(attrs, x), Shape(kernel.begin(), kernel.end()));
}

PoolIndex pool_index(const Attrs& attrs, const Shape& x, const Window& window) {
  const std::string& mode = attrs.s("indices");
  PoolIndexRule rule{.local = mode.starts_with("local"), .column_major = mode == "column_major"};
  if (mode != "tensor" && !rule.column_major) {  // global_2d
    rule.axes = mode.at(mode.find('_') + 1) - '0';
    require(rule.axes <= x.size(), "[{}] indices {} of a tensor of rank {}", attrs.op()->name, mode,
            x.size());
  }
  return PoolIndex(rule, tensor_axes(attrs, x.size()), x, window);
}

Dims pooled_shape(InferContext& ctx, const Dims& x) {
  const Ints& kernel = ctx.attrs.ints("kernel");
  ctx.check(!kernel.empty() && kernel.size() + 2 == x.size(),
            "x has shape {}, but kernel has {} entries: it must have one for each spatial axis",
            to_string(x), kernel.size());
  const TensorAxes axes = tensor_axes(ctx.attrs, x.size());
  const auto first = x.begin() + static_cast<std::ptrdiff_t>(axes.spatial);
  const Dims out =
      window_outputs(ctx.attrs, Dims(first, first + static_cast<std::ptrdiff_t>(axes.count)),
                     Dims(kernel.begin(), kernel.end()), ctx.attrs.b("ceil_mode"));
  Dims y = x;
  for (size_t i = 0; i < axes.count; ++i) y[axes.spatial + i] = out[i];
  return y;
}

namespace {

void infer_pool(InferContext& ctx) {
  const Dims y = pooled_shape(ctx, ctx.shape(0));
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, y);
}

double pool_cost(const Attrs& attrs, const std::vector<Shape>&, const std::vector<Shape>& out) {
  double count = 1;
  for (const int64_t extent : out[0]) count *= static_cast<double>(extent);
  for (const int64_t extent : attrs.ints("kernel")) count *= static_cast<double>(extent);
  return count;
}

OpWriter& pooling(OpWriter& op) {
  return op.with(pooling_window).layout(LayoutRule::kLayout).cost(pool_cost);
}

OpWriter& pool_samples(OpWriter& op) {
  return op.sample({"1d", {{2, 3, 11}}, {{"kernel", Ints{3}}, {"strides", Ints{2}}}})
      .sample({"2d", {{2, 3, 8, 9}}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}}})
      .sample({"2d asymmetric pads",
               {{1, 2, 6, 6}},
               {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{0, 1, 1, 2}}}})
      .sample({"2d ceil",
               {{1, 2, 7, 10}},
               {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", true}}})
      .sample({"2d ceil, larger than x",
               {{1, 2, 2, 3}},
               {{"kernel", Ints{3, 4}}, {"strides", Ints{2, 3}}, {"ceil_mode", true}}})
      .sample({"2d same_upper",
               {{1, 2, 7, 7}},
               {{"kernel", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"auto_pad", "same_upper"}}})
      .sample({"2d same_lower",
               {{1, 2, 7, 7}},
               {{"kernel", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"auto_pad", "same_lower"}}})
      .sample({"2d channels_last",
               {{2, 7, 8, 5}},
               {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"layout", "channels_last"}}})
      .sample({"2d empty batch", {{0, 3, 8, 8}}, {{"kernel", Ints{2, 2}}}})
      .sample({"3d",
               {{1, 2, 4, 5, 6}},
               {{"kernel", Ints{2, 3, 2}},
                {"strides", Ints{1, 2, 2}},
                {"pads", Ints{0, 1, 0, 1, 1, 0}}}});
}

}  // namespace

OP(max_pool)
    .doc(
        "The largest element of each window; padding never wins, NaN always does. The second "
        "output, if asked for, is the element's place as a flat row-major index, the first of "
        "equals. A window that lies in the padding alone gives the lowest value and -1.")
    .formula("y[n,c,p] = max over k of x[n,c,p*stride+k*dilation-pad]")
    .mps("maxPooling2DWithSourceTensor:descriptor:name:")
    .mps("maxPooling2DReturnIndicesWithSourceTensor:descriptor:name:")
    .mps("maxPooling4DWithSourceTensor:descriptor:name:")
    .mps("maxPooling4DReturnIndicesWithSourceTensor:descriptor:name:")
    .input("x", kReal, "T", kImageDoc)
    .output("y")
    .by_product("indices", "i64")
    .with(pooling)
    .attr("indices", "tensor", pool_index_choices(),
          "what the places are counted over: all of x, also with the first spatial axis innermost, "
          "its last axes (global), or those of the window (local)")
    .facts(kStaysHalf)
    .infer(infer_pool)
    .with(pool_samples)
    .sample({"2d overlapping",
             {{1, 4, 12, 12}},
             {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d default strides", {{1, 2, 5, 6}}, {{"kernel", Ints{3, 2}}}})
    .sample({"2d dilated", {{1, 2, 9, 8}}, {{"kernel", Ints{2, 3}}, {"dilations", Ints{3, 2}}}})
    .sample({"2d ceil padded",
             {{1, 2, 6, 7}},
             {{"kernel", Ints{2, 2}},
              {"strides", Ints{3, 3}},
              {"pads", Ints{1, 1, 1, 1}},
              {"ceil_mode", true}}})
    .sample({"2d stride above kernel",
             {{1, 2, 9, 9}},
             {{"kernel", Ints{2, 2}}, {"strides", Ints{3, 4}}}})
    .sample({"2d column_major",
             {{2, 3, 8, 9}},
             {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"indices", "column_major"}}})
    .sample({"2d global_2d",
             {{2, 3, 8, 9}},
             {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"indices", "global_2d"}}})
    .sample({"2d local_2d",
             {{2, 3, 8, 9}},
             {{"kernel", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"indices", "local_2d"}}})
    .sample({"2d whole image", {{2, 8, 7, 7}}, {{"kernel", Ints{7, 7}}}})
    .sample({"2d large", {{1, 16, 28, 28}}, {{"kernel", Ints{5, 5}}, {"pads", Ints{2, 2, 2, 2}}}})
    .sample({"4d", {{1, 1, 3, 4, 3, 4}}, {{"kernel", Ints{2, 2, 2, 2}}}});

OP(avg_pool)
    .doc(
        "The mean of each window. Padding counts as zeros with count_include_pad, and not at all "
        "without; what sticks out of the padding with ceil_mode never counts. A window without "
        "any element gives 0.")
    .formula("y[n,c,p] = sum over k of x[n,c,p*stride+k*dilation-pad] / count")
    .mps("avgPooling2DWithSourceTensor:descriptor:name:")
    .mps("avgPooling4DWithSourceTensor:descriptor:name:")
    .input("x", kFloat, "T", kImageDoc)
    .output("y")
    .with(pooling)
    .attr("count_include_pad", false, "padding counts as zeros")
    .attr("divisor_override", 0, "what sums are divided by instead of their count; 0: the count")
    .facts(kStaysHalf | kSums)
    .infer(infer_pool)
    .with(pool_samples)
    .sample({"2d padded",
             {{1, 4, 9, 9}},
             {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d pads counted",
             {{1, 4, 9, 9}},
             {{"kernel", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"count_include_pad", true}}})
    .sample({"2d divisor of its own",
             {{1, 2, 6, 7}},
             {{"kernel", Ints{3, 2}}, {"pads", Ints{1, 1, 1, 0}}, {"divisor_override", 5}}})
    .sample({"2d ceil, larger than x, pads counted",
             {{1, 2, 2, 2}},
             {{"kernel", Ints{4, 3}},
              {"strides", Ints{2, 3}},
              {"pads", Ints{1, 0, 0, 0}},
              {"ceil_mode", true},
              {"count_include_pad", true}}})
    .sample({"2d ceil pads counted",
             {{1, 2, 8, 10}},
             {{"kernel", Ints{3, 3}},
              {"strides", Ints{2, 2}},
              {"pads", Ints{1, 1, 1, 1}},
              {"ceil_mode", true},
              {"count_include_pad", true}}})
    .sample({"2d dilated",
             {{1, 2, 9, 8}},
             {{"kernel", Ints{2, 3}}, {"dilations", Ints{3, 2}}, {"pads", Ints{1, 1, 1, 1}}}})
    .sample({"2d whole image", {{2, 32, 7, 7}}, {{"kernel", Ints{7, 7}}}});

OP(lp_pool)
    .doc("The p-norm of each window.")
    .formula("y[n,c,p] = (sum over k of |x[n,c,p*stride+k*dilation-pad]|^p)^(1/p)")
    .mps("L2NormPooling4DWithSourceTensor:descriptor:name:")
    .input("x", kFloat, "T", kImageDoc)
    .output("y")
    .with(pooling)
    .attr("p", 2, "at least 1")
    .infer([](InferContext& ctx) {
      ctx.check(ctx.attrs.i("p") >= 1, "p is {}, must be at least 1", ctx.attrs.i("p"));
      infer_pool(ctx);
    })
    .with(pool_samples)
    .sample({"2d p=1", {{1, 2, 6, 6}}, {{"kernel", Ints{3, 3}}, {"p", 1}}})
    .sample({"2d p=3 padded",
             {{1, 2, 6, 6}},
             {{"kernel", Ints{3, 3}}, {"pads", Ints{1, 0, 1, 2}}, {"p", 3}}})
    .sample({"2d dilated", {{1, 2, 9, 8}}, {{"kernel", Ints{2, 3}}, {"dilations", Ints{3, 2}}}})
    .sample({"3d without pads",
             {{1, 2, 4, 5, 6}},
             {{"kernel", Ints{2, 3, 2}}, {"strides", Ints{1, 2, 2}}}});

}  // namespace anymps
