// SPDX-License-Identifier: Apache-2.0
// Resizing by nearest, linear or cubic interpolation, over any axes at once, and its gradient.
#include "ops/signal/resize.h"

#include <algorithm>
#include <cmath>

#include "ops/expect.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

using Floats = std::vector<double>;

constexpr size_t kSizes = 1, kScales = 2, kOffsets = 3, kRoi = 4;

Dim scaled(const InferContext& ctx, const Dim& extent, double scale) {
  ctx.check(scale > 0 && std::isfinite(scale), "scales has the entry {}, must be positive", scale);
  if (extent.known()) return scaled_extent(extent.value(), scale);
  if (scale == std::floor(scale) && scale < 1e15) return extent * static_cast<int64_t>(scale);
  return Dim::symbol(fmt::format("floor({}*{})", extent.str(), scale));
}

void check_modes(const InferContext& ctx) {
  const std::string& mode = ctx.attrs.s("mode");
  ctx.check(mode == "nearest" || ctx.dtype(0) != DType::kBool, "mode {} cannot be used on bool",
            mode);
  const bool antialias = ctx.attrs.b("antialias");
  ctx.check(!antialias || mode != "nearest", "antialias needs mode linear or cubic");
}

// The sizes that keep the aspect ratio; half rounds up, as in ONNX's reference.
Dims with_aspect(const InferContext& ctx, const Dims& x, const std::vector<size_t>& axes,
                 const Ints& sizes) {
  Dims y = x;
  for (const size_t axis : axes)
    if (!x[axis].known()) {
      for (const size_t open : axes) y[open] = ctx.fresh(std::to_string(open));
      return y;
    }
  Shape known(x.size(), 1);
  for (const size_t axis : axes) known[axis] = x[axis].value();
  const double scale = aspect_scale(resize_rule(ctx.attrs, x.size()), known, sizes);
  for (const size_t axis : axes) {
    const double extent = std::floor(scale * static_cast<double>(known[axis]) + 0.5);
    ctx.check(extent >= 0 && extent < 9e15, "axis {} would have the extent {}", axis, extent);
    y[axis] = static_cast<int64_t>(extent);
  }
  return y;
}

void infer_resize(InferContext& ctx) {
  const Dims& x = ctx.shape(0);
  check_modes(ctx);
  const std::vector<size_t> axes = resize_rule(ctx.attrs, x.size()).axes;
  const auto count = std::ssize(axes);
  const Floats& scales = ctx.attrs.floats("scales");
  const std::string& coordinate = ctx.attrs.s("coordinate");
  const int by_size = ctx.has(kSizes) + !ctx.attrs.ints("sizes").empty();
  const int by_scale = ctx.has(kScales) + !scales.empty();
  if (coordinate == "scale_offset") {
    ctx.check(by_size == 1 && by_scale == 1,
              "coordinate scale_offset needs sizes and scales, each once");
    ctx.check(ctx.has(kOffsets) || ctx.attrs.floats("offsets").size() == axes.size(),
              "coordinate scale_offset needs offsets, one for each axis");
  } else {
    ctx.check(by_size + by_scale == 1,
              "needs either sizes or scales, once, as an input or an attribute");
  }
  if (coordinate == "tf_crop_and_resize")
    ctx.check(ctx.has(kRoi) || ctx.attrs.floats("roi").size() == 2 * axes.size(),
              "coordinate tf_crop_and_resize needs roi: a begin and an end for each axis");
  for (const size_t i : {kSizes, kScales, kOffsets}) expect_shape(ctx, i, {count});
  expect_shape(ctx, kRoi, {2 * count});
  const auto check_count = [&](size_t given, const char* what) {
    ctx.check(given == axes.size(), "{} has {} entries, must have one for each of {} axes", what,
              given, axes.size());
  };
  if (!scales.empty()) check_count(scales.size(), "scales");
  Dims y = x;
  if (by_size == 0) {
    for (size_t i = 0; i < axes.size(); ++i)
      y[axes[i]] =
          scales.empty() ? ctx.fresh(std::to_string(axes[i])) : scaled(ctx, x[axes[i]], scales[i]);
  } else if (const std::optional<Dims> sizes = ctx.ints(kSizes, "sizes")) {
    check_count(sizes->size(), "sizes");
    const std::optional<Ints> known = numbers(sizes);
    if (ctx.attrs.s("aspect") == "stretch") {
      for (size_t i = 0; i < axes.size(); ++i) y[axes[i]] = (*sizes)[i];
    } else if (known) {
      y = with_aspect(ctx, x, axes, *known);
    } else {
      for (const size_t axis : axes) y[axis] = ctx.fresh(std::to_string(axis));
    }
  } else {
    for (const size_t axis : axes) y[axis] = ctx.fresh(std::to_string(axis));
  }
  for (size_t i = 0; i < x.size(); ++i) {
    ctx.check(!y[i].known() || y[i].value() >= 0, "sizes has the entry {}", y[i].str());
    ctx.check(!x[i].is(0) || !y[i].known() || y[i].is(0),
              "cannot resize axis {} from nothing to {} elements", i, y[i].str());
  }
  ctx.set(0, std::move(y));
}

