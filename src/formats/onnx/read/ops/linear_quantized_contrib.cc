// SPDX-License-Identifier: Apache-2.0
// Quantized ops of the domain com.microsoft, as quantizing exporters write them. Ops on quantized
// tensors become the plain op between dequantize and quantize; products stay in integers.
#include "base/narrow.h"
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

// Inputs first, first + 1, first + 2: elements, scale, zero point.
Value* plain(Call& c, size_t first) {
  Value* scale = c.in(first + 1);
  return c.add("dequantize", {c.in(first), scale, c.opt(first + 2)}, {{"dtype", scale->dtype()}});
}

// With the scale and the zero point of inputs `scale` and `scale` + 1.
Value* quantized(Call& c, Value* y, size_t scale, DType otherwise) {
  Value* zero = c.opt(scale + 1);
  return c.add("quantize", {y, c.in(scale), zero}, {{"dtype", zero ? zero->dtype() : otherwise}});
}

Values binary(Call& c, const char* op) {
  return {quantized(c, c.add(op, {plain(c, 0), plain(c, 3)}), 6, c.in(0)->dtype())};
}
ONNX_READ_IN(kMicrosoft, QLinearAdd) { return binary(c, "add"); }
ONNX_READ_IN(kMicrosoft, QLinearMul) { return binary(c, "mul"); }

Values unary(Call& c, const char* op, const NamedAttrs& attrs) {
  return {quantized(c, c.add(op, {plain(c, 0)}, attrs), 3, c.in(0)->dtype())};
}
ONNX_READ_IN(kMicrosoft, QLinearSigmoid) { return unary(c, "sigmoid", {}); }
ONNX_READ_IN(kMicrosoft, QLinearLeakyRelu) {
  return unary(c, "leaky_relu", {{"alpha", c.f("alpha", 0.01)}});
}
ONNX_READ_IN(kMicrosoft, QLinearSoftmax) {
  const int64_t rank = c.rank(c.in(0)), axis = c.axis("axis", -1, rank);
  if (c.i("opset") < 13 && axis != rank - 1)
    c.unsupported("a softmax over several axes, as before opset 13");
  return unary(c, "softmax", {{"axis", axis}});
}

ONNX_READ_IN(kMicrosoft, QLinearConcat) {
  Values parts;
  c.check(c.input_count() >= 5 && c.input_count() % 3 == 2, "{} inputs are not 2 and triples",
          c.input_count());
  for (size_t i = 2; i + 2 < c.input_count(); i += 3) parts.push_back(plain(c, i));
  return {quantized(c, c.add("concat", parts, {{"axis", c.i("axis")}}), 0, c.in(2)->dtype())};
}

Value* transposed(Call& c, Value* x, bool to_first) {
  std::vector<int64_t> order(c.rank(x));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  if (to_first) {
    order.insert(order.begin() + 1, order.back());
    order.pop_back();
  } else {
    order.push_back(order[1]);
    order.erase(order.begin() + 1);
  }
  return c.add("transpose", {x}, {{"perm", order}});
}

Values pooled(Call& c, const char* op, const NamedAttrs& attrs) {
  const bool last = c.flag("channels_last", false);
  Value* x = plain(c, 0);
  Value* y = c.add(op, {last ? transposed(c, x, true) : x}, attrs);
  return {quantized(c, last ? transposed(c, y, false) : y, 3, c.in(0)->dtype())};
}

ONNX_READ_IN(kMicrosoft, QLinearAveragePool) {
  const auto kernel = c.ints("kernel_shape");
  c.check(kernel.has_value(), "attribute 'kernel_shape' is missing");
  const std::string auto_pad = c.s("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET") c.unsupported("auto_pad '{}'", auto_pad);
  NamedAttrs attrs = {{"kernel", *kernel},
                      {"ceil_mode", c.flag("ceil_mode", false)},
                      {"count_include_pad", c.flag("count_include_pad", false)}};
  if (auto strides = c.ints("strides")) attrs.emplace_back("strides", *strides);
  if (auto pads = c.ints("pads")) attrs.emplace_back("pads", *pads);
  return pooled(c, "avg_pool", attrs);
}

