// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, windows and mel filter banks.
#include "importers/onnx/import.h"
#include "importers/onnx/registry.h"

namespace anymps::onnx {

namespace {

Values DFT(Call& c) {
  NamedAttrs attrs = {{"inverse", c.flag("inverse", false)},
                      {"onesided", c.flag("onesided", false)}};
  if (c.opset >= 20) return {c.add("dft", {c.in(0), c.opt(1), c.opt(2)}, attrs)};
  attrs.emplace_back("axis", c.i("axis", 1));
  return {c.add("dft", {c.in(0), c.opt(1)}, attrs)};
}

Values STFT(Call& c) {
  return {c.add("stft", {c.in(0), c.in(1), c.opt(2), c.opt(3)},
                {{"onesided", c.flag("onesided", true)}})};
}

DType output_type(Call& c) { return to_dtype(static_cast<DataType>(c.i("output_datatype", 1))); }

Values window(Call& c, const char* kind) {
  return {
      c.add("window", {c.in(0)},
            {{"kind", kind}, {"periodic", c.flag("periodic", true)}, {"dtype", output_type(c)}})};
}

Values HannWindow(Call& c) { return window(c, "hann"); }
Values HammingWindow(Call& c) { return window(c, "hamming"); }
Values BlackmanWindow(Call& c) { return window(c, "blackman"); }

Values MelWeightMatrix(Call& c) {
  return {c.add("mel_weight_matrix", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)},
                {{"dtype", output_type(c)}})};
}

const Converter kTable[] = {
    {"BlackmanWindow", BlackmanWindow},   {"DFT", DFT},
    {"HammingWindow", HammingWindow},     {"HannWindow", HannWindow},
    {"MelWeightMatrix", MelWeightMatrix}, {"STFT", STFT},
};

}  // namespace

std::span<const Converter> signal_converters() { return kTable; }

}  // namespace anymps::onnx
