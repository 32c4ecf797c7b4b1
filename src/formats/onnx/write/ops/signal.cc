// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, windows, filter banks; sampling, resizing, boxes.
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

// Input i as a scalar, else the attribute.
std::string number_of(Emit& e, size_t i, const char* attr) {
  const auto otherwise = static_cast<double>(e.attrs().i(attr));
  return e.has(i) ? e.scalar(i) : e.number(DType::kI64, otherwise);
}

ONNX_WRITE(dft) {
  const bool inverse = e.attrs().b("inverse"), onesided = e.attrs().b("onesided");
  if (inverse && onesided) e.refuse("ONNX has no inverse of a onesided transform");
  const bool length = e.has(1) || e.attrs().i("length") != 0;
  return {e.add(
      "DFT", {e.in(0), length ? number_of(e, 1, "length") : std::string(), number_of(e, 2, "axis")},
      {{"inverse", inverse}, {"onesided", onesided}})};
}

ONNX_WRITE(stft) {
  std::string signal = e.in(0);
  if (e.rank() == 2) signal = e.add("Unsqueeze", {signal, e.ints({-1})});
  std::string length;
  if (e.has(3) || e.attrs().i("frame_length") != 0)
    length = number_of(e, 3, "frame_length");
  else if (!e.has(2))
    e.refuse("neither a window nor a length of the frames is given");
  return {e.add("STFT", {signal, number_of(e, 1, "frame_step"), e.in(2), length},
                {{"onesided", e.attrs().b("onesided")}})};
}

ONNX_WRITE(window) {
  const std::string& kind = e.attrs().s("kind");
  const char* op = kind == "hann"      ? "HannWindow"
                   : kind == "hamming" ? "HammingWindow"
                                       : "BlackmanWindow";
  return {e.add(
      op, {number_of(e, 0, "size")},
      {{"periodic", e.attrs().b("periodic")}, {"output_datatype", e.attrs().dtype("dtype")}})};
}

ONNX_WRITE(mel_weight_matrix) {
  return {e.add("MelWeightMatrix", {e.scalar(0), e.scalar(1), e.scalar(2), e.in(3), e.in(4)},
                {{"output_datatype", e.attrs().dtype("dtype")}})};
}

ONNX_WRITE(grid_sample) {
  const Layout layout(e);
  const std::string& padding = e.attrs().s("padding");
  if (padding != "constant" && padding != "border" && padding != "reflection")
    e.refuse("its padding is {}", padding);
  return {layout.back(e.add("GridSample", {layout.first(e.in(0), e.rank()), e.in(1)},
                            {{"mode", e.attrs().s("mode")},
                             {"padding_mode", padding == "constant" ? "zeros" : padding},
                             {"align_corners", e.attrs().b("align_corners")}}),
                      e.rank())};
}

ONNX_WRITE(affine_grid) {
  return {e.add("AffineGrid", {e.in(0), e.list(1, "size")},
                {{"align_corners", e.attrs().b("align_corners")}})};
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

ONNX_WRITE(non_max_suppression) {
  return {
      e.add("NonMaxSuppression", e.all(), {{"center_point_box", e.attrs().b("center_point_box")}})};
}

}  // namespace

}  // namespace anymps::onnx
