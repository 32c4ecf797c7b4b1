// SPDX-License-Identifier: Apache-2.0
// Numbers on their way from bytes and back, beside elementwise ops, are said in elementwise ops, so
// that all become one pass over the elements:
//   quantize(add(dequantize(x), dequantize(y)))  ->  cast(add(rint(div(add(mul(…), mul(…)), s)),
//   z))
// What only moves numbers, or takes the largest, moves bytes where they come out in the same steps:
//   quantize(max_pool(dequantize(x)))  ->  max_pool(x)
// Runs after quantized_products, which takes what stands around products.
#include "passes/fuse.h"
#include "passes/quantized/quantized_steps.h"

namespace anymps {

namespace {

// Numbers that `node` reads or gives in one step size, as elementwise ops say it; what they give is
// the same in each bit. Null: they are not bytes, or have several scales.
Value* quantize_by_steps(Graph& graph, const Node& node) {
  const DType dtype = node.output()->dtype();
  if (!is_byte(dtype) || node.input(0)->dtype() != DType::kF32) return nullptr;
  const auto q = steps_of(graph, node, dtype);
  if (!q || !q->one || q->scale->shape().size() > q->x->shape().size()) return nullptr;
  Value* y = graph.add("rint", {graph.add("div", {q->x, q->scale})});
  if (q->zero) y = graph.add("add", {y, as_floats(graph, q->zero)});
  return graph.add("cast", {y}, {{"dtype", dtype}}, node.name);
}

Value* dequantize_by_steps(Graph& graph, const Node& node) {
  const auto q = dequantized(graph, node.output());
  if (!q || !q->one || q->scale->shape().size() > q->x->shape().size()) return nullptr;
  Value* y = as_floats(graph, q->x);
  if (q->zero) y = graph.add("sub", {y, as_floats(graph, q->zero)});
  return graph.add("mul", {y, q->scale}, {}, node.name);
}

// Beside an elementwise op they become part of its pass over the elements.
bool is_elementwise_on_floats(const Node* node) {
  return node && node->op->is(kElementwise) && node->output()->dtype() == DType::kF32 &&
         node->output()->type.ranked;
}

Value* steps_beside_elementwise(Graph& graph, const Node& node) {
  const bool quantizes = node.is("quantize");
  if (!quantizes && !node.is("dequantize")) return nullptr;
  const Value* x = node.input(0);
  if (!x->type.ranked || x->is_constant()) return nullptr;
  if (quantizes)
    return single_use(graph, x) && is_elementwise_on_floats(x->producer)
               ? quantize_by_steps(graph, node)
               : nullptr;
  const std::vector<Node*>& users = node.output()->users;
  const bool all = !users.empty() && !graph.is_output(node.output()) &&
                   std::ranges::all_of(users, is_elementwise_on_floats);
  return all ? dequantize_by_steps(graph, node) : nullptr;
}

// Whether a byte that is dequantized by one and quantized by the other is the same byte again, and
// a larger one a larger number.
bool same_steps(const Quantized& from, const Quantized& to) {
  if (!from.one || !to.one) return false;
  const auto step = numbers_of(from.scale, 1), other = numbers_of(to.scale, 1);
  if (!step || !other || *step != *other) return false;
  // Where numbers of f32 neither end nor lose digits.
  if (!((*step)[0] > 1e-30 && (*step)[0] < 1e30)) return false;
  const std::vector<double> none{0};
  const auto zero = from.zero ? numbers_of(from.zero, 1) : none;
  return zero && zero == (to.zero ? numbers_of(to.zero, 1) : none);
}

Value* moved_as_bytes(Graph& graph, const Node& node) {
  if (!node.is("quantize")) return nullptr;
  const Value* y = node.input(0);
  const Node* move = y->producer;
  if (!move || !single_use(graph, y) || move->outputs.size() != 1 ||
      !(move->is("max_pool") || move->op->is(kViewLike)))
    return nullptr;
  const DType dtype = node.output()->dtype();
  if (!made_by(move->input(0), "dequantize") || !is_byte(dtype)) return nullptr;
  const auto from = dequantized(graph, move->input(0)), to = steps_of(graph, node, dtype);
  if (!from || !to || from->x->dtype() != dtype || !same_steps(*from, *to)) return nullptr;
  std::vector<Value*> inputs(move->inputs);
  inputs[0] = from->x;
  return graph.add(move->op->name, inputs, move->attrs.named(), node.name);
}

}  // namespace

PASS(quantized_elementwise, 160, "numbers are quantized by the elementwise ops beside them") {
  return fuse_each(graph, context, [](Graph& graph, Node& node) -> Value* {
    if (Value* moved = moved_as_bytes(graph, node)) return moved;
    return steps_beside_elementwise(graph, node);
  });
}

}  // namespace anymps