// Scales that are computed.
std::vector<Shape> measure_resize(const MeasureContext& ctx) {
  Shape y = ctx.inputs[0].desc.shape;
  const std::vector<size_t> axes = resize_rule(ctx.attrs, y.size()).axes;
  require(ctx.has(kScales), "[resize] the sizes are not known");
  require(ctx.inputs[kScales].desc.count() == std::ssize(axes),
          "[resize] scales has {} entries, must have one for each of {} axes",
          ctx.inputs[kScales].desc.count(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i)
    y[axes[i]] = scaled_extent(y[axes[i]], double{ctx.inputs[kScales].as<float>()[i]});
  return {y};
}

void infer_resize_gradient(InferContext& ctx) {
  check_modes(ctx);
  const Dims &gradient = ctx.shape(0), &x = ctx.shape(1);
  ctx.check(gradient.size() == x.size(), "gradient has shape {}, x {}: they must have one rank",
            to_string(gradient), to_string(x));
  const std::vector<size_t> axes = resize_rule(ctx.attrs, x.size()).axes;
  const auto count = std::ssize(axes);
  for (size_t i = 2; i < 4; ++i) expect_shape(ctx, i, {count});
  expect_shape(ctx, 4, {2 * count});
  if (ctx.attrs.s("coordinate") == "tf_crop_and_resize")
    ctx.check(ctx.has(4) || ctx.attrs.floats("roi").size() == 2 * axes.size(),
              "coordinate tf_crop_and_resize needs roi: a begin and an end for each axis");
  if (ctx.attrs.s("coordinate") == "scale_offset")
    ctx.check((ctx.has(2) || !ctx.attrs.floats("scales").empty()) &&
                  (ctx.has(3) || !ctx.attrs.floats("offsets").empty()),
              "coordinate scale_offset needs scales and offsets");
  for (size_t i = 0; i < x.size(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      ctx.check(may_equal(gradient[i], x[i]), "axis {} is not resized, but is {} and {}", i,
                gradient[i].str(), x[i].str());
  ctx.set(0, x);
}

double resize_cost(const Attrs& attrs, const std::vector<Shape>& in,
                   const std::vector<Shape>& out) {
  const std::string& mode = attrs.s("mode");
  double count = 1;
  for (size_t i = 0; i < out[0].size(); ++i) {
    count *= static_cast<double>(out[0][i]);
    if (mode != "nearest" && out[0][i] != in[0][i]) count *= mode == "linear" ? 4 : 8;
  }
  return count;
}

// The attributes that resize and its gradient share.
OpWriter& resize_attrs(OpWriter& op) {
  return op.attr("sizes", Ints{}, "used without the input")
      .attr("scales", Floats{}, "used without the input")
      .attr("offsets", Floats{}, "of coordinate scale_offset; used without the input")
      .attr("roi", Floats{}, "of tf_crop_and_resize; used without the input")
      .attr("aspect", "stretch", {"stretch", "not_larger", "not_smaller"},
            "other than stretch: one scale for all axes, so that sizes are upper or lower bounds")
      .attr("axes", Ints{}, "the axes that sizes, scales, offsets and roi are about; empty: all")
      .attr("mode", "nearest", {"nearest", "linear", "cubic"})
      .attr("coordinate", "half_pixel",
            {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
             "half_pixel_symmetric", "tf_half_pixel", "tf_crop_and_resize", "scale_offset"})
      .attr("nearest", "round_prefer_floor",
            {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "round_to_even",
             "round_to_odd"},
            "how nearest rounds")
      .attr("cubic_coeff_a", -0.75, "of mode cubic")
      .attr("antialias", false, "when an axis shrinks, the filter is stretched over all elements")
      .attr("exclude_outside", false,
            "weights outside of x are 0, and the others made to sum to 1");
}

// What decides where elements come from, as inputs.
OpWriter& resize_places(OpWriter& op) {
  return op.optional("scales", bit(DType::kF32), "F", "[axes]")
      .optional("offsets", bit(DType::kF32), "F", "[axes]; of coordinate scale_offset")
      .optional("roi", bit(DType::kF32), "F",
                "[2*axes]: begins, then ends, as parts of the extent");
}

}  // namespace

OP(resize)
    .doc(
        "Resizes any axes at once. The new extents are `sizes`, or floor(extent * scale) for "
        "`scales`; one of the two is given, as an input or as an attribute, with an entry for "
        "every axis, or for those in `axes`. `coordinate` says where in x an element lies, as in "
        "ONNX; scale_offset, which takes sizes and scales, has it at (p - offset) / scale. What "
        "lies outside is the edge, or for tf_crop_and_resize, of which `roi` is the crop, "
        "extrapolation_value. Integers are truncated. With `aspect` sizes are bounds.")
    .formula("y[p] = x[round(source(p))], or the weighted sum of its neighbours")
    .mps("resizeTensor:size:mode:centerResult:alignCorners:layout:name:")
    .mps("resizeTensor:sizeTensor:mode:centerResult:alignCorners:layout:name:")
    .mps("resizeTensor:sizeTensor:mode:centerResult:alignCorners:name:")
    .mps(
        "resizeNearestWithTensor:sizeTensor:nearestRoundingMode:centerResult:alignCorners:layout:"
        "name:")
    .mps(
        "resizeNearestWithTensor:sizeTensor:nearestRoundingMode:centerResult:alignCorners:"
        "name:")
    .mps("resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:layout:name:")
    .mps("resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:name:")
    .mps("resizeTensor:sizeTensor:scaleOffsetTensor:mode:layout:name:")
    .mps("resizeTensor:sizeTensor:scaleTensor:offsetTensor:mode:name:")
    .mps(
        "resizeNearestWithTensor:sizeTensor:scaleOffsetTensor:nearestRoundingMode:layout:"
        "name:")
    .mps(
        "resizeNearestWithTensor:sizeTensor:scaleTensor:offsetTensor:nearestRoundingMode:"
        "name:")
    .mps("resizeBilinearWithTensor:sizeTensor:scaleOffsetTensor:layout:name:")
    .mps("resizeBilinearWithTensor:sizeTensor:scaleTensor:offsetTensor:name:")
    .input("x", kReal | kBoolean)
    .optional("sizes", kIndex, "I", "[axes]")
    .with(resize_places)
    .output("y")
    .with(resize_attrs)
    .attr("extrapolation_value", 0.0, "of tf_crop_and_resize")
    .layout(LayoutRule::kSizes)
    .infer(infer_resize)
    .measure(measure_resize)
    .cost(resize_cost)
    .sample({"nearest x2", {{1, 2, 4, 5}}, {{"scales", Floats{1, 1, 2, 2}}}})
    .sample({"nearest x2 asymmetric floor",
             {{1, 2, 4, 5}},
             {{"scales", Floats{1, 1, 2, 2}}, {"coordinate", "asymmetric"}, {"nearest", "floor"}}})
    .sample({"nearest down", {{1, 2, 7, 9}}, {{"scales", Floats{1, 1, 0.5, 0.6}}}})
    .sample({"nearest sizes ceil",
             {{1, 2, 5, 7}},
             {{"sizes", Ints{1, 2, 8, 3}}, {"nearest", "ceil"}}})
    .sample({"nearest align_corners prefer_ceil",
             {{1, 2, 4, 4}},
             {{"sizes", Ints{1, 2, 7, 9}},
              {"coordinate", "align_corners"},
              {"nearest", "round_prefer_ceil"}}})
    .sample({"nearest every axis", {{2, 3, 4}}, {{"sizes", Ints{3, 5, 2}}}})
    .sample({"linear x2", {{1, 2, 4, 5}}, {{"scales", Floats{1, 1, 2, 2}}, {"mode", "linear"}}})
    .sample({"linear down", {{1, 2, 7, 9}}, {{"sizes", Ints{1, 2, 3, 4}}, {"mode", "linear"}}})
    .sample({"linear align_corners",
             {{1, 2, 3, 4}},
             {{"sizes", Ints{1, 2, 5, 9}}, {"mode", "linear"}, {"coordinate", "align_corners"}}})
    .sample({"linear align_corners to one",
             {{1, 2, 3, 4}},
             {{"sizes", Ints{1, 2, 1, 1}}, {"mode", "linear"}, {"coordinate", "align_corners"}}})
    .sample(
        {"linear pytorch_half_pixel",
         {{1, 1, 4, 4}},
         {{"sizes", Ints{1, 1, 3, 1}}, {"mode", "linear"}, {"coordinate", "pytorch_half_pixel"}}})
    .sample(
        {"linear asymmetric",
         {{1, 1, 4, 5}},
         {{"scales", Floats{1, 1, 1.5, 2.5}}, {"mode", "linear"}, {"coordinate", "asymmetric"}}})
    .sample({"linear half_pixel_symmetric",
             {{1, 1, 1, 4}},
             {{"scales", Floats{1, 1, 2.3, 0.6}},
              {"mode", "linear"},
              {"coordinate", "half_pixel_symmetric"}}})
    .sample({"linear 1d", {{2, 3, 7}}, {{"sizes", Ints{2, 3, 16}}, {"mode", "linear"}}})
    .sample({"linear 3d", {{1, 2, 3, 4, 5}}, {{"sizes", Ints{1, 2, 5, 7, 3}}, {"mode", "linear"}}})
    .sample({"linear channels last",
             {{1, 5, 6, 3}},
             {{"sizes", Ints{1, 9, 4, 3}}, {"mode", "linear"}}})
    .sample({"linear large", {{1, 3, 24, 24}}, {{"sizes", Ints{1, 3, 48, 36}}, {"mode", "linear"}}})
    .sample({"cubic x2", {{1, 2, 4, 5}}, {{"scales", Floats{1, 1, 2, 2}}, {"mode", "cubic"}}})
    .sample({"cubic down", {{1, 2, 7, 9}}, {{"sizes", Ints{1, 2, 3, 4}}, {"mode", "cubic"}}})
    .sample({"cubic exclude_outside",
             {{1, 1, 4, 4}},
             {{"scales", Floats{1, 1, 2.3, 0.8}},
              {"mode", "cubic"},
              {"cubic_coeff_a", -0.5},
              {"exclude_outside", true}}})
    .sample({"linear antialias",
             {{1, 2, 9, 11}},
             {{"sizes", Ints{1, 2, 4, 3}}, {"mode", "linear"}, {"antialias", true}}})
    .sample({"cubic antialias",
             {{1, 1, 9, 8}},
             {{"scales", Floats{1, 1, 0.6, 0.4}}, {"mode", "cubic"}, {"antialias", true}}})
    .sample({"crop",
             {{1, 1, 4, 5}},
             {{"sizes", Ints{3, 3}},
              {"axes", Ints{2, 3}},
              {"roi", Floats{0.4, 0.6, 0.8, 1.7}},
              {"mode", "linear"},
              {"coordinate", "tf_crop_and_resize"},
              {"extrapolation_value", 10.0}}})
    .sample({"scale_offset",
             {{1, 1, 4, 5}},
             {{"sizes", Ints{6, 7}},
              {"axes", Ints{-2, -1}},
              {"scales", Floats{1.5, 2.0}},
              {"offsets", Floats{0.25, -1.0}},
              {"mode", "linear"},
              {"coordinate", "scale_offset"}}})
    .sample({"nearest round_to_even",
             {{1, 2, 5, 6}},
             {{"sizes", Ints{10, 4}}, {"axes", Ints{2, 3}}, {"nearest", "round_to_even"}}})
    .sample({"nearest round_to_odd asymmetric",
             {{5, 6}},
             {{"sizes", Ints{10, 12}}, {"coordinate", "asymmetric"}, {"nearest", "round_to_odd"}}})
    .sample({"nearest tf_half_pixel",
             {{5, 6}},
             {{"sizes", Ints{3, 9}}, {"coordinate", "tf_half_pixel"}, {"nearest", "floor"}}})
    .sample({"not_larger",
             {{1, 2, 4, 5}},
             {{"sizes", Ints{9, 8}}, {"axes", Ints{3, 2}}, {"aspect", "not_larger"}}})
    .sample({"not_smaller",
             {{1, 2, 4, 5}},
             {{"sizes", Ints{3, 2}}, {"axes", Ints{2, 3}}, {"aspect", "not_smaller"}}})
    .sample({"sizes input", {{2, 4, 5}, {2}}, {{"axes", Ints{2, 1}}}, {{1, {7, 3}}}})
    .sample({"same extents", {{1, 2, 4, 5}}, {{"sizes", Ints{1, 2, 4, 5}}, {"mode", "linear"}}})
    .sample({"empty batch", {{0, 2, 4, 5}}, {{"sizes", Ints{0, 2, 8, 8}}, {"mode", "linear"}}});

OP(resize_gradient)
    .doc(
        "The gradient of resize to x: each element of `gradient` is shared out among the "
        "elements of x that made it, by their weights. Of x only the shape is used, sizes only "
        "for an aspect that is kept.")
    .formula("dx[q] = sum over p of weight(p, q) * gradient[p]")
    .mps("resizeWithGradientTensor:input:mode:centerResult:alignCorners:layout:name:")
    .mps(
        "resizeNearestWithGradientTensor:input:nearestRoundingMode:centerResult:alignCorners:"
        "layout:name:")
    .mps("resizeBilinearWithGradientTensor:input:centerResult:alignCorners:layout:name:")
    .mps("resizeWithGradientTensor:input:scaleOffsetTensor:mode:layout:name:")
    .mps("resizeWithGradientTensor:input:scaleTensor:offsetTensor:mode:name:")
    .mps(
        "resizeNearestWithGradientTensor:input:scaleOffsetTensor:nearestRoundingMode:"
        "layout:name:")
    .mps(
        "resizeNearestWithGradientTensor:input:scaleTensor:offsetTensor:"
        "nearestRoundingMode:name:")
    .mps("resizeBilinearWithGradientTensor:input:scaleOffsetTensor:layout:name:")
    .mps("resizeBilinearWithGradientTensor:input:scaleTensor:offsetTensor:name:")
    .input("gradient", kFloat, "T", "of resize's y")
    .input("x", kFloat, "T", "of resize")
    .with(resize_places)
    .output("dx")
    .with(resize_attrs)
    .infer(infer_resize_gradient)
    .tolerance({.f32 = 2e-5, .f16 = 4e-3, .bf16 = 3e-2, .f64 = 1e-10})
    .sample({"nearest", {{1, 2, 8, 9}, {1, 2, 4, 5}}, {}})
    .sample({"linear", {{1, 2, 8, 9}, {1, 2, 4, 5}}, {{"mode", "linear"}}})
    .sample({"linear down align_corners",
             {{1, 2, 3, 4}, {1, 2, 7, 9}},
             {{"mode", "linear"}, {"coordinate", "align_corners"}}})
    .sample({"cubic", {{2, 7}, {2, 4}}, {{"mode", "cubic"}, {"axes", Ints{1}}}})
    .sample({"scale_offset",
             {{1, 6, 7}, {1, 4, 5}},
             {{"axes", Ints{1, 2}},
              {"scales", Floats{1.5, 2.0}},
              {"offsets", Floats{0.25, -1.0}},
              {"mode", "linear"},
              {"coordinate", "scale_offset"}}})
    .sample({"empty", {{0, 4}, {0, 2}}, {{"mode", "linear"}}});

}  // namespace anymps
