// SPDX-License-Identifier: Apache-2.0
// Resize and its ancestor Upsample.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Floats = std::vector<double>;

std::string mode_of(Call& c, const char* otherwise) {
  std::string mode = c.s("mode", otherwise);
  if (mode == "bilinear" || mode == "trilinear") return "linear";
  c.check(mode == "nearest" || mode == "linear" || mode == "cubic", "mode '{}' is not known", mode);
  return mode;
}

// The form before opset 11 had no attributes for the coordinates.
NamedAttrs old_attrs(Call& c) {
  return {{"mode", mode_of(c, "nearest")}, {"coordinate", "asymmetric"}, {"nearest", "floor"}};
}

// What of sizes, scales and roi is known becomes an attribute, the rest an input.
class Arguments {
 public:
  Arguments(Call& c, NamedAttrs attrs) : c_(c), attrs_(std::move(attrs)) {}

  void scales(Value* value) {
    if (auto known = known_floats(value))
      attrs_.emplace_back("scales", *known);
    else
      inputs_[2] = c_.cast(value, DType::kF32);
  }
  void sizes(Value* value) {
    if (auto known = known_ints(value))
      attrs_.emplace_back("sizes", *known);
    else
      inputs_[1] = value;
  }
  void roi(Value* value) {
    if (auto known = known_floats(value))
      attrs_.emplace_back("roi", *known);
    else
      inputs_[4] = c_.cast(value, DType::kF32);
  }
  Values resize(Value* x) {
    inputs_[0] = x;
    while (!inputs_.back()) inputs_.pop_back();
    return {c_.add("resize", inputs_, attrs_)};
  }

 private:
  Call& c_;
  NamedAttrs attrs_;
  Values inputs_ = Values(5, nullptr);
};

ONNX_READ(Upsample) {
  NamedAttrs attrs = old_attrs(c);
  if (c.opset < 9) {
    auto scales = c.floats("scales");
    c.check(scales.has_value(), "attribute 'scales' is missing");
    attrs.emplace_back("scales", Floats(scales->begin(), scales->end()));
    return {c.add("resize", {c.in(0)}, attrs)};
  }
  Arguments arguments(c, attrs);
  arguments.scales(c.in(1));
  return arguments.resize(c.in(0));
}

ONNX_READ(Resize) {
  Value* x = c.in(0);
  if (c.opset < 11) {
    Arguments arguments(c, old_attrs(c));
    arguments.scales(c.in(1));
    return arguments.resize(x);
  }
  std::string coordinate = c.s("coordinate_transformation_mode", "half_pixel");
  if (coordinate == "tf_half_pixel_for_nn") coordinate = "tf_half_pixel";
  const bool crop = coordinate == "tf_crop_and_resize";
  NamedAttrs attrs = {{"mode", mode_of(c, "nearest")},
                      {"coordinate", coordinate},
                      {"nearest", c.s("nearest_mode", "round_prefer_floor")},
                      {"cubic_coeff_a", c.f("cubic_coeff_a", -0.75)},
                      {"exclude_outside", c.flag("exclude_outside", false)},
                      {"extrapolation_value", c.f("extrapolation_value", 0.0)},
                      {"antialias", c.flag("antialias", false)},
                      {"aspect", c.s("keep_aspect_ratio_policy", "stretch")}};
  if (auto axes = c.ints("axes")) attrs.emplace_back("axes", *axes);
  Arguments arguments(c, attrs);
  if (crop)
    arguments.roi(c.in(1));
  else
    c.ignore_input(1);
  if (c.opt(3)) {
    c.ignore_input(2);  // some exporters leave an empty tensor here
    arguments.sizes(c.in(3));
  } else {
    arguments.scales(c.in(2));
  }
  return arguments.resize(x);
}

}  // namespace

}  // namespace anymps::onnx
