// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "ops/op.h"
#include "ops/signal/resize.h"

namespace anymps {

namespace {

// What the word that an attribute holds stands for.
template <typename E>
E meaning(const Attrs& attrs, const char* name,
          std::initializer_list<std::pair<std::string_view, E>> words) {
  const std::string& text = attrs.s(name);
  for (const auto& [word, value] : words)
    if (text == word) return value;
  fail(Code::kInvalidArgument, "[resize] '{}' is not a word for {}", text, name);
}

}  // namespace

ResizeFilter resize_filter(const Attrs& attrs) {
  ResizeFilter filter;
  using Mode = ResizeMode;
  using Rounding = NearestRounding;
  filter.mode = meaning<Mode>(
      attrs, "mode",
      {{"nearest", Mode::kNearest}, {"linear", Mode::kLinear}, {"cubic", Mode::kCubic}});
  filter.rounding = meaning<Rounding>(attrs, "nearest",
                                      {{"round_prefer_floor", Rounding::kPreferFloor},
                                       {"round_prefer_ceil", Rounding::kPreferCeil},
                                       {"floor", Rounding::kFloor},
                                       {"ceil", Rounding::kCeil},
                                       {"round_to_even", Rounding::kToEven},
                                       {"round_to_odd", Rounding::kToOdd}});
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
  rule.coordinate = meaning<Coordinate>(attrs, "coordinate",
                                        {{"half_pixel", Coordinate::kHalfPixel},
                                         {"pytorch_half_pixel", Coordinate::kPytorchHalfPixel},
                                         {"align_corners", Coordinate::kAlignCorners},
                                         {"asymmetric", Coordinate::kAsymmetric},
                                         {"half_pixel_symmetric", Coordinate::kHalfPixelSymmetric},
                                         {"tf_half_pixel", Coordinate::kTfHalfPixel},
                                         {"tf_crop_and_resize", Coordinate::kTfCropAndResize},
                                         {"scale_offset", Coordinate::kScaleOffset}});
  rule.aspect = meaning<ResizeAspect>(attrs, "aspect",
                                      {{"stretch", ResizeAspect::kStretch},
                                       {"not_larger", ResizeAspect::kNotLarger},
                                       {"not_smaller", ResizeAspect::kNotSmaller}});
  return rule;
}

}  // namespace anymps
