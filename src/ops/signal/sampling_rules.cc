// SPDX-License-Identifier: Apache-2.0
// Gradients of ops that sample pictures.
#include "ops/gradient_parts.h"

namespace anymps {

// y[n, p] = theta[n] @ [p, 1]: the places p are those of the identity.
GRADIENT(affine_grid) {
  const Term theta = ctx.x(0), dy = ctx.dy();
  const int64_t d = dy.rank() - 2;
  const std::optional<Ints> given = ctx.ints(1, "size");
  if (!given) ctx.refuse("its size is not known");
  Ints size = *given;
  size.at(0) = 1;
  Ints identity;
  for (int64_t i = 0; i < d; ++i)
    for (int64_t j = 0; j <= d; ++j) identity.push_back(i == j);
  const Term unit = ctx.ints(identity)
                        .op("cast", {{"dtype", theta.dtype()}})
                        .op("reshape", {{"shape", Ints{1, d, d + 1}}});
  int64_t count = 1;
  for (size_t i = 2; i < size.size(); ++i) count *= size[i];
  const Term places =
      unit.op("affine_grid", {{"size", size}, {"align_corners", ctx.attrs().b("align_corners")}})
          .op("reshape", {{"shape", Ints{count, d}}, {"allow_zero", true}});
  const Term ones =
      ctx.add("fill", {Term(), ctx.scalar(1, theta.dtype())}, {{"shape", Ints{count, 1}}});
  const Term flat = ctx.reshape(dy, {ctx.extent(dy, 0), count, d});
  ctx.set(0, ctx.add("matmul", {flat, ctx.add("concat", {places, ones}, {{"axis", 1}})},
                     {{"transpose_a", true}}));
}

GRADIENT(grid_sample) {
  const std::vector<Term> both =
      ctx.add_all("grid_sample_gradient", {ctx.dy(), ctx.x(0), ctx.x(1)}, ctx.attrs().named(), 2);
  ctx.set(0, both[0]);
  ctx.set(1, both[1]);
}

GRADIENT(roi_align) {
  const std::vector<Term> both =
      ctx.add_all("roi_align_gradient", {ctx.dy(), ctx.x(0), ctx.x(1), ctx.x(2)},
                  shared_attrs(ctx, "roi_align_gradient"), 2);
  ctx.set(0, both[0]);
  ctx.set(1, both[1]);
}

GRADIENT(max_roi_pool) {  // the regions are rounded
  ctx.set(0, ctx.add("max_roi_pool_gradient", {ctx.dy(), ctx.x(0), ctx.x(1)},
                     shared_attrs(ctx, "max_roi_pool_gradient")));
}

NO_GRADIENT(grid_sample_gradient, "sampling has no second gradient");
NO_GRADIENT(roi_align_gradient, "sampling has no second gradient");
NO_GRADIENT(max_roi_pool_gradient, "sampling has no second gradient");

COMPLEX_GRADIENT(center_crop_pad) {
  ctx.set(0, ctx.add("center_crop_pad", {ctx.dy(), ctx.shape_of(ctx.x())}));
}

}  // namespace anymps