ONNX_READ_IN(kMicrosoft, QLinearGlobalAveragePool) {
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < c.rank(c.in(0)); ++i) axes.push_back(i);
  return pooled(c, "reduce_mean", {{"axes", axes}, {"keep_dims", true}});
}

// Exact sums as numbers: times both scales, plus the bias.
Value* scaled(Call& c, Value* sums, Value* a_scale, Value* b_scale, Value* bias) {
  Value* y = c.add("mul", {c.cast(sums, DType::kF32), c.add("mul", {a_scale, b_scale})});
  return bias ? c.add("add", {y, bias}) : y;
}

ONNX_READ_IN(kMicrosoft, MatMulIntegerToFloat) {
  Value* sums = c.add("matmul_integer", {c.in(0), c.in(1), c.opt(4), c.opt(5)});
  return {scaled(c, sums, c.in(2), c.in(3), c.opt(6))};
}

// The bias counts in steps of both scales' product, as the sums do. Without a scale of its own the
// result is a number.
ONNX_READ_IN(kMicrosoft, QGemm) {
  const auto operand = [&](size_t i, const char* flag) {
    const bool turned = c.flag(flag, false);
    return turned ? c.add("transpose", {c.in(i)}, {{"perm", std::vector<int64_t>{1, 0}}}) : c.in(i);
  };
  Value* sums =
      c.add("matmul_integer", {operand(0, "transA"), operand(3, "transB"), c.in(2), c.in(5)});
  if (Value* bias = c.opt(6)) sums = c.add("add", {sums, bias});
  Value *a_scale = c.in(1), *y_scale = c.opt(7), *y_zero = c.opt(8);
  if (const double alpha = c.f("alpha", 1); alpha != 1)
    a_scale = c.add("mul", {a_scale, c.graph.scalar(a_scale->dtype(), alpha)});
  c.check(!y_scale == !y_zero, "y_scale and y_zero_point must come together");
  if (!y_scale) return {scaled(c, sums, a_scale, c.in(4), nullptr)};
  Value* factor = c.add("div", {c.add("mul", {a_scale, c.in(4)}), y_scale});
  return {c.add("requantize", {sums, factor, y_zero}, {{"dtype", y_zero->dtype()}, {"axis", -1}})};
}

ONNX_READ_IN(kMicrosoft, QLinearWhere) {
  return {quantized(c, c.add("where", {c.in(0), plain(c, 1), plain(c, 4)}), 7, c.in(1)->dtype())};
}

ONNX_READ_IN(kMicrosoft, DynamicQuantizeMatMul) {
  const Values a = c.add_all("dynamic_quantize", {c.in(0)}, {}, 3);
  Value* sums = c.add("matmul_integer", {a[0], c.in(1), a[2], c.opt(3)});
  return {scaled(c, sums, a[1], c.in(2), c.opt(4))};
}

