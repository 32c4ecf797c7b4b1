// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, windows and mel filter banks.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

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

}  // namespace

}  // namespace anymps::onnx
