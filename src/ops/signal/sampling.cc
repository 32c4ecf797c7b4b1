// SPDX-License-Identifier: Apache-2.0
// Sampling a tensor at places that other tensors give: grids, regions of interest, and the crop or
// padding that brings a tensor to a size.
#include <algorithm>

#include "ops/expect.h"
#include "ops/signal/sampling.h"

namespace anymps {

namespace {

void infer_grid_sample(InferContext& ctx) { ctx.set(0, grid_sample_shape(ctx, 0)); }

void infer_affine_grid(InferContext& ctx) {
  expect_rank(ctx, 0, 3, 3);
  const Dims& theta = ctx.shape(0);
  const std::optional<Dims> size = ctx.ints(1, "size");
  if (!size) {
    if (!theta[1].known()) return ctx.set_unranked(0);
    Dims y{theta[0]};
    for (int64_t i = 0; i < theta[1].value(); ++i) y.push_back(ctx.fresh(std::to_string(i)));
    y.push_back(theta[1]);
    return ctx.set(0, std::move(y));
  }
  ctx.check(size->size() >= 3, "size {} must be a batch, channels and the spatial extents",
            to_string(*size));
  const auto spatial = std::ssize(*size) - 2;
  expect_shape(ctx, 0, {(*size)[0], spatial, spatial + 1});
  Dims y{known_of((*size)[0], theta[0])};
  for (size_t i = 2; i < size->size(); ++i) y.push_back((*size)[i]);
  y.push_back(spatial);
  ctx.set(0, std::move(y));
}

void infer_roi_align(InferContext& ctx) {
  expect_aligned_regions(ctx, 0);
  const int64_t height = ctx.attrs.i("output_height"), width = ctx.attrs.i("output_width");
  ctx.check(height > 0 && width > 0, "the output's size is {} x {}", height, width);
  ctx.set(0, {ctx.shape(1)[0], ctx.shape(0)[1], height, width});
}

void infer_max_roi_pool(InferContext& ctx) {
  expect_regions(ctx, 0, 5);
  const Ints& pooled = ctx.attrs.ints("pooled_shape");
  ctx.check(pooled.size() == 2 && pooled[0] > 0 && pooled[1] > 0,
            "pooled_shape must be a height and a width");
  ctx.set(0, {ctx.shape(1)[0], ctx.shape(0)[1], pooled[0], pooled[1]});
}

void infer_center_crop_pad(InferContext& ctx) {
  const Dims& x = ctx.shape(0);
  Ints axes = normalize_axes(ctx.attrs.ints("axes"), ctx.rank(0), "center_crop_pad");
  if (axes.empty())
    for (int64_t i = 0; i < ctx.rank(0); ++i) axes.push_back(i);
  const std::optional<Dims> shape = ctx.ints(1, "shape");
  Dims y = x;
  if (shape)
    ctx.check(shape->size() == axes.size(), "shape has {} extents for {} axes", shape->size(),
              axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axes[i];
    y[axis] = shape ? (*shape)[i] : ctx.fresh(std::to_string(axis));
  }
  ctx.set(0, std::move(y));
}

}  // namespace

GridAxis grid_axis(const Attrs& attrs, int64_t in, int64_t out) {
  using Padding = GridAxis::Padding;
  using Mode = GridAxis::Mode;
  using Rounding = GridAxis::Rounding;
  GridAxis axis;
  axis.in = in;
  axis.out = out;
  axis.align_corners = attrs.b("align_corners");
  axis.normalized = attrs.b("normalized");
  axis.relative = attrs.b("relative");
  const std::string &padding = attrs.s("padding"), &mode = attrs.s("mode"),
                    &rounding = attrs.s("nearest");
  axis.padding = padding == "constant"    ? Padding::kConstant
                 : padding == "border"    ? Padding::kBorder
                 : padding == "reflect"   ? Padding::kReflect
                 : padding == "symmetric" ? Padding::kSymmetric
                 : axis.align_corners     ? Padding::kReflect
                                          : Padding::kSymmetric;
  axis.mode = mode == "nearest" ? Mode::kNearest : mode == "linear" ? Mode::kLinear : Mode::kCubic;
  axis.rounding = rounding == "round_to_even"        ? Rounding::kToEven
                  : rounding == "round_prefer_ceil"  ? Rounding::kPreferCeil
                  : rounding == "round_prefer_floor" ? Rounding::kPreferFloor
                  : rounding == "floor"              ? Rounding::kFloor
                                                     : Rounding::kCeil;
  return axis;
}

GridSampling::GridSampling(const Attrs& attrs, const Shape& x, const Shape& y)
    : axes(tensor_axes(attrs, x.size())), constant(attrs.f("constant_value")) {
  for (size_t i = axes.spatial; i < axes.spatial + axes.count; ++i) {
    spatial.push_back(grid_axis(attrs, x[i], y[i]));
    places *= y[i];
    elements *= x[i];
  }
}

AlignedRegion::Rule aligned_regions(const Attrs& attrs, const Shape& x, const Shape& y) {
  return {.op = attrs.op()->name,
          .half_pixel = attrs.b("half_pixel"),
          .scale = attrs.f("spatial_scale"),
          .ratio = attrs.i("sampling_ratio"),
          .rows = y[2],
          .columns = y[3],
          .height = x[2],
          .width = x[3]};
}

PooledRegion::Rule pooled_regions(const Attrs& attrs, const Shape& x, const Shape& y) {
  return {.op = attrs.op()->name,
          .scale = attrs.f("spatial_scale"),
          .rows = y[2],
          .columns = y[3],
          .images = x[0],
          .height = x[2],
          .width = x[3]};
}

OP(grid_sample)
    .doc(
        "x sampled at the places that `grid` holds, the innermost axis' coordinate first. "
        "Normalized coordinates run from -1 to 1 over x, to the centres of the outermost elements "
        "with align_corners, else to their outer edges; others are places in x. Relative ones are "
        "counted from where the output element itself lies. Outside of x is the constant, the "
        "edge, or x mirrored: reflect at the centres, symmetric at the edges of the outermost "
        "elements, reflection at the one that align_corners chooses.")
    .formula("y[n,c,p] = interpolated x[n,c,place(grid[n,p])]")
    .mps(
        "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:"
        "relativeCoordinates:alignCorners:paddingMode:samplingMode:constantValue:name:")
    .mps(
        "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:"
        "relativeCoordinates:alignCorners:paddingMode:nearestRoundingMode:constantValue:name:")
    .with(grid_sample_inputs)
    .output("y")
    .with(grid_sample_attrs)
    .infer(infer_grid_sample)
    .tolerance({.f32 = 2e-5, .f16 = 4e-3, .bf16 = 3e-2, .f64 = 1e-9})
    .sample({"linear", {{2, 3, 5, 6}, {2, 4, 7, 2}}, {}})
    .sample({"nearest", {{2, 3, 5, 6}, {2, 4, 7, 2}}, {{"mode", "nearest"}}})
    .sample({"cubic", {{1, 2, 5, 6}, {1, 4, 7, 2}}, {{"mode", "cubic"}}})
    .sample({"linear border", {{1, 2, 5, 6}, {1, 4, 7, 2}}, {{"padding", "border"}}})
    .sample({"linear reflection", {{1, 2, 5, 6}, {1, 4, 7, 2}}, {{"padding", "reflection"}}})
    .sample({"cubic reflection align_corners",
             {{1, 2, 5, 6}, {1, 4, 7, 2}},
             {{"mode", "cubic"}, {"padding", "reflection"}, {"align_corners", true}}})
    .sample({"nearest border align_corners",
             {{1, 2, 5, 6}, {1, 4, 7, 2}},
             {{"mode", "nearest"}, {"padding", "border"}, {"align_corners", true}}})
    .sample({"nearest symmetric",
             {{1, 2, 2, 3}, {1, 4, 7, 2}},
             {{"mode", "nearest"}, {"padding", "symmetric"}, {"nearest", "round_prefer_ceil"}}})
    .sample({"linear reflect constant",
             {{1, 2, 5, 6}, {1, 4, 7, 2}},
             {{"padding", "reflect"}, {"constant_value", 3.0}}})
    .sample({"linear constant", {{1, 2, 3, 3}, {1, 4, 7, 2}}, {{"constant_value", 3.0}}})
    .sample({"places channels_last",
             {{1, 5, 6, 3}, {1, 4, 7, 2}},
             {{"layout", "channels_last"}, {"normalized", false}}})
    .sample({"relative", {{1, 2, 5, 6}, {1, 4, 7, 2}}, {{"relative", true}}})
    .sample({"relative places",
             {{1, 2, 5, 6}, {1, 4, 7, 2}},
             {{"relative", true}, {"normalized", false}, {"align_corners", true}}})
    .sample({"3d", {{1, 2, 3, 4, 5}, {1, 2, 3, 4, 3}}, {}})
    .sample({"3d nearest", {{1, 2, 3, 4, 5}, {1, 2, 3, 4, 3}}, {{"mode", "nearest"}}})
    .sample({"1d", {{1, 2, 9}, {1, 5, 1}}, {}})
    .sample({"empty", {{0, 2, 3, 4}, {0, 2, 2, 2}}, {}});

OP(affine_grid)
    .doc(
        "The coordinates for grid_sample that map each place of the output through the matrix "
        "theta of its image.")
    .formula("y[n,p] = theta[n] @ [p normalized, 1], innermost axis first")
    .input("theta", kFloat, "T", "[N, d, d+1]")
    .ints("size", "used without the input", "I", "[d+2]: batch, channels, spatial extents")
    .output("y", "T", "[N, spatial extents…, d]")
    .attr("align_corners", false)
    .infer(infer_affine_grid)
    .sample({"2d", {{2, 2, 3}, {4}}, {}, {{1, {2, 3, 4, 5}}}})
    .sample({"2d align_corners",
             {{2, 2, 3}},
             {{"size", Ints{2, 3, 4, 5}}, {"align_corners", true}}})
    .sample({"3d", {{1, 3, 4}}, {{"size", Ints{1, 1, 2, 3, 4}}}})
    .sample({"one element", {{1, 2, 3}}, {{"size", Ints{1, 1, 1, 1}}, {"align_corners", true}}})
    .sample({"empty", {{0, 2, 3}}, {{"size", Ints{0, 1, 2, 2}}}});

OP(roi_align)
    .doc(
        "The average, or the largest, of samples in each cell of a grid over each region. Regions "
        "are [x1, y1, x2, y2] in coordinates of which spatial_scale makes those of x; half_pixel "
        "moves them by half an element. sampling_ratio is the number of samples of a cell along "
        "an axis, 0: one for each element that it spans. Max takes the largest weighted corner, "
        "as ONNX does.")
    .formula("y[r,c,i,j] = mean of x[batch[r],c] interpolated at the samples of cell i,j")
    .with(roi_align_inputs)
    .output("y", "T", "[R, C, output_height, output_width]")
    .attr("mode", "avg", {"avg", "max"})
    .attr("output_height", 1)
    .attr("output_width", 1)
    .with(roi_align_samples)
    .infer(infer_roi_align)
    .sample({"avg",
             {{2, 3, 8, 9}, {3, 4}, {3}},
             {{"output_height", 3}, {"output_width", 4}, {"sampling_ratio", 2}},
             {{1, {1, 1, 6, 5, 0, 0, 8, 7, 2, 3, 4, 9}}, {2, {0, 1, 1}}}})
    .sample({"avg adaptive",
             {{2, 3, 8, 9}, {2, 4}, {2}},
             {{"output_height", 2}, {"output_width", 2}, {"half_pixel", false}},
             {{1, {1, 1, 6, 5, 3, 3, 3, 3}}, {2, {0, 1}}}})
    .sample({"max",
             {{1, 2, 8, 9}, {2, 4}, {2}},
             {{"output_height", 2},
              {"output_width", 3},
              {"sampling_ratio", 2},
              {"spatial_scale", 0.5},
              {"mode", "max"}},
             {{1, {1, 1, 12, 9, -4, -4, 30, 30}}, {2, {0, 0}}}})
    .sample({"avg between",
             {{1, 2, 8, 9}, {3, 4}, {3}},
             {{"output_height", 2}, {"output_width", 3}, {"sampling_ratio", 2}},
             {{2, {0, 0, 0}}}})
    .sample({"avg at least 1 wide",
             {{1, 2, 8, 9}, {4, 4}, {4}},
             {{"output_height", 2}, {"sampling_ratio", 1}, {"half_pixel", false}},
             {{2, {0, 0, 0, 0}}}})
    .sample({"max between",
             {{1, 2, 8, 9}, {3, 4}, {3}},
             {{"output_height", 2}, {"sampling_ratio", 2}, {"mode", "max"}},
             {{2, {0, 0, 0}}}})
    .sample({"no regions", {{1, 2, 8, 9}, {0, 4}, {0}}, {{"output_height", 2}}, {{2, {}}}});

OP(max_roi_pool)
    .doc(
        "The largest element of each cell of a grid over each region, whose corners are rounded to "
        "elements. Regions are [batch, x1, y1, x2, y2]; a cell outside of x gives 0.")
    .formula("y[r,c,i,j] = max of x[batch,c] over cell i,j")
    .with(max_roi_pool_inputs)
    .output("y", "T", "[R, C, pooled height, pooled width]")
    .required("pooled_shape", AttrKind::kInts, "height and width")
    .attr("spatial_scale", 1.0)
    .infer(infer_max_roi_pool)
    .sample({"two regions",
             {{2, 3, 8, 9}, {2, 5}},
             {{"pooled_shape", Ints{2, 3}}, {"spatial_scale", 0.5}},
             {{1, {0, 1, 2, 12, 13, 1, 0, 0, 5, 5}}}})
    .sample(
        {"outside", {{1, 1, 4, 4}, {1, 5}}, {{"pooled_shape", Ints{2, 2}}}, {{1, {0, 3, 3, 9, 9}}}})
    .sample({"no regions", {{1, 1, 4, 4}, {0, 5}}, {{"pooled_shape", Ints{2, 2}}}});

OP(center_crop_pad)
    .doc(
        "Brings axes to given extents: longer ones are cut, shorter ones padded with 0, half of it "
        "before and half after, an odd element after.")
    .formula("y = x's middle, or x in the middle of zeros")
    .input("x", kAny)
    .ints("shape", "used without the input", "I", "[axes]: the new extents")
    .output("y")
    .attr("axes", Ints{}, "empty: all")
    .facts(kMoves)
    .infer(infer_center_crop_pad)
    .sample({"crop", {{7, 6, 3}, {3}}, {}, {{1, {4, 3, 3}}}})
    .sample({"pad", {{3, 4}, {2}}, {}, {{1, {6, 9}}}})
    .sample({"both", {{7, 2, 5}}, {{"shape", Ints{3, 5}}, {"axes", Ints{0, -2}}}})
    .sample({"to nothing", {{3, 4}}, {{"shape", Ints{0, 4}}}})
    .sample({"from nothing", {{0, 4}}, {{"shape", Ints{2, 4}}}});

}  // namespace anymps