// Weights [directions, in, 4 * hidden] with a scale for each direction, or for each column too.
Value* lstm_weights(Call& c, size_t weights, size_t scale) {
  Value *s = c.in(scale), *zero = c.opt(scale + 1);
  if (c.rank(s) == 2) {
    s = c.add("unsqueeze", {s}, {{"axes", std::vector<int64_t>{1}}});
    if (zero) zero = c.add("unsqueeze", {zero}, {{"axes", std::vector<int64_t>{1}}});
  }
  Value* w = c.add("dequantize", {c.in(weights), s, zero}, {{"axis", 0}});
  return c.add("transpose", {w}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
}

// The op has no definition but ONNX Runtime's kernel: each product's left operand is quantized as a
// whole, that of the states with as many sequences as its threads take. Ours has one for each.
ONNX_READ_IN(kMicrosoft, DynamicQuantizeLSTM) {
  const auto activations = c.strings("activations");
  static const std::vector<std::string> kUsual = {"Sigmoid", "Tanh", "Tanh"};
  for (size_t i = 0; activations && i < activations->size(); ++i)
    if ((*activations)[i] != kUsual[i % 3])
      c.unsupported("activations [{}]", fmt::join(*activations, ", "));
  if (c.flag("input_forget", false)) c.unsupported("input_forget");
  c.ignore({"activation_alpha", "activation_beta"});
  return c.add_all("lstm",
                   {c.in(0), lstm_weights(c, 1, 8), lstm_weights(c, 2, 10), c.opt(3), c.opt(4),
                    c.opt(5), c.opt(6), c.opt(7)},
                   {{"hidden_size", c.i("hidden_size")},
                    {"direction", c.s("direction", "forward")},
                    {"clip", c.f("clip", 0)},
                    {"dynamic_bytes", true}},
                   3);
}

// Several elements in a byte, the first in its lowest bits, as one byte each.
Value* unpacked(Call& c, Value* packed, DType dtype, int bits, Shape shape, int64_t row) {
  if (!packed->is_constant()) c.unsupported("packed weights that are not a constant");
  const ConstantPtr from = packed->constant;
  const int64_t rows = element_count(shape) / std::max<int64_t>(row, 1);
  const int64_t row_bytes = (row * bits + 7) / 8;
  c.check(from->dtype() == DType::kU8 && static_cast<int64_t>(from->bytes()) == rows * row_bytes,
          "the packed tensor is {}, {} bytes were expected", to_string(packed->type),
          rows * row_bytes);
  return c.graph.constant(anymps::Constant::lazy(dtype, std::move(shape), [=](std::byte* out) {
    const auto bytes = from->data();
    const int in_byte = 8 / bits;
    for (int64_t i = 0; i < rows * row; ++i) {
      const auto byte = static_cast<int>(bytes.get()[i / row * row_bytes + i % row / in_byte]);
      out[i] = static_cast<std::byte>(byte >> (i % row % in_byte * bits) & ((1 << bits) - 1));
    }
  }));
}

// A times the transpose of a matrix [N, K] in blocks of few bits.
ONNX_READ_IN(kMicrosoft, MatMulNBits) {
  const int64_t k = c.i("K"), n = c.i("N"), block = c.i("block_size"), bits = c.i("bits", 4);
  c.ignore({"accuracy_level", "weight_prepacked"});
  if (bits != 2 && bits != 4 && bits != 8) c.unsupported("{} bits", bits);
  c.check(k > 0 && n > 0 && block >= 16 && k < (int64_t{1} << 31) && n < (int64_t{1} << 31) &&
              block < (int64_t{1} << 31),
          "K {}, N {} or block_size {} is out of range", k, n, block);
  if (c.opt(4)) c.unsupported("g_idx");
  const DType dtype = bits == 2 ? DType::kU2 : bits == 4 ? DType::kU4 : DType::kU8;
  const int64_t blocks = (k + block - 1) / block;
  Value *a = c.in(0), *scales = c.in(2), *zero = c.opt(3);
  Value* w = unpacked(c, c.in(1), dtype, static_cast<int>(bits), {n, blocks * block}, block);
  const std::vector<int64_t> grid = {n, blocks};
  scales = c.add("reshape", {scales}, {{"shape", grid}});
  NamedAttrs attrs = {{"dtype", a->dtype()}, {"axis", 1}, {"block_size", block}};
  if (!zero)
    attrs.emplace_back("zero_point", static_cast<double>(int64_t{1} << (bits - 1)));
  else if (zero->dtype() == DType::kU8)
    zero = unpacked(c, zero, dtype, static_cast<int>(bits), {n, blocks}, blocks);
  else
    zero = c.add("reshape", {zero}, {{"shape", grid}});
  Value* matrix = c.add("dequantize", {w, scales, zero}, attrs);
  if (blocks * block != k)
    matrix = c.add("slice", {matrix},
                   {{"starts", std::vector<int64_t>{0}},
                    {"ends", std::vector<int64_t>{k}},
                    {"axes", std::vector<int64_t>{1}}});
  return {c.add("matmul", {a, matrix, c.opt(5)}, {{"transpose_b", true}})};
}

}  // namespace

}  // namespace anymps::onnx
