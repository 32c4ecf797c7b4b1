// SPDX-License-Identifier: Apache-2.0
// What sampling ops and their gradients have in common.
#pragma once

#include "ops/expect.h"
#include "ops/layers/window.h"
#include "ops/shape_rules.h"
#include "semantics/grid_coordinates.h"
#include "semantics/regions.h"

namespace anymps {

// The shape of what a grid takes out of x: x is input `first`, the grid the one after it.
inline Dims grid_sample_shape(InferContext& ctx, size_t first) {
  const Dims &x = ctx.shape(first), &grid = ctx.shape(first + 1);
  ctx.check(x.size() >= 3 && grid.size() == x.size(),
            "x has shape {} and grid {}: both must have one rank, at least 3", to_string(x),
            to_string(grid));
  const TensorAxes axes = tensor_axes(ctx.attrs, x.size());
  ctx.check(may_equal(x[0], grid[0]), "x has {} images, grid is for {}", x[0].str(), grid[0].str());
  ctx.check(may_equal(grid.back(), Dim(static_cast<int64_t>(axes.count))),
            "grid {} must have {} coordinates in its last axis", to_string(grid), axes.count);
  Dims y = x;
  y[0] = known_of(x[0], grid[0]);
  for (size_t i = 0; i < axes.count; ++i) {
    y[axes.spatial + i] = grid[1 + i];
    ctx.check(!x[axes.spatial + i].is(0), "x {} has no elements along a spatial axis",
              to_string(x));
  }
  return y;
}

// A spatial axis of x, `in` elements, that becomes one of `out` places.
GridAxis grid_axis(const Attrs& attrs, int64_t in, int64_t out);
// How grid_sample walks x and y, which its gradient does too.
struct GridSampling {
  GridSampling(const Attrs& attrs, const Shape& x, const Shape& y);

  TensorAxes axes;
  std::vector<GridAxis> spatial;
  int64_t places = 1, elements = 1;  // of a channel of y, and of one of x
  double constant;                   // what lies outside
};
// The regions of roi_align and max_roi_pool, and of their gradients: x is [images, channels,
// height, width], y has the cells of a region in its last two axes.
AlignedRegion::Rule aligned_regions(const Attrs& attrs, const Shape& x, const Shape& y);
PooledRegion::Rule pooled_regions(const Attrs& attrs, const Shape& x, const Shape& y);

// The images, [images, channels, height, width], are input `first`, the regions the one after it,
// of so many numbers each.
inline void expect_regions(const InferContext& ctx, size_t first, int64_t numbers) {
  expect_rank(ctx, first, 4, 4);
  expect_rank(ctx, first + 1, 2, 2);
  const Dims& rois = ctx.shape(first + 1);
  ctx.check(may_equal(rois[1], numbers), "rois has shape {}, must be [rois, {}]", to_string(rois),
            numbers);
}
inline void expect_aligned_regions(const InferContext& ctx, size_t first) {
  expect_regions(ctx, first, 4);
  expect_shape(ctx, first + 2, {ctx.shape(first + 1)[0]});
  ctx.check(ctx.attrs.i("sampling_ratio") >= 0, "sampling_ratio is {}",
            ctx.attrs.i("sampling_ratio"));
}

// Parts of a record: inputs and how they are drawn, then attributes.
inline OpWriter& grid_sample_inputs(OpWriter& op) {
  return op.input("x", kFloat, "T", kImageDoc)
      .input("grid", kFloat, "G", "[N, output extents…, spatial axes]")
      .domain("grid", -1.5, 1.5);
}
inline OpWriter& roi_align_inputs(OpWriter& op) {
  return op.input("x", kFloat, "T", "[N, C, H, W]")
      .input("rois", kFloat, "T", "[R, 4]")
      .input("batch_indices", kIndex, "I", "[R]")
      .domain("rois", 0, 6)
      .no_layout_tests();
}
inline OpWriter& roi_align_samples(OpWriter& op) {
  return op.attr("sampling_ratio", 0)
      .attr("spatial_scale", 1.0)
      .attr("half_pixel", true, "false: coordinates are not moved, regions are at least 1 wide");
}
inline OpWriter& max_roi_pool_inputs(OpWriter& op) {
  return op.input("x", kFloat, "T", "[N, C, H, W]")
      .input("rois", kFloat, "T", "[R, 5]")
      .domain("rois", 0, 1)
      .no_layout_tests();
}
inline OpWriter& grid_sample_attrs(OpWriter& op) {
  return op.attr("mode", "linear", {"nearest", "linear", "cubic"})
      .attr("padding", "constant", {"constant", "border", "reflection", "reflect", "symmetric"})
      .attr("align_corners", false)
      .attr("normalized", true)
      .attr("relative", false)
      .attr("nearest", "round_to_even",
            {"round_to_even", "round_prefer_ceil", "round_prefer_floor", "floor", "ceil"},
            "how nearest rounds")
      .attr("constant_value", 0.0)
      .attr("layout", "channels_first", layout_choices());
}

}  // namespace anymps
