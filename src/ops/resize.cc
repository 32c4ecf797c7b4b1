// SPDX-License-Identifier: Apache-2.0
// Resizing by nearest or linear interpolation, over any axes at once.
#include <cmath>

#include "ops/expect.h"

namespace anymps {

namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

// floor(extent * scale), in float as ONNX has it.
Dim scaled(const InferContext& ctx, const Dim& extent, double scale) {
  ctx.check(scale > 0 && std::isfinite(scale), "scales has the entry {}, must be positive", scale);
  if (extent.known()) {
    const float result = std::floor(static_cast<float>(extent.value()) * static_cast<float>(scale));
    ctx.check(result < 9e18f, "extent {} times {} overflows", extent.str(), scale);
    return static_cast<int64_t>(result);
  }
  if (scale == std::floor(scale) && scale < 1e15) return extent * static_cast<int64_t>(scale);
  return Dim::symbol(fmt::format("floor({}*{})", extent.str(), scale));
}

void infer_resize(InferContext& ctx) {
  const Dims& x = ctx.shape(0);
  const Floats& scales = ctx.attrs.floats("scales");
  const int given = ctx.has(1) + ctx.has(2) + !ctx.attrs.ints("sizes").empty() + !scales.empty();
  ctx.check(given == 1, "needs either sizes or scales, once, as an input or an attribute");
  ctx.check(ctx.attrs.s("mode") == "nearest" || ctx.dtype(0) != DType::kBool,
            "mode linear cannot be used on bool");
  const auto check_count = [&](size_t count, const char* what) {
    ctx.check(count == x.size(), "{} has {} entries, must have one for each of {} axes", what,
              count, x.size());
  };
  Dims y;
  if (!scales.empty()) {
    check_count(scales.size(), "scales");
    for (size_t i = 0; i < x.size(); ++i) y.push_back(scaled(ctx, x[i], scales[i]));
  } else if (ctx.has(2)) {
    expect_shape(ctx, 2, {static_cast<int64_t>(x.size())});
  } else if (const std::optional<Dims> sizes = ctx.ints(1, "sizes")) {
    check_count(sizes->size(), "sizes");
    y = *sizes;
  } else {
    expect_shape(ctx, 1, {static_cast<int64_t>(x.size())});
  }
  for (size_t i = y.size(); i < x.size(); ++i) y.push_back(ctx.fresh(std::to_string(i)));
  for (size_t i = 0; i < x.size(); ++i) {
    ctx.check(!y[i].known() || y[i].value() >= 0, "sizes has the entry {}", y[i].str());
    ctx.check(!x[i].is(0) || !y[i].known() || y[i].is(0),
              "cannot resize axis {} from nothing to {} elements", i, y[i].str());
  }
  ctx.set(0, std::move(y));
}

double resize_cost(const Attrs& attrs, const std::vector<Shape>& in,
                   const std::vector<Shape>& out) {
  double count = 1;
  for (size_t i = 0; i < out[0].size(); ++i) {
    count *= static_cast<double>(out[0][i]);
    if (attrs.s("mode") == "linear" && out[0][i] != in[0][i]) count *= 4;
  }
  return count;
}

}  // namespace

OP(resize)
    .doc(
        "Resizes any axes at once. The new extents are `sizes`, or floor(extent * scale) for "
        "`scales`; one of the two is given, as an input or as an attribute, with an entry for "
        "every axis. `coordinate` says where in x an element lies, as in ONNX. Linear takes the "
        "edge for what lies outside, and truncates for integers.")
    .formula("y[p] = x[round(source(p))], or the linear interpolation of its neighbours")
    .mps("resizeTensor:size:mode:centerResult:alignCorners:layout:name:")
    .mps("resizeTensor:sizeTensor:mode:centerResult:alignCorners:layout:name:")
    .mps("resizeTensor:sizeTensor:mode:centerResult:alignCorners:name:")
    .mps(
        "resizeNearestWithTensor:sizeTensor:nearestRoundingMode:centerResult:alignCorners:layout:"
        "name:")
    .mps("resizeNearestWithTensor:sizeTensor:nearestRoundingMode:centerResult:alignCorners:name:")
    .mps("resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:layout:name:")
    .mps("resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:name:")
    .input("x", kReal | kBoolean)
    .optional("sizes", kIndex, "I", "[rank]")
    .optional("scales", bit(DType::kF32), "F", "[rank]")
    .output("y")
    .attr("sizes", Ints{}, "used without the input")
    .attr("scales", Floats{}, "used without the input")
    .attr("mode", "nearest", {"nearest", "linear"})
    .attr("coordinate", "half_pixel",
          {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
           "half_pixel_symmetric"})
    .attr("nearest", "round_prefer_floor",
          {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, "how nearest rounds")
    .infer(infer_resize)
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
    .sample({"same extents", {{1, 2, 4, 5}}, {{"sizes", Ints{1, 2, 4, 5}}, {"mode", "linear"}}})
    .sample({"empty batch", {{0, 2, 4, 5}}, {{"sizes", Ints{0, 2, 8, 8}}, {"mode", "linear"}}});

}  // namespace anymps
