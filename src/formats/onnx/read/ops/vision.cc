// SPDX-License-Identifier: Apache-2.0
// Sampling, regions of interest, boxes, pictures, deformable convolution and unpooling.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

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

ONNX_READ(DeformConv) {
  c.ignore({"kernel_shape"});  // the weights have it
  NamedAttrs attrs = {{"groups", c.i("group", 1)}, {"offset_groups", c.i("offset_group", 1)}};
  for (const char* name : {"strides", "dilations", "pads"})
    if (auto values = c.ints(name)) attrs.emplace_back(name, *values);
  return {c.add("deform_conv", {c.in(0), c.in(1), c.in(2), c.opt(3), c.opt(4)}, attrs)};
}

ONNX_READ(ImageDecoder) {
  return {c.add("image_decoder", {c.in(0)}, {{"pixel_format", c.s("pixel_format", "RGB")}})};
}

// The indices are those of the smallest shape; a larger one is filled up with zeros.
ONNX_READ(MaxUnpool) {
  auto kernel = c.ints("kernel_shape");
  c.check(kernel.has_value(), "attribute 'kernel_shape' is missing");
  NamedAttrs attrs = {{"kernel", *kernel}};
  for (const char* name : {"strides", "pads"})
    if (auto values = c.ints(name)) attrs.emplace_back(name, *values);
  Value* y = c.add("max_unpool", {c.in(0), c.in(1)}, attrs);
  Value* shape = c.opt(2);
  if (!shape) return {y};
  Value* more = c.add("sub", {c.cast(shape, DType::kI64), c.add("shape", {y})});
  Value* none = c.add("mul", {more, c.graph.scalar(DType::kI64, 0)});
  return {c.add("pad", {y, c.add("concat", {none, more}, {{"axis", 0}})})};
}

}  // namespace

}  // namespace anymps::onnx
