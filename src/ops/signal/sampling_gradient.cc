// SPDX-License-Identifier: Apache-2.0
// Gradients of sampling: to the tensor that was sampled and, where it is not a matter of steps, to
// the places. Inputs and attributes are those of the op, after the gradient of its output.
#include "ops/expect.h"
#include "ops/signal/sampling.h"

namespace anymps {

namespace {

void infer_grid_sample_gradient(InferContext& ctx) {
  expect_shape(ctx, 0, grid_sample_shape(ctx, 1));
  ctx.set(0, ctx.shape(1));
  ctx.set(1, ctx.shape(2));
}

// The gradient has the cells of each region.
void expect_cells(const InferContext& ctx) {
  expect_rank(ctx, 0, 4, 4);
  const Dims& cells = ctx.shape(0);
  expect_shape(ctx, 0, {ctx.shape(2)[0], ctx.shape(1)[1], cells[2], cells[3]});
}

void infer_roi_align_gradient(InferContext& ctx) {
  expect_aligned_regions(ctx, 1);
  expect_cells(ctx);
  ctx.set(0, ctx.shape(1));
  ctx.set(1, ctx.shape(2));
}

void infer_max_roi_pool_gradient(InferContext& ctx) {
  expect_regions(ctx, 1, 5);
  expect_cells(ctx);
  ctx.set(0, ctx.shape(1));
}

constexpr Tolerance kSamplingTolerance{.f32 = 5e-5, .f16 = 1e-2, .bf16 = 6e-2, .f64 = 1e-9};

// The gradient of an op's y, then the inputs of the op.
auto gradient_of(const std::string& name, OpWriter& (*inputs)(OpWriter&)) {
  return [=](OpWriter& op) -> OpWriter& {
    return op.input("gradient", kFloat, "T", "of " + name + "'s y").with(inputs);
  };
}

}  // namespace

OP(grid_sample_gradient)
    .doc(
        "The gradients of grid_sample to x and to the grid. Where the op holds a place, at the "
        "border or far outside of x, and for nearest elements, the grid's is 0.")
    .formula("dx[n,c,q] = sum of gradient[n,c,p] * weight(p, q); dgrid[n,p] by the weights' slopes")
    .with(gradient_of("grid_sample", grid_sample_inputs))
    .output("dx")
    .output("dgrid", "G")
    .with(grid_sample_attrs)
    .infer(infer_grid_sample_gradient)
    .tolerance(kSamplingTolerance)
    .sample({"linear", {{2, 3, 4, 7}, {2, 3, 5, 6}, {2, 4, 7, 2}}, {}})
    .sample({"nearest", {{2, 3, 4, 7}, {2, 3, 5, 6}, {2, 4, 7, 2}}, {{"mode", "nearest"}}})
    .sample({"cubic reflection",
             {{1, 2, 4, 7}, {1, 2, 5, 6}, {1, 4, 7, 2}},
             {{"mode", "cubic"}, {"padding", "reflection"}}})
    .sample({"places channels_last",
             {{1, 4, 7, 3}, {1, 5, 6, 3}, {1, 4, 7, 2}},
             {{"layout", "channels_last"}, {"normalized", false}, {"padding", "border"}}})
    .sample({"3d relative",
             {{1, 2, 2, 3, 4}, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 3}},
             {{"relative", true}}})
    .sample({"1d constant", {{1, 2, 5}, {1, 2, 9}, {1, 5, 1}}, {{"constant_value", 3.0}}})
    .sample({"empty", {{0, 2, 2, 2}, {0, 2, 3, 4}, {0, 2, 2, 2}}, {}});

OP(roi_align_gradient)
    .doc(
        "The gradients of roi_align to x and to the regions. The number of samples of a cell, "
        "where the region decides it, is taken as it is.")
    .formula("dx[batch[r],c,q] = sum of gradient[r,c,i,j] * weight(r, i, j, q) / samples")
    .with(gradient_of("roi_align", roi_align_inputs))
    .outputs({"dx", "drois"})
    .attr("mode", "avg", {"avg", "max"})
    .with(roi_align_samples)
    .reference_only("rare: nobody has needed it fast")
    .infer(infer_roi_align_gradient)
    .tolerance(kSamplingTolerance)
    .sample({"avg",
             {{3, 3, 3, 4}, {2, 3, 8, 9}, {3, 4}, {3}},
             {{"sampling_ratio", 2}},
             {{2, {1, 1, 6, 5, 0, 0, 8, 7, 2, 3, 4, 9}}, {3, {0, 1, 1}}}})
    .sample({"avg adaptive",
             {{2, 3, 2, 2}, {2, 3, 8, 9}, {2, 4}, {2}},
             {{"half_pixel", false}},
             {{2, {1, 1, 6, 5, 3, 3, 3, 3}}, {3, {0, 1}}}})
    .sample({"max",
             {{2, 2, 2, 3}, {1, 2, 8, 9}, {2, 4}, {2}},
             {{"sampling_ratio", 2}, {"spatial_scale", 0.5}, {"mode", "max"}},
             {{2, {1, 1, 12, 9, -4, -4, 30, 30}}, {3, {0, 0}}}})
    .sample({"no regions", {{0, 2, 2, 1}, {1, 2, 8, 9}, {0, 4}, {0}}, {}, {{3, {}}}});

OP(max_roi_pool_gradient)
    .doc(
        "The gradient of max_roi_pool to x: each element goes to the first of the largest elements "
        "of its cell. Regions are rounded, so they have none.")
    .formula("dx[argmax of cell r,i,j] += gradient[r,c,i,j]")
    .with(gradient_of("max_roi_pool", max_roi_pool_inputs))
    .output("dx")
    .attr("spatial_scale", 1.0)
    .reference_only("rare: nobody has needed it fast")
    .infer(infer_max_roi_pool_gradient)
    .tolerance(kSamplingTolerance)
    .sample({"two regions",
             {{2, 3, 2, 3}, {2, 3, 8, 9}, {2, 5}},
             {{"spatial_scale", 0.5}},
             {{2, {0, 1, 2, 12, 13, 1, 0, 0, 5, 5}}}})
    .sample({"outside", {{1, 1, 2, 2}, {1, 1, 4, 4}, {1, 5}}, {}, {{2, {0, 3, 3, 9, 9}}}})
    .sample({"no regions", {{0, 1, 2, 2}, {1, 1, 4, 4}, {0, 5}}, {}});

}  // namespace anymps
