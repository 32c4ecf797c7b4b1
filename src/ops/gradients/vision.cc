// SPDX-License-Identifier: Apache-2.0
// Gradients of resizing, pooling gradients, crops, factorizations and dropout, and why the rest of
// these families has none.
#include "ops/gradients/shared_attrs.h"

namespace anymps {

namespace {

Term product(GradientContext& ctx, const Term& a, const Term& b, bool transpose_a,
             bool transpose_b) {
  return ctx.add("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

}  // namespace

GRADIENT(resize) {
  const bool stretch = ctx.attrs().s("aspect") == "stretch";
  if (!stretch && ctx.has(1)) ctx.refuse("sizes that are computed, with a kept aspect ratio");
  for (const size_t i : {2, 3, 4})
    if (ctx.has(i) && ctx.wants(i)) ctx.refuse("{} have none yet", ctx.op().inputs[i].name);
  std::vector<Term> inputs{ctx.dy(), ctx.x()};
  for (const size_t i : {2, 3, 4}) inputs.push_back(ctx.has(i) ? ctx.x(i) : Term());
  ctx.set(0, ctx.add("resize_gradient", inputs, shared_attrs(ctx, "resize_gradient")));
}

GRADIENT(resize_gradient) {
  if (!ctx.wants(0)) return;
  NamedAttrs attrs = shared_attrs(ctx, "resize");
  const bool by_scales = ctx.has(2) || !ctx.attrs().floats("scales").empty();
  if (ctx.attrs().s("aspect") == "stretch" &&
      (!by_scales || ctx.attrs().s("coordinate") == "scale_offset")) {
    std::vector<int64_t> sizes;
    const std::vector<int64_t>& axes = ctx.attrs().ints("axes");
    const Dims& shape = ctx.x().shape();
    for (size_t i = 0; i < (axes.empty() ? shape.size() : axes.size()); ++i) {
      const int64_t axis = axes.empty() ? static_cast<int64_t>(i) : axes[i];
      const Dim& extent = shape[static_cast<size_t>(axis < 0 ? axis + ctx.x().rank() : axis)];
      if (!extent.known()) ctx.refuse("the gradient's shape is not known");
      sizes.push_back(extent.value());
    }
    std::erase_if(attrs, [](const NamedAttr& attr) { return attr.name == "sizes"; });
    attrs.emplace_back("sizes", sizes);
  }
  std::vector<Term> inputs{ctx.dy(), Term()};
  for (const size_t i : {2, 3, 4}) inputs.push_back(ctx.has(i) ? ctx.x(i) : Term());
  ctx.set(0, ctx.add("resize", inputs, attrs));
}

COMPLEX_GRADIENT(center_crop_pad) {
  ctx.set(0, ctx.add("center_crop_pad", {ctx.dy(), ctx.shape_of(ctx.x())}));
}

GRADIENT(inverse) {
  const Term y = ctx.y();
  ctx.set(0, -product(ctx, product(ctx, y, ctx.dy(), true, false), y, false, true));
}

GRADIENT(det) {
  using Ints = std::vector<int64_t>;
  const Term scale = (ctx.dy() * ctx.y()).op("unsqueeze", {{"axes", Ints{-1, -2}}});
  ctx.set(0, scale * ctx.swap_last(ctx.x().op("inverse")));
}

GRADIENT(solve) {
  const Term db = ctx.add("solve", {ctx.swap_last(ctx.x(0)), ctx.dy()});
  ctx.set(1, db);
  ctx.set(0, -product(ctx, db, ctx.y(), false, true));
}

GRADIENT(dropout) {
  // The same state gives the same mask.
  std::vector<Term> inputs{ctx.dy(), ctx.x(1)};
  if (ctx.has(2)) inputs.push_back(ctx.x(2));
  ctx.set(0, ctx.add("dropout", inputs, ctx.attrs().named()));
  if (ctx.has(2) && ctx.wants(2)) ctx.refuse("the rate decides in steps which elements stay");
}

GRADIENT(suppress_boxes) {  // which boxes are kept is made of steps
  ctx.set(1, where(ctx.y() == 0.0, 0, ctx.dy()));
}

ZERO_GRADIENT(philox_state, "it has no inputs");
ZERO_GRADIENT(random_state, "it has no inputs");
ZERO_GRADIENT(random, "numbers follow from a state of integers");
ZERO_GRADIENT(bernoulli, "it is made of steps");
ZERO_GRADIENT(multinomial, "it is made of steps");
ZERO_GRADIENT(image_decoder, "pixels are whole numbers");
ZERO_GRADIENT(window, "it follows from a number of elements");
ZERO_GRADIENT(non_max_suppression, "it is made of steps");

}  // namespace anymps
