// SPDX-License-Identifier: Apache-2.0
// Quantized operators (quantized_decomposed): to and from integers with a scale and a zero point
// for a tensor, a channel or a token, and products and embeddings with such weights.
#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

double as_float(double number) { return static_cast<double>(static_cast<float>(number)); }

// (…, quant_min, quant_max, …) from argument `first` on.
Value* clamped(KernelArguments& c, Value* x, size_t first) {
  x = c.add("max", {x, c.number(first, x->dtype())});
  return c.cast(c.add("min", {x, c.number(first + 1, x->dtype())}), c.out());
}

// round(x / scale) + zero_point; torch multiplies by the inverse of the scale.
Value* quantized(KernelArguments& c, Value* x, double scale, double zero_point, size_t bounds) {
  c.check(scale != 0, "the scale is 0");
  x = c.cast(x, DType::kF32);
  Value* steps = c.add("rint", {with_scalar(c, "mul", x, as_float(1 / scale))});
  return clamped(c, with_scalar(c, "add", steps, zero_point), bounds);
}

Values quantize_per_tensor(KernelArguments& c) {
  return {quantized(c, c.tensor(0), c.f(1), static_cast<double>(c.i(2)), 3)};
}

Value* scalar_of_one(KernelArguments& c, size_t i, DType dtype) {
  return reshape(c, c.cast(c.tensor(i), dtype), {});
}

Values quantize_per_tensor_tensor(KernelArguments& c) {
  Value* x = c.cast(c.tensor(0), DType::kF32);
  Value* inverse = c.add("reciprocal", {scalar_of_one(c, 1, DType::kF64)});
  Value* steps = c.add("rint", {c.add("mul", {x, c.cast(inverse, DType::kF32)})});
  return {clamped(c, c.add("add", {steps, scalar_of_one(c, 2, DType::kF32)}), 3)};
}

Value* dequantized(KernelArguments& c, Value* x, double scale, double zero_point, DType dtype) {
  return c.add("dequantize", {x},
               {{"dtype", dtype}, {"scale", as_float(scale)}, {"zero_point", zero_point}});
}

Values dequantize_per_tensor(KernelArguments& c) {
  return {dequantized(c, c.tensor(0), c.f(1), static_cast<double>(c.i(2)), c.out())};
}

Values dequantize_per_tensor_tensor(KernelArguments& c) {
  Value* x = c.add("sub", {c.cast(c.tensor(0), DType::kF32), scalar_of_one(c, 2, DType::kF32)});
  return {c.cast(c.add("mul", {x, scalar_of_one(c, 1, DType::kF32)}), c.out())};
}

// A vector along one axis of x.
Value* along_axis(KernelArguments& c, Value* vector, const Value* x, int64_t axis) {
  c.check(axis < c.rank(x), "the input is a scalar and has no channels");
  Ints shape(place(c.rank(x)), 1);
  shape[place(axis)] = -1;
  return reshape(c, vector, shape);
}

// x * (1 / scales), in the wider of their dtypes
Value* in_steps(KernelArguments& c, Value* x, Value* scales) {
  const DType dtype = promote(x->dtype(), scales->dtype());
  return c.add("mul", {c.cast(x, dtype), c.cast(c.add("reciprocal", {scales}), dtype)});
}

Values quantize_per_channel(KernelArguments& c) {
  Value* x = c.cast(c.tensor(0), DType::kF32);
  const int64_t axis = c.axis(3, x);
  Value* steps = c.add("rint", {in_steps(c, x, along_axis(c, c.tensor(1), x, axis))});
  Value* zeros = c.cast(along_axis(c, c.tensor(2), x, axis), steps->dtype());
  return {clamped(c, c.add("add", {steps, zeros}), 4)};
}

Values dequantize_per_channel(KernelArguments& c) {
  Value *x = c.tensor(0), *zeros = c.maybe_tensor(2);
  Values inputs = {x, c.tensor(1)};
  if (zeros) inputs.push_back(is_float(zeros->dtype()) ? zeros : c.cast(zeros, DType::kI32));
  return {c.add("dequantize", inputs, {{"dtype", c.out()}, {"axis", c.axis(3, x)}})};
}

// Scales and zero points are [tokens…, 1]. The zero point is added before rounding.
Values quantize_per_token(KernelArguments& c) {
  Value* x = in_steps(c, c.cast(c.tensor(0), DType::kF32), c.tensor(1));
  x = c.add("rint", {c.add("add", {x, c.cast(c.tensor(2), x->dtype())})});
  return {clamped(c, x, 3)};
}

Values dequantize_per_token(KernelArguments& c) {
  Value* x = c.add("sub", {c.cast(c.tensor(0), DType::kI64), c.cast(c.tensor(2), DType::kI64)});
  Value* scales = c.tensor(1);
  return {c.cast(c.add("mul", {c.cast(x, scales->dtype()), scales}), c.out())};
}

