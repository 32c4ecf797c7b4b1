// SPDX-License-Identifier: Apache-2.0
// Quantization.
#include "formats/onnx/write/emit.h"

namespace anymps::onnx {

namespace {

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

}  // namespace

}  // namespace anymps::onnx
