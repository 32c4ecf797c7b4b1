// SPDX-License-Identifier: Apache-2.0
// Numbers on their way from bytes and back, beside elementwise ops, are said in elementwise ops, so
// that all become one pass over the elements:
//   quantize(add(dequantize(x), dequantize(y)))  ->  cast(add(rint(div(add(mul(…), mul(…)), s)),
//   z))
// Runs after quantized_products, which takes what stands around products.
#include "passes/fuse.h"
#include "passes/quantized_steps.h"

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

}  // namespace

PASS(quantized_elementwise, 160, "numbers are quantized by the elementwise ops beside them") {
  return fuse_each(graph, context, steps_beside_elementwise);
}

}  // namespace anymps
