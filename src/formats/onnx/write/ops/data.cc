// SPDX-License-Identifier: Apache-2.0
// Ops over data: bits, scatters, order, choices, quantization, resizing.
#include <algorithm>
#include <cmath>

#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

Names shift(Emit& e, const char* direction) {
  if (contains(kSigned, e.dtype())) e.refuse("BitShift is for unsigned integers");
  return {e.add("BitShift", e.all(), {{"direction", direction}})};
}
ONNX_WRITE(left_shift) { return shift(e, "LEFT"); }
ONNX_WRITE(right_shift) { return shift(e, "RIGHT"); }

std::string reduction_of(Emit& e) {
  const std::string& mode = e.attrs().s("mode");
  if (mode == "sub" || mode == "div") e.refuse("ONNX does not scatter with {}", mode);
  return mode == "set" ? "none" : mode;
}

// The tensor that is written to, which is zeros unless it is given.
std::string target(Emit& e) {
  if (e.has(2)) return e.in(2);
  return e.add("Expand", {e.number(e.dtype(), 0), e.ints(e.attrs().ints("shape"))});
}

ONNX_WRITE(scatter_nd) {
  if (e.attrs().i("batch_dims") != 0) e.refuse("it scatters within batches");
  if (e.has(2)) e.attrs().ints("shape");
  return {e.add("ScatterND", {target(e), e.cast(e.in(1), DType::kI64), e.in(0)},
                {{"reduction", reduction_of(e)}})};
}
ONNX_WRITE(scatter_along_axis) {
  if (e.has(3)) e.refuse("its axis is computed");
  if (e.has(2)) e.attrs().ints("shape");
  return {e.add("ScatterElements", {target(e), e.in(1), e.in(0)},
                {{"axis", e.attrs().i("axis")}, {"reduction", reduction_of(e)}})};
}

ONNX_WRITE(top_k) {
  if (e.has(2)) e.refuse("its axis is computed");
  const std::string k = e.has(1) ? e.add("Reshape", {e.cast(e.in(1), DType::kI64), e.ints({1})})
                                 : e.ints({e.attrs().i("k")});
  return e.add_all("TopK", {e.in(0), k},
                   {{"axis", e.attrs().i("axis")}, {"largest", e.attrs().b("largest")}}, 2);
}

ONNX_WRITE(nonzero) {
  const std::string places = e.add("NonZero", {e.in(0)});
  return {e.attrs().b("axes_first") ? places : e.transpose(places, {1, 0})};
}

ONNX_WRITE(compress) {
  const Ints& axes = e.attrs().ints("axes");
  if (axes.size() > 1) e.refuse("it compresses {} axes", axes.size());
  return {e.add("Compress", e.all(), axes.empty() ? OutAttrs{} : OutAttrs{{"axis", axes[0]}})};
}

ONNX_WRITE(eye_like) {
  return {
      e.add("EyeLike", {e.in(0)}, {{"dtype", e.attrs().dtype("dtype")}, {"k", e.attrs().i("k")}})};
}

ONNX_WRITE(reverse_sequence) {
  return {
      e.add("ReverseSequence", {e.in(0), e.cast(e.in(1), DType::kI64)},
            {{"time_axis", e.attrs().i("time_axis")}, {"batch_axis", e.attrs().i("batch_axis")}})};
}

ONNX_WRITE(non_max_suppression) {
  return {
      e.add("NonMaxSuppression", e.all(), {{"center_point_box", e.attrs().b("center_point_box")}})};
}

// Scale and zero point as inputs; the forms with numbers are left to arithmetic.
Names quantized(Emit& e, const char* op) {
  if (!e.has(1)) e.refuse("its scale is an attribute");
  OutAttrs attrs = {{"axis", e.attrs().i("axis")}};
  if (e.attrs().i("block_size") != 0) attrs.emplace_back("block_size", e.attrs().i("block_size"));
  return {e.add(op, e.all(), attrs)};
}
ONNX_WRITE(quantize) {
  if (!e.has(2) && e.attrs().dtype("dtype") != DType::kU8)
    e.refuse("without a zero point the type is u8");
  if (e.has(2)) e.attrs().dtype("dtype");
  return quantized(e, "QuantizeLinear");
}
ONNX_WRITE(dequantize) {
  if (e.has(1) && e.attrs().dtype("dtype") != e.dtype(1)) e.refuse("its type is not the scale's");
  return quantized(e, "DequantizeLinear");
}

ONNX_WRITE(resize) {
  if (e.has(3) || e.has(4)) e.refuse("offsets or a region are given");
  const std::string& nearest = e.attrs().s("nearest");
  const std::string& coordinate = e.attrs().s("coordinate");
  if (coordinate == "scale_offset" || coordinate == "tf_half_pixel" ||
      coordinate == "tf_crop_and_resize" || nearest.starts_with("round_to"))
    e.refuse("its coordinates are {} and {}", coordinate, nearest);
  OutAttrs attrs = {{"mode", e.attrs().s("mode")},
                    {"coordinate_transformation_mode", coordinate},
                    {"nearest_mode", nearest},
                    {"cubic_coeff_a", e.attrs().f("cubic_coeff_a")},
                    {"antialias", e.attrs().b("antialias")},
                    {"exclude_outside", e.attrs().b("exclude_outside")}};
  if (!e.attrs().ints("axes").empty()) attrs.emplace_back("axes", e.attrs().ints("axes"));
  if (e.has(1) || !e.attrs().ints("sizes").empty()) {
    attrs.emplace_back("keep_aspect_ratio_policy", e.attrs().s("aspect"));
    return {e.add("Resize", {e.in(0), "", "", e.list(1, "sizes")}, attrs)};
  }
  if (e.has(2)) return {e.add("Resize", {e.in(0), "", e.cast(e.in(2), DType::kF32)}, attrs)};
  return {e.add("Resize", {e.in(0), "", e.floats(e.attrs().floats("scales"))}, attrs)};
}

}  // namespace

}  // namespace anymps::onnx
