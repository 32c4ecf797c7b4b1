// SPDX-License-Identifier: Apache-2.0
// Gradients of recurrent layers: separate ops, which walk back over the steps.
#include "ops/gradient_parts.h"

namespace anymps {

namespace {

// `layer` inputs, of which those in `floats` have gradients, in the order of the outputs.
void recurrent(GradientContext& ctx, const char* op, size_t layer, size_t outputs,
               const std::vector<size_t>& floats) {
  std::vector<Term> inputs;
  for (size_t i = 0; i < layer; ++i) inputs.push_back(ctx.x(i));
  for (size_t i = 0; i < outputs; ++i)
    inputs.push_back(i < ctx.output_count() ? ctx.dy(i) : Term());
  const bool reserve = ctx.output_count() > outputs;
  if (reserve && ctx.dy(outputs)) ctx.refuse("the reserve is for the gradient alone");
  inputs.push_back(reserve ? ctx.y(outputs) : Term());
  NamedAttrs attrs;
  for (const NamedAttr& attr : ctx.attrs().named()) {  // those that are not the default
    if (get_op(op).attr_index(attr.name) < 0) ctx.refuse("attribute '{}' is set", attr.name);
    attrs.push_back(attr);
  }
  const std::vector<Term> results = ctx.add_all(op, inputs, attrs, floats.size());
  for (size_t i = 0; i < floats.size(); ++i)
    if (ctx.has(floats[i])) ctx.set(floats[i], results[i]);
}

}  // namespace

GRADIENT(lstm) { recurrent(ctx, "lstm_gradient", 8, 3, {0, 1, 2, 3, 5, 6, 7}); }
GRADIENT(gru) { recurrent(ctx, "gru_gradient", 6, 2, {0, 1, 2, 3, 5}); }
GRADIENT(rnn) { recurrent(ctx, "rnn_gradient", 6, 2, {0, 1, 2, 3, 5}); }

NO_GRADIENT(lstm_gradient, "recurrent layers have no second gradient");
NO_GRADIENT(gru_gradient, "recurrent layers have no second gradient");
NO_GRADIENT(rnn_gradient, "recurrent layers have no second gradient");

}  // namespace anymps
