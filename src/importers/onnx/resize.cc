// SPDX-License-Identifier: Apache-2.0
// Resize and its ancestor Upsample.
#include <algorithm>
#include <cmath>

#include "importers/onnx/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

std::string mode_of(Call& c, const char* otherwise) {
  std::string mode = c.s("mode", otherwise);
  if (mode == "bilinear" || mode == "trilinear") return "linear";
  if (mode != "nearest" && mode != "linear") c.unsupported("mode '{}' is not supported", mode);
  return mode;
}

// The form before opset 11 had no attributes for the coordinates.
NamedAttrs old_attrs(Call& c) {
  return {{"mode", mode_of(c, "nearest")}, {"coordinate", "asymmetric"}, {"nearest", "floor"}};
}

Value* by_scales(Call& c, Value* scales, NamedAttrs attrs) {
  auto known = known_floats(scales);
  if (!known) return c.add("resize", {c.in(0), nullptr, c.cast(scales, DType::kF32)}, attrs);
  attrs.emplace_back("scales", *known);
  return c.add("resize", {c.in(0)}, attrs);
}

Values Upsample(Call& c) {
  NamedAttrs attrs = old_attrs(c);
  if (c.opset >= 9) return {by_scales(c, c.in(1), attrs)};
  auto scales = c.floats("scales");
  c.check(scales.has_value(), "attribute 'scales' is missing");
  attrs.emplace_back("scales", Floats(scales->begin(), scales->end()));
  return {c.add("resize", {c.in(0)}, attrs)};
}

// The extents of all axes, when sizes are given for some, and the aspect ratio may have to be kept.
Ints sizes_of_all_axes(Call& c, Value* x, const Ints& sizes, const Ints& axes,
                       const std::string& policy) {
  c.check(sizes.size() == axes.size(), "{} sizes are given for {} axes", sizes.size(), axes.size());
  Ints all;
  for (const Dim& dim : x->shape()) {
    if (!dim.known()) c.unsupported("the input's shape {} must be known", to_string(x->shape()));
    all.push_back(dim.value());
  }
  double scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    c.check(all[axis] > 0, "axis {} is empty", axes[i]);
    const double ratio = static_cast<double>(sizes[i]) / static_cast<double>(all[axis]);
    scale = i == 0                   ? ratio
            : policy == "not_larger" ? std::min(scale, ratio)
                                     : std::max(scale, ratio);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& extent = all[static_cast<size_t>(axes[i])];
    // Half rounds up, as the standard's reference does.
    extent = policy == "stretch"
                 ? sizes[i]
                 : static_cast<int64_t>(std::floor(scale * static_cast<double>(extent) + 0.5));
  }
  return all;
}

Values by_sizes(Call& c, NamedAttrs attrs, const std::optional<Ints>& axes,
                const std::string& policy) {
  Value* x = c.in(0);
  auto sizes = known_ints(c.in(3));
  if (!axes && policy == "stretch") {
    if (!sizes) return {c.add("resize", {x, c.in(3)}, attrs)};
    attrs.emplace_back("sizes", *sizes);
    return {c.add("resize", {x}, attrs)};
  }
  if (!sizes) c.unsupported("sizes that are computed, for some axes only, are not supported");
  Ints all_axes;
  for (int64_t axis = 0; axis < c.rank(x); ++axis) all_axes.push_back(axis);
  attrs.emplace_back("sizes", sizes_of_all_axes(c, x, *sizes, axes.value_or(all_axes), policy));
  return {c.add("resize", {x}, attrs)};
}

Values Resize(Call& c) {
  Value* x = c.in(0);
  if (c.opset < 11) return {by_scales(c, c.in(1), old_attrs(c))};
  const std::string coordinate = c.s("coordinate_transformation_mode", "half_pixel");
  if (coordinate == "tf_crop_and_resize" || coordinate == "tf_half_pixel_for_nn")
    c.unsupported("coordinate_transformation_mode '{}' is not supported", coordinate);
  if (c.flag("antialias", false)) c.unsupported("antialias is not supported");
  NamedAttrs attrs = {{"mode", mode_of(c, "nearest")},
                      {"coordinate", coordinate},
                      {"nearest", c.s("nearest_mode", "round_prefer_floor")}};
  // Cubic interpolation and cropping, which alone read these, are refused above.
  c.ignore({"cubic_coeff_a", "exclude_outside", "extrapolation_value"});
  c.ignore_input(1);

  auto axes = c.ints("axes");
  if (axes)
    for (int64_t& axis : *axes) axis = c.normalize(axis, c.rank(x));
  const std::string policy = c.s("keep_aspect_ratio_policy", "stretch");
  c.check(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
          "keep_aspect_ratio_policy '{}' is not known", policy);
  if (c.opt(3)) {
    c.ignore_input(2);  // some exporters leave an empty tensor here
    return by_sizes(c, attrs, axes, policy);
  }
  Value* scales = c.in(2);
  if (!axes) return {by_scales(c, scales, attrs)};
  auto known = known_floats(scales);
  if (!known) c.unsupported("scales that are computed, for some axes only, are not supported");
  c.check(known->size() == axes->size(), "{} scales are given for {} axes", known->size(),
          axes->size());
  Floats all(static_cast<size_t>(c.rank(x)), 1.0);
  for (size_t i = 0; i < axes->size(); ++i) all[static_cast<size_t>((*axes)[i])] = (*known)[i];
  attrs.emplace_back("scales", all);
  return {c.add("resize", {x}, attrs)};
}

const Converter kTable[] = {
    {"Resize", Resize},
    {"Upsample", Upsample},
};

}  // namespace

std::span<const Converter> resize_converters() { return kTable; }

}  // namespace anymps::onnx
