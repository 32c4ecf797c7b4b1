// SPDX-License-Identifier: Apache-2.0
// What follows a matmul element by element becomes part of it:
//   gelu(add(mul(matmul(a, b), 0.125), bias))  ->  matmul(a, b, bias) {alpha=0.125,
//   activation="gelu"}
// and an add of a tensor of the result's shape becomes its residual.
#include "passes/epilogue.h"
#include "passes/fuse.h"

namespace anymps {

namespace {

Value* with_inputs(Graph& graph, const Node& matmul, Value* bias, Value* residual) {
  return graph.add("matmul", {matmul.input(0), matmul.input(1), bias, residual},
                   matmul.attrs.named(), matmul.name);
}

Value* scaled(Graph& graph, const Node& matmul, const Node& next) {
  if (!next.is("mul") && !next.is("div")) return nullptr;
  auto affine = as_affine(next);
  if (!affine || matmul.input(2) || matmul.input(3)) return nullptr;
  Attrs attrs = matmul.attrs;
  attrs.set({"alpha", attrs.f("alpha") * affine->scale});
  return graph.add("matmul", matmul.inputs, attrs.named(), matmul.name);
}

// A vector along the last axis, perhaps with ones before it.
Value* biased(Graph& graph, const Node& matmul, const Node& next) {
  const Value* y = matmul.output();
  if (!next.is("add") || matmul.input(2) || !same_shape(y, next.output())) return nullptr;
  if (rank_of(matmul.input(0)) < 2 || rank_of(matmul.input(1)) < 2) return nullptr;
  Value* bias = next.input(0) == y ? next.input(1) : next.input(0);
  if (bias == y || !bias->type.ranked || bias->shape().empty()) return nullptr;
  const Dims& shape = bias->shape();
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    if (!shape[i].is(1)) return nullptr;
  if (!(shape.back() == y->shape().back())) return nullptr;
  Value* vector = reshaped(graph, bias, {shape.back()}, bias->name);
  return vector ? with_inputs(graph, matmul, vector, matmul.input(3)) : nullptr;
}

Value* matmul_with_next(Graph& graph, const Node& matmul, const Node& next) {
  if (matmul.attrs.s("activation") != "none") return nullptr;
  if (auto activation = as_activation(next))
    return with_activation(graph, matmul, *activation, "act_alpha", "act_beta");
  if (Value* value = scaled(graph, matmul, next)) return value;
  if (Value* value = biased(graph, matmul, next)) return value;
  Value* residual = residual_of(next, matmul.output());
  if (!residual || matmul.input(3)) return nullptr;
  return with_inputs(graph, matmul, matmul.input(2), residual);
}

}  // namespace

PASS(fuse_matmul, 510, "scale, bias, residual and activation become part of a matmul") {
  return fuse_each(graph, context, [](Graph& graph, Node& next) -> Value* {
    for (Value* input : next.inputs) {
      Node* matmul = input ? made_by(input, "matmul") : nullptr;
      if (!matmul || !is_float(input->dtype()) || !single_use(graph, input)) continue;
      if (Value* fused = matmul_with_next(graph, *matmul, next)) return fused;
    }
    return nullptr;
  });
}

}  // namespace anymps