Value* shaped_as_declared(KernelArguments& c, Value* x, size_t result) {
  return reshape(c, x, c.result(result).sizes);
}

// The scale and zero point for the range of a tensor, which is made to hold 0.
Values choose_qparams(KernelArguments& c) {
  Value* x = c.cast(c.tensor(0), DType::kF32);
  const double low = c.f(1), high = c.f(2);
  c.check(low < high, "the range from {} to {} is empty", low, high);
  const NamedAttrs all = {{"keep_dims", false}};
  Value* least = with_scalar(c, "min", c.add("reduce_min", {x}, all), 0);
  Value* most = with_scalar(c, "max", c.add("reduce_max", {x}, all), 0);
  Value* scale = with_scalar(c, "div", c.add("sub", {most, least}), high - low);
  scale = with_scalar(c, "max", scale, c.f(3));
  Value* zero = c.add("rint", {c.add("div", {least, scale})});
  zero = c.add("sub", {c.scalar_like(zero, low), zero});
  zero = c.add("clamp", {zero}, {{"min", low}, {"max", high}});
  return {shaped_as_declared(c, c.cast(scale, c.out(0)), 0),
          shaped_as_declared(c, c.cast(zero, c.out(1)), 1)};
}

// The same of each row, to i8; the zero point comes from the end with the smaller error.
Values choose_qparams_per_token_asymmetric(KernelArguments& c) {
  Value* x = c.tensor(0);
  const double low = -128, high = 127, eps = 1.1920928955078125e-07;
  const NamedAttrs rows = {{"axes", Ints{-1}}};
  Value* least = with_scalar(c, "min", c.add("reduce_min", {x}, rows), 0);
  Value* most = with_scalar(c, "max", c.add("reduce_max", {x}, rows), 0);
  Value* scale = with_scalar(c, "div", c.add("sub", {most, least}), high - low);
  scale = with_scalar(c, "max", scale, eps);
  Value *bottom = c.add("div", {least, scale}), *top = c.add("div", {most, scale});
  Value* error =
      c.add("add", {with_scalar(c, "add", bottom, low), with_scalar(c, "add", top, high)});
  Value* zero = c.add("where", {with_scalar(c, "greater", error, 0),
                                c.add("sub", {c.scalar_like(bottom, low), bottom}),
                                c.add("sub", {c.scalar_like(top, high), top})});
  zero = c.add("rint", {c.add("clamp", {zero}, {{"min", low}, {"max", high}})});
  return {c.cast(scale, c.out(0)), c.cast(zero, c.out(1))};
}

// (a, scale, zero_point, quant_min, quant_max, b, …, out_scale, out_zero_point, out_min, out_max)
Values add_quantized(KernelArguments& c) {
  Value* a = dequantized(c, c.tensor(0), c.f(1), c.f(2), DType::kF32);
  Value* b = dequantized(c, c.tensor(5), c.f(6), c.f(7), DType::kF32);
  return {quantized(c, c.add("add", {a, b}), c.f(10), c.f(11), 12)};
}

// Rows of integers times their scales, one for each row or each group of a row.
Value* rows_of(KernelArguments& c, Value* rows, Value* scales, Value* zeros) {
  const DType dtype = scales->dtype();
  rows = c.cast(rows, dtype);
  const int64_t width = known_extent(c, rows, -1);
  const bool grouped = scales->shape().size() == rows->shape().size();
  const int64_t groups = grouped ? known_extent(c, scales, -1) : 1;
  c.check(groups > 0 && width % groups == 0, "{} elements in {} groups", width, groups);
  const int64_t last = c.rank(rows);
  const auto spread_out = [&](Value* x) {
    return unsqueeze(c, x, grouped ? Ints{last} : Ints{last - 1, last});
  };
  Value* like = c.add("shape", {rows}, {{"start", 0}, {"end", last - 1}});
  Value* shape = c.add("concat", {like, c.graph.ints({groups, width / groups})});
  Value* parts = c.add("reshape", {rows, shape}, {{"allow_zero", true}});
  if (zeros) parts = c.add("sub", {parts, spread_out(c.cast(zeros, dtype))});
  parts = c.add("mul", {parts, spread_out(scales)});
  return c.add("reshape", {parts, c.add("shape", {rows})}, {{"allow_zero", true}});
}

