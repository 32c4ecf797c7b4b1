// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, windows, mel filter banks; sampling, resizing, regions, boxes, pictures.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Floats = std::vector<double>;

using Ints = std::vector<int64_t>;

ONNX_READ(DFT) {
  NamedAttrs attrs = {{"inverse", c.flag("inverse", false)},
                      {"onesided", c.flag("onesided", false)}};
  if (c.opset >= 20) return {c.add("dft", {c.in(0), c.opt(1), c.opt(2)}, attrs)};
  attrs.emplace_back("axis", c.i("axis", 1));
  return {c.add("dft", {c.in(0), c.opt(1)}, attrs)};
}

ONNX_READ(STFT) {
  return {c.add("stft", {c.in(0), c.in(1), c.opt(2), c.opt(3)},
                {{"onesided", c.flag("onesided", true)}})};
}

DType output_type(Call& c) { return c.dtype("output_datatype", DType::kF32); }

Values window(Call& c, const char* kind) {
  return {
      c.add("window", {c.in(0)},
            {{"kind", kind}, {"periodic", c.flag("periodic", true)}, {"dtype", output_type(c)}})};
}

ONNX_READ(HannWindow) { return window(c, "hann"); }
ONNX_READ(HammingWindow) { return window(c, "hamming"); }
ONNX_READ(BlackmanWindow) { return window(c, "blackman"); }

ONNX_READ(MelWeightMatrix) {
  return {c.add("mel_weight_matrix", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)},
                {{"dtype", output_type(c)}})};
}

// com.microsoft: real signals over the last axes, components last; only the forms that runtimes
// have.
int64_t signal_axes(Call& c) {
  const int64_t count = c.i("signal_ndim", 1);
  if (c.i("normalized", 0) != 0 || c.i("onesided", 1) != 1)
    c.unsupported("only onesided transforms that are not normalized are supported");
  c.check(count >= 1 && count <= 3, "signal_ndim is {}, must be 1 to 3", count);
  return count;
}

Value* transform(Call& c, Value* x, int64_t axis, bool inverse, bool onesided) {
  return c.add("dft", {x}, {{"axis", axis}, {"inverse", inverse}, {"onesided", onesided}});
}

ONNX_READ_IN(kMicrosoft, Rfft) {
  const int64_t count = signal_axes(c);
  Value* y = c.add("unsqueeze", {c.in(0)}, {{"axes", std::vector<int64_t>{-1}}});
  y = transform(c, y, -2, false, true);
  for (int64_t axis = 1; axis < count; ++axis) y = transform(c, y, -2 - axis, false, false);
  return {y};
}

ONNX_READ_IN(kMicrosoft, Irfft) {
  const int64_t count = signal_axes(c);
  Value* y = c.in(0);
  for (int64_t axis = 1; axis < count; ++axis) y = transform(c, y, -2 - axis, true, false);
  y = transform(c, y, -2, true, true);
  return {c.add("squeeze", {y}, {{"axes", std::vector<int64_t>{-1}}})};
}

ONNX_READ(GridSample) {
  std::string mode = c.s("mode", c.opset >= 20 ? "linear" : "bilinear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  std::string padding = c.s("padding_mode", "zeros");
  if (padding == "zeros") padding = "constant";
  c.check(padding == "constant" || padding == "border" || padding == "reflection",
          "padding_mode '{}' is not known", padding);
  return {c.add(
      "grid_sample", {c.in(0), c.in(1)},
      {{"mode", mode}, {"padding", padding}, {"align_corners", c.flag("align_corners", false)}})};
}

ONNX_READ(AffineGrid) {
  return {c.add("affine_grid", {c.in(0), c.in(1)},
                {{"align_corners", c.flag("align_corners", false)}})};
}

ONNX_READ(RoiAlign) {
  const std::string mode =
      c.opset >= 16 ? c.s("coordinate_transformation_mode", "half_pixel") : "output_half_pixel";
  c.check(mode == "half_pixel" || mode == "output_half_pixel",
          "coordinate_transformation_mode '{}' is not known", mode);
  return {c.add("roi_align", {c.in(0), c.in(1), c.in(2)},
                {{"mode", c.s("mode", "avg")},
                 {"output_height", c.i("output_height", 1)},
                 {"output_width", c.i("output_width", 1)},
                 {"sampling_ratio", c.i("sampling_ratio", 0)},
                 {"spatial_scale", c.f("spatial_scale", 1.0)},
                 {"half_pixel", mode == "half_pixel"}})};
}

ONNX_READ(MaxRoiPool) {
  auto shape = c.ints("pooled_shape");
  c.check(shape.has_value(), "attribute 'pooled_shape' is missing");
  return {c.add("max_roi_pool", {c.in(0), c.in(1)},
                {{"pooled_shape", *shape}, {"spatial_scale", c.f("spatial_scale", 1.0)}})};
}

ONNX_READ(CenterCropPad) {
  return {
      c.add("center_crop_pad", {c.in(0), c.in(1)}, {{"axes", c.ints("axes").value_or(Ints{})}})};
}

ONNX_READ(NonMaxSuppression) {
  return {c.add("non_max_suppression", {c.in(0), c.in(1), c.opt(2), c.opt(3), c.opt(4)},
                {{"center_point_box", c.flag("center_point_box", false)}})};
}

ONNX_READ(ImageDecoder) {
  return {c.add("image_decoder", {c.in(0)}, {{"pixel_format", c.s("pixel_format", "RGB")}})};
}

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

// Those of sizes, scales and roi that are known become attributes, the others inputs.
class Arguments {
 public:
  Arguments(Call& c, NamedAttrs attrs) : c_(c), attrs_(std::move(attrs)) {}

  void scales(Value* value) { floats("scales", 2, value); }
  void sizes(Value* value) {
    if (auto known = known_ints(*value))
      attrs_.emplace_back("sizes", *known);
    else
      inputs_[1] = value;
  }
  void roi(Value* value) { floats("roi", 4, value); }
  Values resize(Value* x) {
    inputs_[0] = x;
    while (!inputs_.back()) inputs_.pop_back();
    return {c_.add("resize", inputs_, attrs_)};
  }

 private:
  void floats(const char* name, size_t input, Value* value) {
    if (auto known = known_floats(value))
      attrs_.emplace_back(name, *known);
    else
      inputs_[input] = c_.cast(value, DType::kF32);
  }

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
