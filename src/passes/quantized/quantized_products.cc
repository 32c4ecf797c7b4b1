// SPDX-License-Identifier: Apache-2.0
// Products of quantized numbers stay in integers:
//   quantize(relu(conv(dequantize(x), dequantize(w), b)))  ->  quantized_conv(x, w, …)
//   add(mul(cast(matmul_integer(a, b)), s), bias)          ->  quantized_matmul(a, b, …)
// The sums are then exact, where those of dequantized numbers are rounded: where a result lies half
// way between two steps, it may come out one step away. Runs before constants are folded, for then
// weights would be numbers of f32.
#include "passes/epilogue.h"
#include "passes/fuse.h"
#include "passes/quantized/quantized_steps.h"

namespace anymps {

namespace {

Value* matmul_of_dequantized(Graph& graph, const Node& node) {
  if (node.attrs.f("alpha") != 1 || node.attrs.s("activation") != "none" || node.input(3) ||
      node.attrs.b("transpose_a"))
    return nullptr;
  if (!made_by(node.input(0), "dequantize") || !made_by(node.input(1), "dequantize"))
    return nullptr;
  const int64_t rank = rank_of(node.input(1));
  if (rank_of(node.input(0)) < 2 || rank < 2) return nullptr;
  Value* bias = node.input(2);
  if (bias && (!is_vector(bias) || bias->shape().size() != 1 ||
               !(bias->shape()[0] == node.output()->shape().back())))
    return nullptr;
  const auto a = dequantized(graph, node.input(0)), b = dequantized(graph, node.input(1));
  const bool transposed = node.attrs.b("transpose_b");
  if (!a || !b || !a->one || (!b->one && b->axis != rank - (transposed ? 2 : 1))) return nullptr;
  Value* right = b->x;
  if (transposed) {
    std::vector<int64_t> order(static_cast<size_t>(rank));
    for (int64_t i = 0; i < rank; ++i) order[i] = i;
    std::swap(order[rank - 2], order[rank - 1]);
    right = graph.add("transpose", {right}, {{"perm", order}});
  }
  Value* scale = graph.add("mul", {a->scale, b->scale});
  return graph.add("quantized_matmul", {a->x, right, a->zero, b->zero, scale, bias}, {}, node.name);
}

NamedAttrs window_of(const Node& conv) {
  const Attrs& attrs = conv.attrs;
  return {{"strides", attrs.ints("strides")},
          {"dilations", attrs.ints("dilations")},
          {"pads", attrs.ints("pads")},
          {"auto_pad", attrs.s("auto_pad")},
          {"groups", attrs.i("groups")}};
}

Value* conv_of_dequantized(Graph& graph, const Node& node) {
  if (node.attrs.s("layout") != "channels_first" || node.attrs.s("weights_layout") != "OI*" ||
      node.attrs.s("activation") != "none" || node.input(3))
    return nullptr;
  if (!made_by(node.input(0), "dequantize") || !made_by(node.input(1), "dequantize"))
    return nullptr;
  const auto x = dequantized(graph, node.input(0)), w = dequantized(graph, node.input(1));
  if (!x || !w || !x->one || (!w->one && w->axis != 0)) return nullptr;
  Value* scale = graph.add("mul", {x->scale, w->scale});
  return graph.add("quantized_conv", {x->x, w->x, x->zero, w->zero, scale, node.input(2)},
                   window_of(node), node.name);
}

// Where an op's result has its channels, and what it calls the numbers of its activation.
struct Product {
  const Node* node = nullptr;
  bool conv = false;

  size_t axis() const { return conv ? 1 : node->output()->shape().size() - 1; }
  const char* alpha() const { return conv ? "alpha" : "act_alpha"; }
  const char* beta() const { return conv ? "beta" : "act_beta"; }
  // A number for each channel that broadcasts along the others, as a vector; null: it is not that.
  Value* vector(Graph& graph, Value* value) const {
    if (!value->type.ranked) return nullptr;
    const Dims &shape = value->shape(), &y = node->output()->shape();
    const size_t place = axis();
    if (shape.size() > y.size() || shape.size() < y.size() - place) return nullptr;
    const size_t at = place - (y.size() - shape.size());
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != at && !shape[i].is(1)) return nullptr;
    if (!(shape[at] == y[place])) return nullptr;
    return shape.size() == 1 ? value : reshaped(graph, value, {shape[at]}, value->name);
  }
};

// The one that makes `value` for one reader alone.
std::optional<Product> product_of(const Graph& graph, const Value* value, const char* matmul,
                                  const char* conv) {
  if (!value || !single_use(graph, value)) return std::nullopt;
  const Node* node = made_by(value, {matmul, conv});
  if (!node || !node->output()->type.ranked || node->output()->shape().size() < 2)
    return std::nullopt;
  return Product{node, node->is(conv)};
}

// Exact sums, perhaps with integers added to each channel.
struct Sums {
  Product product;
  Value* bias = nullptr;
};
std::optional<Sums> sums_of(Graph& graph, const Value* value) {
  if (auto product = product_of(graph, value, "matmul_integer", "conv_integer"))
    return Sums{*product};
  const Node* add = value && single_use(graph, value) ? made_by(value, "add") : nullptr;
  if (!add || value->dtype() != DType::kI32) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    auto product = product_of(graph, add->input(i), "matmul_integer", "conv_integer");
    if (!product || !same_shape(add->input(i), value)) continue;
    if (Value* bias = product->vector(graph, add->input(1 - i))) return Sums{*product, bias};
  }
  return std::nullopt;
}

