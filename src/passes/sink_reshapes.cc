// SPDX-License-Identifier: Apache-2.0
// Arithmetic behind a reshape of a product moves before it, where it can become part of the
// product:
//   add(reshape(matmul(a, w)), bias)  ->  reshape(add(matmul(a, w), bias))
// Converters flatten the leading axes for a product, or cut its last axis into heads, and add the
// bias only then.
#include "passes/epilogue.h"
#include "passes/fuse.h"

namespace anymps {

namespace {

// A constant of the trailing axes into which a reshape cuts the last axis of x, as a vector along
// that axis.
Value* along_last_axis(Graph& graph, Value* constant, const Dims& y, const Dims& x) {
  if (!constant->is_constant() || !constant->type.ranked || x.empty() || !x.back().known())
    return nullptr;
  const Dims& shape = constant->shape();
  size_t first = 0;
  while (first < shape.size() && shape[first].is(1)) ++first;
  if (first == shape.size() || shape.size() > y.size()) return nullptr;
  int64_t count = 1;
  for (size_t i = first; i < shape.size(); ++i) {
    const Dim& extent = y[y.size() - shape.size() + i];
    if (!extent.known() || !(shape[i] == extent)) return nullptr;
    count *= extent.value();
  }
  return x.back().is(count) ? reshaped(graph, constant, {x.back()}, constant->name) : nullptr;
}

// The other operand for x instead of its reshape y.
Value* operand_for(Graph& graph, const Node& node, Value* other, const Value* y, const Value* x) {
  if (const auto number = scalar_of(other)) return graph.scalar(other->dtype(), *number);
  if (Value* vector = along_last_axis(graph, other, y->shape(), x->shape())) return vector;
  if (!node.is("add") || other->is_constant() || !same_shape(other, y)) return nullptr;
  return reshaped(graph, other, x->shape(), other->name + ".flat");
}

Value* before_reshape(Graph& graph, Node& node) {
  if (node.outputs.size() != 1 || !is_float(node.output()->dtype())) return nullptr;
  const bool sums = node.is("add") || node.is("sub") || node.is("mul") ||
                    (node.is("div") && node.attrs.s("rounding") == "none");
  const bool activates = node.inputs.size() == 1 && as_activation(node);
  if (!sums && !activates) return nullptr;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    Value* y = node.input(i);
    Node* reshape = made_by(y, {"reshape", "squeeze", "unsqueeze", "flatten"});
    if (!reshape || !single_use(graph, y) || !same_shape(y, node.output())) continue;
    Value* x = reshape->input(0);
    if (!made_by(x, "matmul") || !single_use(graph, x) || rank_of(x) < 2) continue;
    std::vector<Value*> inputs(node.inputs.size(), x);
    if (sums) inputs[1 - i] = operand_for(graph, node, node.input(1 - i), y, x);
    if (sums && !inputs[1 - i]) continue;
    std::vector<Value*> shape = reshape->inputs;
    shape[0] = graph.add(node.op->name, inputs, node.attrs.named(), node.name + ".flat");
    return graph.add(reshape->op->name, shape, reshape->attrs.named(), node.name);
  }
  return nullptr;
}

}  // namespace

PASS(sink_reshapes, 290, "arithmetic behind a reshape of a product moves before it") {
  return fuse_each(graph, context, before_reshape);
}

}  // namespace anymps
