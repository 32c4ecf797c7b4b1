// SPDX-License-Identifier: Apache-2.0
// Pooling to a given size: adaptive_avg_pool, adaptive_max_pool and fractional_max_pool, over any
// number of spatial axes up to three. Places are counted within the plane, row-major.
#include "ops/expect.h"
#include "ops/gradient_parts.h"
#include "ops/layers/window.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;

Dims sized_shape(InferContext& ctx, const Dims& x) {
  const Ints& size = ctx.attrs.ints("output_size");
  ctx.check(!size.empty() && size.size() <= 3 && size.size() + 2 == x.size(),
            "x has shape {}, but output_size has {} entries: it must have one for each of 1 to 3 "
            "spatial axes",
            to_string(x), size.size());
  const TensorAxes axes = tensor_axes(ctx.attrs, x.size());
  Dims y = x;
  for (size_t i = 0; i < size.size(); ++i) {
    ctx.check(size[i] >= 0, "output_size has the entry {}", size[i]);
    const Dim& extent = x[axes.spatial + i];
    ctx.check(!extent.is(0), "x has shape {}: there is nothing to pool", to_string(x));
    y[axes.spatial + i] = size[i];
  }
  return y;
}

void infer_adaptive(InferContext& ctx) {
  const Dims y = sized_shape(ctx, ctx.shape(0));
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, y);
}

void infer_fractional(InferContext& ctx) {
  const Dims& x = ctx.shape(0);
  const Dims y = sized_shape(ctx, x);
  const Ints &kernel = ctx.attrs.ints("kernel"), &size = ctx.attrs.ints("output_size");
  ctx.check(kernel.size() == size.size(), "kernel has {} entries, output_size has {}",
            kernel.size(), size.size());
  for (size_t i = 0; i < kernel.size(); ++i) {
    ctx.check(kernel[i] >= 1, "kernel has the entry {}", kernel[i]);
    ctx.check(!x[i + 2].known() || kernel[i] - 1 <= x[i + 2].value() - size[i],
              "{} windows of {} do not fit into an extent of {}", size[i], kernel[i],
              x[i + 2].str());
  }
  expect_shape(ctx, 1, {x[0], x[1], std::ssize(size)});
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, y);
}

OpWriter& output_size(OpWriter& op) {
  return op.required("output_size", AttrKind::kInts, "one extent for each spatial axis")
      .attr("layout", "channels_first", layout_choices());
}

OpWriter& adaptive_samples(OpWriter& op) {
  return op.sample({"1d", {{2, 3, 11}}, {{"output_size", Ints{4}}}})
      .sample({"2d", {{2, 3, 8, 9}}, {{"output_size", Ints{3, 4}}}})
      .sample({"2d whole image", {{2, 8, 7, 7}}, {{"output_size", Ints{1, 1}}}})
      .sample({"2d rows", {{2, 2, 6, 5}}, {{"output_size", Ints{3, 1}}}})
      .sample({"2d larger", {{1, 2, 3, 4}}, {{"output_size", Ints{5, 4}}}})
      .sample({"2d channels_last",
               {{2, 7, 8, 5}},
               {{"output_size", Ints{3, 2}}, {"layout", "channels_last"}}})
      .sample({"3d", {{1, 2, 4, 5, 6}}, {{"output_size", Ints{2, 2, 4}}}})
      .sample({"no output", {{1, 2, 3, 4}}, {{"output_size", Ints{0, 2}}}})
      .sample({"empty batch", {{0, 3, 8, 8}}, {{"output_size", Ints{2, 2}}}});
}

const char* const kImages = "[N, C, spatial…], or [N, spatial…, C] for channels_last";

}  // namespace

OP(adaptive_avg_pool)
    .doc(
        "The means of windows that part each spatial axis into output_size equal parts, wider by "
        "the element that they share where it does not divide.")
    .formula("y[p] = mean(x[floor(p * in / out) .. ceil((p + 1) * in / out)])")
    .input("x", kFloat, "T", kImages)
    .output("y")
    .with(output_size)
    .facts(kStaysHalf | kSums)
    .layout(LayoutRule::kLayout)
    .infer(infer_adaptive)
    .with(adaptive_samples);

OP(adaptive_max_pool)
    .doc(
        "The largest elements of windows that part each spatial axis into output_size equal parts; "
        "NaN always wins. The second output, if asked for, is the element's place within its "
        "plane, the first of equals, the last of NaNs.")
    .formula("y[p] = max(x[floor(p * in / out) .. ceil((p + 1) * in / out)])")
    .input("x", kFloat, "T", kImages)
    .output("y")
    .by_product("indices", "i64")
    .with(output_size)
    .infer(infer_adaptive)
    .with(adaptive_samples);

