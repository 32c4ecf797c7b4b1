// SPDX-License-Identifier: Apache-2.0
// What follows a convolution element by element becomes part of it:
//   relu(add(conv(x, w, b), r))  ->  conv(x, w, b, r) {activation="relu"}
// Constant biases are already there: fold_batch_norm puts them in.
#include "passes/epilogue.h"
#include "passes/fuse.h"

namespace anymps {

namespace {

// `next` is the only reader of the convolution.
Value* conv_with_next(Graph& graph, const Node& conv, const Node& next) {
  if (conv.attrs.s("activation") != "none") return nullptr;
  if (auto activation = as_activation(next))
    return with_activation(graph, conv, *activation, "alpha", "beta");
  Value* residual = residual_of(next, conv.output());
  if (!residual || !conv.is("conv") || conv.input(3)) return nullptr;
  return graph.add("conv", {conv.input(0), conv.input(1), conv.input(2), residual},
                   conv.attrs.named(), conv.name);
}

}  // namespace

PASS(fuse_conv, 500, "residual and activation become part of a convolution") {
  return fuse_each(graph, context, [](Graph& graph, Node& next) -> Value* {
    for (Value* input : next.inputs) {
      Node* conv = input ? made_by(input, {"conv", "conv_transpose"}) : nullptr;
      if (!conv || !is_float(input->dtype()) || !single_use(graph, input)) continue;
      if (Value* fused = conv_with_next(graph, *conv, next)) return fused;
    }
    return nullptr;
  });
}

}  // namespace anymps
