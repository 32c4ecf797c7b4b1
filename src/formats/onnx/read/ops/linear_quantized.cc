// SPDX-License-Identifier: Apache-2.0
// Quantization, and linear algebra on quantized integers.
#include "formats/onnx/read/ops/layers.h"
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

// 0 stands for "not given".
std::optional<DType> type_attribute(Call& c, const char* name) {
  if (c.i(name, 0) == 0) return std::nullopt;
  return c.dtype(name);
}

// The division is done in `precision`, which is the scale's type unless it says otherwise.
ONNX_READ(QuantizeLinear) {
  Value *x = c.in(0), *scale = c.in(1), *zero = c.opt(2);
  const auto output = type_attribute(c, "output_dtype");
  const auto precision = type_attribute(c, "precision");
  const DType otherwise = is_float(x->dtype()) ? x->dtype() : DType::kF32;
  const DType computed = precision                  ? *precision
                         : is_float(scale->dtype()) ? scale->dtype()
                                                    : otherwise;
  c.check(!zero || !output || zero->dtype() == *output,
          "output_dtype is {}, but the zero point is {}", name(output.value_or(DType::kU8)),
          zero ? name(zero->dtype()) : "");
  if (is_float(scale->dtype())) scale = c.cast(scale, computed);
  return {c.add("quantize", {c.cast(x, computed), scale, zero},
                {{"dtype", zero ? zero->dtype() : output.value_or(DType::kU8)},
                 {"axis", c.i("axis", 1)},
                 {"block_size", c.i("block_size", 0)},
                 {"saturate", c.flag("saturate", true)}})};
}
ONNX_READ_ALSO(kMicrosoft, QuantizeLinear, kOnnx, QuantizeLinear);

ONNX_READ(DequantizeLinear) {
  Value* scale = c.in(1);
  const DType otherwise = is_float(scale->dtype()) ? scale->dtype() : DType::kF32;
  return {c.add("dequantize", {c.in(0), scale, c.opt(2)},
                {{"dtype", type_attribute(c, "output_dtype").value_or(otherwise)},
                 {"axis", c.i("axis", 1)},
                 {"block_size", c.i("block_size", 0)}})};
}
ONNX_READ_ALSO(kMicrosoft, DequantizeLinear, kOnnx, DequantizeLinear);

ONNX_READ(DynamicQuantizeLinear) { return c.add_all("dynamic_quantize", {c.in(0)}, {}, 3); }

ONNX_READ(MatMulInteger) {
  return {c.add("matmul_integer", {c.in(0), c.in(1), c.opt(2), c.opt(3)})};
}

NamedAttrs convolution(Call& c) {
  NamedAttrs attrs = window_attrs(c);
  attrs.emplace_back("groups", c.i("group", 1));
  c.ignore({"kernel_shape"});  // that of the weights
  return attrs;
}

ONNX_READ(ConvInteger) {
  return {c.add("conv_integer", {c.in(0), c.in(1), c.opt(2), c.opt(3)}, convolution(c))};
}

bool is_single(const Value* value) {
  for (const Dim& extent : value->shape())
    if (!extent.is(1)) return false;
  return true;
}

// Sums of products to the scale of the result: one factor, or one for each place on an axis.
Value* requantized(Call& c, Value* sums, Value* a_scale, Value* b_scale, Value* y_scale,
                   Value* y_zero, int64_t axis) {
  if (!is_single(a_scale) || !is_single(y_scale))
    c.unsupported("a scale of its own for each row of the first operand or of the result");
  Value* factor = c.add("div", {c.add("mul", {a_scale, b_scale}), y_scale});
  return c.add("requantize", {sums, factor, y_zero}, {{"dtype", y_zero->dtype()}, {"axis", axis}});
}

ONNX_READ(QLinearMatMul) {
  Value* sums = c.add("matmul_integer", {c.in(0), c.in(3), c.in(2), c.in(5)});
  return {requantized(c, sums, c.in(1), c.in(4), c.in(6), c.in(7), -1)};
}

ONNX_READ(QLinearConv) {
  Value* w = c.in(3);
  Value* sums = c.add("conv_integer", {c.in(0), w, c.in(2), c.in(5)}, convolution(c));
  if (Value* bias = c.opt(8)) {
    std::vector<int64_t> shape(c.rank(w), 1);
    shape[1] = -1;
    sums = c.add("add", {sums, c.add("reshape", {bias}, {{"shape", shape}})});
  }
  return {requantized(c, sums, c.in(1), c.in(4), c.in(6), c.in(7), 1)};
}

}  // namespace

}  // namespace anymps::onnx
