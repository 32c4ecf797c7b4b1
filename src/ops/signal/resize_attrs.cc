// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/op.h"
#include "ops/signal/resize.h"

namespace anymps {

namespace {

Coordinate parse_coordinate(const std::string& text) {
  if (text == "half_pixel") return Coordinate::kHalfPixel;
  if (text == "pytorch_half_pixel") return Coordinate::kPytorchHalfPixel;
  if (text == "align_corners") return Coordinate::kAlignCorners;
  if (text == "asymmetric") return Coordinate::kAsymmetric;
  if (text == "half_pixel_symmetric") return Coordinate::kHalfPixelSymmetric;
  if (text == "tf_half_pixel") return Coordinate::kTfHalfPixel;
  if (text == "tf_crop_and_resize") return Coordinate::kTfCropAndResize;
  if (text == "scale_offset") return Coordinate::kScaleOffset;
  fail(Code::kInvalidArgument, "[resize] '{}' is not a coordinate mode", text);
}

NearestRounding parse_nearest(const std::string& text) {
  if (text == "round_prefer_floor") return NearestRounding::kPreferFloor;
  if (text == "round_prefer_ceil") return NearestRounding::kPreferCeil;
  if (text == "floor") return NearestRounding::kFloor;
  if (text == "ceil") return NearestRounding::kCeil;
  if (text == "round_to_even") return NearestRounding::kToEven;
  if (text == "round_to_odd") return NearestRounding::kToOdd;
  fail(Code::kInvalidArgument, "[resize] '{}' is not a rounding of nearest", text);
}

}  // namespace

ResizeFilter resize_filter(const Attrs& attrs) {
  ResizeFilter filter;
  const std::string& mode = attrs.s("mode");
  filter.mode = mode == "nearest"  ? ResizeMode::kNearest
                : mode == "linear" ? ResizeMode::kLinear
                                   : ResizeMode::kCubic;
  filter.rounding = parse_nearest(attrs.s("nearest"));
  filter.cubic_a = attrs.f("cubic_coeff_a");
  filter.antialias = attrs.b("antialias");
  filter.exclude_outside = attrs.b("exclude_outside");
  return filter;
}

ResizeRule resize_rule(const Attrs& attrs, size_t rank) {
  ResizeRule rule{.op = attrs.op()->name};
  std::vector<size_t>& axes = rule.axes;
  for (const int64_t axis : attrs.ints("axes")) {
    const size_t place = normalize_axis(axis, static_cast<int64_t>(rank), attrs.op()->name.c_str());
    require(std::find(axes.begin(), axes.end(), place) == axes.end(),
            "[{}] axes names axis {} twice", rule.op, axis);
    axes.push_back(place);
  }
  if (axes.empty())
    for (size_t i = 0; i < rank; ++i) axes.push_back(i);
  rule.coordinate = parse_coordinate(attrs.s("coordinate"));
  const std::string& aspect = attrs.s("aspect");
  rule.aspect = aspect == "not_larger"    ? ResizeAspect::kNotLarger
                : aspect == "not_smaller" ? ResizeAspect::kNotSmaller
                                          : ResizeAspect::kStretch;
  return rule;
}

}  // namespace anymps