OP(fractional_max_pool)
    .doc(
        "The largest elements of windows of one size that lie at random distances, which `samples` "
        "decide for each plane. The second output, if asked for, is the element's place within its "
        "plane, the first of equals, the last of NaNs. The samples of two axes are those of the "
        "width and the height, of others in the order of the axes.")
    .formula(
        "y[p] = max(x[start(p) .. start(p) + kernel]), start(p) = floor((p + u) * a) - floor(u * "
        "a)")
    .input("x", kFloat, "T", "[N, C, spatial…]")
    .input("samples", kFloat, "T", "[N, C, spatial axes], in [0, 1)")
    .output("y")
    .by_product("indices", "i64")
    .required("kernel", AttrKind::kInts, "one extent for each spatial axis")
    .required("output_size", AttrKind::kInts, "one extent for each spatial axis")
    .attr("layout", "channels_first", {"channels_first"})
    .infer(infer_fractional)
    .domain("samples", 0, 0.999)
    .sample({"1d", {{2, 3, 11}, {2, 3, 1}}, {{"kernel", Ints{2}}, {"output_size", Ints{4}}}})
    .sample({"2d",
             {{2, 3, 8, 9}, {2, 3, 2}},
             {{"kernel", Ints{2, 3}}, {"output_size", Ints{3, 4}}}})
    .sample({"2d one",
             {{1, 2, 3, 3}, {1, 2, 2}},
             {{"kernel", Ints{2, 2}}, {"output_size", Ints{1, 1}}}})
    .sample({"3d",
             {{1, 2, 4, 5, 6}, {1, 2, 3}},
             {{"kernel", Ints{2, 2, 2}}, {"output_size", Ints{2, 2, 4}}}})
    .sample({"empty batch",
             {{0, 3, 8, 8}, {0, 3, 2}},
             {{"kernel", Ints{2, 2}}, {"output_size", Ints{2, 2}}}});

OP(adaptive_avg_pool_gradient)
    .doc("The gradient of adaptive_avg_pool to x, of which only the shape is used.")
    .formula("dx[q] = sum over the windows p that hold q of gradient[p] / count(p)")
    .input("gradient", kFloat, "T", "of the pool's y")
    .input("x", kFloat, "T", kImages)
    .output("dx")
    .with(output_size)
    .facts(kSums)
    .infer([](InferContext& ctx) {
      expect_shape(ctx, 0, sized_shape(ctx, ctx.shape(1)));
      ctx.set(0, ctx.shape(1));
    })
    .sample({"1d", {{2, 3, 4}, {2, 3, 11}}, {{"output_size", Ints{4}}}})
    .sample({"2d", {{2, 3, 3, 4}, {2, 3, 8, 9}}, {{"output_size", Ints{3, 4}}}})
    .sample({"2d whole image", {{2, 8, 1, 1}, {2, 8, 7, 7}}, {{"output_size", Ints{1, 1}}}})
    .sample({"2d channels_last",
             {{2, 3, 2, 5}, {2, 7, 8, 5}},
             {{"output_size", Ints{3, 2}}, {"layout", "channels_last"}}})
    .sample({"3d", {{1, 2, 2, 2, 4}, {1, 2, 4, 5, 6}}, {{"output_size", Ints{2, 2, 4}}}})
    .sample({"empty batch", {{0, 3, 2, 2}, {0, 3, 8, 8}}, {{"output_size", Ints{2, 2}}}});

GRADIENT(adaptive_avg_pool) {
  ctx.set(0, ctx.add("adaptive_avg_pool_gradient", {ctx.dy(), ctx.x()}, ctx.attrs().named()));
}

GRADIENT(adaptive_avg_pool_gradient) {
  ctx.set(0, ctx.dy().op("adaptive_avg_pool", ctx.attrs().named()));
}

namespace {

// dy goes to the places that the pool found.
void pool_back(GradientContext& ctx) {
  if (!ctx.dy()) return;
  if (ctx.attrs().s("layout") != "channels_first")
    ctx.refuse("only of channels_first: places are counted within planes");
  std::vector<Term> inputs;
  for (size_t i = 0; i < ctx.input_count(); ++i) inputs.push_back(ctx.x(i));
  const Term places = ctx.output_count() > 1
                          ? ctx.y(1)
                          : ctx.add_all(ctx.op().name.c_str(), inputs, ctx.attrs().named(), 2)[1];
  const size_t spatial = ctx.attrs().ints("output_size").size();
  ctx.set(0, ctx.add("max_unpool", {ctx.dy(), places, ctx.shape_of(ctx.x())},
                     {{"kernel", Ints(spatial, 1)},
                      {"indices", fmt::format("global_{}d", spatial)},
                      {"reduce", "add"}}));
}

}  // namespace

GRADIENT(adaptive_max_pool) { pool_back(ctx); }
GRADIENT(fractional_max_pool) { pool_back(ctx); }

}  // namespace anymps
