// SPDX-License-Identifier: Apache-2.0
// Gradients of resizing.
#include "ops/gradient_parts.h"

namespace anymps {

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
      const Dim& extent = shape[axis < 0 ? axis + ctx.x().rank() : axis];
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

}  // namespace anymps