// Elements of `bits` bits in bytes, lowered by half of their range. Of four bits the first is the
// upper one, of two bits the first is the lowest.
Value* unpacked(KernelArguments& c, Value* rows, int64_t bits) {
  Value* bytes = c.cast(c.cast(rows, DType::kU8), DType::kI32);
  Values parts;
  const auto field = [&](int64_t shift, int64_t mask) {
    Value* moved = shift ? with_scalar(c, "right_shift", bytes, static_cast<double>(shift)) : bytes;
    parts.push_back(with_scalar(c, "bitwise_and", moved, static_cast<double>(mask)));
  };
  if (bits == 4) {
    field(4, 15);
    field(0, 15);
  } else {
    for (int64_t shift = 0; shift < 8; shift += 2) field(shift, 3);
  }
  const int64_t last = c.rank(rows), each = 8 / bits;
  Value* stacked = c.add("stack", parts, {{"axis", last}});
  Value* like = c.add("shape", {rows}, {{"start", 0}, {"end", last - 1}});
  Value* shape = c.add("concat", {like, c.graph.ints({known_extent(c, rows, -1) * each})});
  Value* flat = c.add("reshape", {stacked, shape}, {{"allow_zero", true}});
  return with_scalar(c, "sub", flat, static_cast<double>(int64_t{1} << (bits - 1)));
}

// (weight, scales, zero_points, quant_min, quant_max, indices)
Values packed_embedding(KernelArguments& c, int64_t bits) {
  Value *weight = c.tensor(0), *scales = c.tensor(1), *zeros = c.maybe_tensor(2);
  Value* indices = c.tensor(5);
  const auto pick = [&](Value* x) { return c.add("gather", {x, indices}, {{"axis", 0}}); };
  if (bits < 8) {
    const double low = -static_cast<double>(int64_t{1} << (bits - 1));
    c.check(c.f(3) == low && c.f(4) == -low - 1, "the range of {} bits from {} to {}", bits, c.f(3),
            c.f(4));
  }
  Value* rows = pick(weight);
  if (bits < 8) rows = unpacked(c, rows, bits);
  return {rows_of(c, rows, pick(scales), zeros ? pick(zeros) : nullptr)};
}
Values embedding_byte(KernelArguments& c) { return packed_embedding(c, 8); }
Values embedding_4bit(KernelArguments& c) { return packed_embedding(c, 4); }
Values embedding_2bit(KernelArguments& c) { return packed_embedding(c, 2); }

// Weights with a scale for each row: of mixed_mm a row is along the sum, of mixed_linear a result.
Values mixed_mm(KernelArguments& c) {
  if (!c.is_none(3)) c.unsupported("zero points");
  Value* x = c.tensor(0);
  const DType wide = wide_dtype(x->dtype());
  Value* weight = rows_of(c, c.tensor(1), c.cast(c.tensor(2), wide), nullptr);
  return {c.add("matmul", {c.cast(x, wide), weight})};
}

Values mixed_linear(KernelArguments& c) {
  if (!c.is_none(3)) c.unsupported("zero points");
  Value* x = c.tensor(0);
  const DType wide = wide_dtype(x->dtype());
  Value* weight = rows_of(c, c.tensor(1), c.cast(c.tensor(2), wide), nullptr);
  return {c.add("matmul", {c.cast(x, wide), weight}, {{"transpose_b", true}})};
}

const KernelConverters kQuantized{
    {"quantized_decomposed::add.out", add_quantized},
    {"quantized_decomposed::choose_qparams.Tensor_out", choose_qparams},
    {"quantized_decomposed::choose_qparams_per_token_asymmetric.out",
     choose_qparams_per_token_asymmetric},
    {"quantized_decomposed::dequantize_per_channel.out", dequantize_per_channel},
    {"quantized_decomposed::dequantize_per_tensor.Tensor_out", dequantize_per_tensor_tensor},
    {"quantized_decomposed::dequantize_per_tensor.out", dequantize_per_tensor},
    {"quantized_decomposed::dequantize_per_token.out", dequantize_per_token},
    {{"quantized_decomposed::embedding_2bit.dtype_out", "quantized_decomposed::embedding_2bit.out"},
     embedding_2bit},
    {{"quantized_decomposed::embedding_4bit.dtype_out", "quantized_decomposed::embedding_4bit.out"},
     embedding_4bit},
    {{"quantized_decomposed::embedding_byte.dtype_out", "quantized_decomposed::embedding_byte.out"},
     embedding_byte},
    {"quantized_decomposed::mixed_linear.out", mixed_linear},
    {"quantized_decomposed::mixed_mm.out", mixed_mm},
    {"quantized_decomposed::quantize_per_channel.out", quantize_per_channel},
    {"quantized_decomposed::quantize_per_tensor.Tensor_out", quantize_per_tensor_tensor},
    {"quantized_decomposed::quantize_per_tensor.out", quantize_per_tensor},
    {"quantized_decomposed::quantize_per_token.out", quantize_per_token},
};

}  // namespace

}  // namespace anymps::executorch