// `scale` is one number, or a vector of the channels.
Value* scaled_product(Graph& graph, const Sums& sums, Value* scale, Value* zero, DType dtype,
                      const std::string& name) {
  const Node& node = *sums.product.node;
  Value* bias = nullptr;
  if (sums.bias) {
    bias = graph.add("mul", {as_floats(graph, sums.bias), scale});
  }
  NamedAttrs attrs = sums.product.conv ? window_of(node) : NamedAttrs();
  attrs.emplace_back("dtype", dtype);
  return graph.add(sums.product.conv ? "quantized_conv" : "quantized_matmul",
                   {node.input(0), node.input(1), node.input(2), node.input(3), scale, bias, zero},
                   attrs, name);
}

// cast(sums) * scale
Value* sums_as_numbers(Graph& graph, const Node& mul) {
  for (size_t i = 0; i < 2; ++i) {
    const Value* from = mul.input(i);
    const Node* cast = single_use(graph, from) ? made_by(from, "cast") : nullptr;
    if (!cast || from->dtype() != DType::kF32 || !same_shape(from, mul.output())) continue;
    const auto sums = sums_of(graph, cast->input(0));
    Value* scale = mul.input(1 - i);
    if (!sums || scale->dtype() != DType::kF32 || !scale->type.ranked) continue;
    if (!is_vector(scale) || !is_scalar(scale)) scale = sums->product.vector(graph, scale);
    if (scale) return scaled_product(graph, *sums, scale, nullptr, DType::kF32, mul.name);
  }
  return nullptr;
}

Value* sums_as_bytes(Graph& graph, const Node& node) {
  const auto sums = sums_of(graph, node.input(0));
  Value* scale = node.input(1);
  if (!sums || !is_vector(scale)) return nullptr;
  const auto rank = static_cast<int64_t>(node.output()->shape().size());
  const int64_t axis = node.attrs.i("axis") + (node.attrs.i("axis") < 0 ? rank : 0);
  if (!is_scalar(scale) && axis != static_cast<int64_t>(sums->product.axis())) return nullptr;
  Value* zero = node.input(2);
  if (zero && (!is_scalar(zero) || zero->dtype() != node.output()->dtype())) return nullptr;
  return scaled_product(graph, *sums, scale, zero, node.output()->dtype(), node.name);
}

Value* with_bias(Graph& graph, const Product& product, const Node& add) {
  const Node& node = *product.node;
  if (node.input(5) || !same_shape(node.output(), add.output())) return nullptr;
  Value* other = add.input(0) == node.output() ? add.input(1) : add.input(0);
  if (other == node.output() || other->dtype() != DType::kF32) return nullptr;
  Value* bias = product.vector(graph, other);
  if (!bias) return nullptr;
  std::vector<Value*> inputs(node.inputs);
  inputs.resize(6);
  inputs[5] = bias;
  return graph.add(node.op->name, inputs, node.attrs.named(), node.name);
}

// The numbers in steps of the result's scale.
Value* as_bytes(Graph& graph, const Product& product, const Node& quantize) {
  const DType dtype = quantize.output()->dtype();
  if (!is_byte(dtype)) return nullptr;
  const auto steps = steps_of(graph, quantize, dtype);
  if (!steps || !steps->one) return nullptr;
  const Node& node = *product.node;
  Attrs attrs = node.attrs;
  attrs.set({"dtype", dtype});
  if (attrs.s("activation") == "clamp") {
    const auto step = numbers_of(steps->scale, 1);
    if (!step || !((*step)[0] > 0)) return nullptr;
    for (const char* bound : {product.alpha(), product.beta()})
      attrs.set({bound, attrs.f(bound) / (*step)[0]});
  }
  const auto divided = [&](Value* value) -> Value* {
    return value ? graph.add("div", {value, steps->scale}) : nullptr;
  };
  return graph.add(node.op->name,
                   {node.input(0), node.input(1), node.input(2), node.input(3),
                    divided(node.input(4)), divided(node.input(5)), steps->zero},
                   attrs.named(), quantize.name);
}

Value* product_with_next(Graph& graph, const Node& next) {
  for (const Value* input : next.inputs) {
    const auto product = product_of(graph, input, "quantized_matmul", "quantized_conv");
    if (!product || input->dtype() != DType::kF32) continue;
    if (next.is("quantize")) return as_bytes(graph, *product, next);
    if (product->node->attrs.s("activation") != "none") return nullptr;
    if (next.is("add")) return with_bias(graph, *product, next);
    const auto activation = as_activation(next);
    if (activation && (activation->name == "relu" || activation->name == "clamp"))
      return with_activation(graph, *product->node, *activation, product->alpha(), product->beta());
  }
  return nullptr;
}

}  // namespace

PASS(quantized_products, 150, "products of quantized numbers stay in integers") {
  return fuse_each(graph, context, [](Graph& graph, Node& node) -> Value* {
    if (node.is("matmul")) return matmul_of_dequantized(graph, node);
    if (node.is("conv")) return conv_of_dequantized(graph, node);
    if (node.is("requantize")) return sums_as_bytes(graph, node);
    if (node.is("mul"))
      if (Value* value = sums_as_numbers(graph, node)) return value;
    return product_with_next(graph, node);
  });
}

}  // namespace anymps
