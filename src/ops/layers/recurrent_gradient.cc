// SPDX-License-Identifier: Apache-2.0
// Gradients of recurrent layers to everything that goes into them, by a walk back over the steps.
// Inputs and attributes are those of the layer; then come the gradients of its outputs.
#include "ops/expect.h"
#include "ops/layers/recurrent.h"

namespace anymps {

namespace {

// Inputs: the layer's (count of them), one gradient for each of its outputs, and its reserve.
void infer_gradient(InferContext& ctx, int64_t gates, size_t count) {
  const RecurrentShapes shapes = recurrent_shapes(ctx, gates);
  cell_activations(ctx.attrs, recurrent_directions(ctx.attrs), usual_activations(ctx.attrs, gates));
  for (size_t i = 5; i < std::min<size_t>(count, 7); ++i) expect_shape(ctx, i, shapes.state);
  if (count == 8) expect_shape(ctx, 7, shapes.peephole);
  expect_shape(ctx, count, shapes.y);
  const size_t reserve = ctx.op.inputs.size() - 1;
  for (size_t i = count + 1; i < reserve; ++i) expect_shape(ctx, i, shapes.state);
  expect_shape(ctx, reserve, shapes.reserve);
  const Dims outputs[] = {ctx.shape(0), shapes.w,     shapes.r,       shapes.b,
                          shapes.state, shapes.state, shapes.peephole};
  for (size_t i = 0; i < ctx.output_count(); ++i) ctx.set(i, outputs[i]);
}

// What the layers have in common: their inputs and attributes, and gradients of the inputs.
OpWriter& of_layer(OpWriter& op) {
  return op
      .formula("dx, dw, … = sum over steps, from the last to the first, of the gradients of a step")
      .input("x", kFloat, "T", kSequenceDoc)
      .input("w", kFloat)
      .input("r", kFloat)
      .optional("b", kFloat)
      .optional("seq_lens", kIndex, "I", kLengthsDoc)
      .optional("h0", kFloat)
      .outputs({"dx", "dw", "dr", "db", "dh0"})
      .with(layer_size)
      .with(layer_steps)
      .with(activation_lists)
      .domain(-1, 1)
      .tolerance({.f32 = 5e-5, .f16 = 1e-2, .bf16 = 8e-2, .f64 = 1e-10});
}
OpWriter& output_gradients(OpWriter& op) {
  return op.optional("dy", kFloat, "T", "of y; absent: 0")
      .optional("dy_h", kFloat, "T", "of y_h; absent: 0");
}

OpWriter& of_reserve(OpWriter& op) {
  return op.optional("reserve", bit(DType::kF32) | bit(DType::kF64), "L",
                     "the layer's; absent: the layer is run again");
}

const Shape kSkip = {-1};  // an optional input that is left out

}  // namespace

OP(lstm_gradient)
    .doc(
        "The gradients of lstm to all of its float inputs, from those of its "
        "outputs. db holds the two halves of b's gradient, which are equal.")
    .mps(
        "LSTMGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:"
        "cellOutputFwd:stateGradient:cellGradient:inputWeight:bias:initState:"
        "initCell:mask:peephole:descriptor:name:")
    .mps(
        "LSTMGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:"
        "cellOutputFwd:inputWeight:bias:initState:initCell:mask:descriptor:name:")
    .mps(
        "LSTMGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:"
        "cellOutputFwd:inputWeight:bias:initState:initCell:descriptor:name:")
    .mps(
        "LSTMGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:"
        "cellOutputFwd:descriptor:name:")
    .with(of_layer)
    .optional("c0", kFloat)
    .optional("peephole", kFloat)
    .with(output_gradients)
    .optional("dy_c", kFloat, "T", "of y_c; absent: 0")
    .with(of_reserve)
    .outputs({"dc0", "dpeephole"})
    .attr("input_forget", false, "the forget gate is 1 - the input gate")
    .with(gate_order)
    .infer([](InferContext& ctx) { infer_gradient(ctx, 4, 8); })
    .sample({"y alone",
             {{4, 2, 3}, {1, 16, 3}, {1, 16, 4}, kSkip, kSkip, kSkip, kSkip, kSkip, {4, 1, 2, 4}},
             {{"hidden_size", 4}}})
    .sample({"everything",
             {{4, 2, 3},
              {1, 16, 3},
              {1, 16, 4},
              {1, 32},
              {2},
              {1, 2, 4},
              {1, 2, 4},
              {1, 12},
              {4, 1, 2, 4},
              {1, 2, 4},
              {1, 2, 4}},
             {{"hidden_size", 4}},
             {{4, {4, 2}}}})
    .sample({"reserve",
             {{4, 3, 2},
              {2, 12, 2},
              {2, 12, 3},
              kSkip,
              {3},
              kSkip,
              kSkip,
              {2, 9},
              {4, 2, 3, 3},
              kSkip,
              {2, 3, 3},
              {4, 3, 2, 18}},
             {{"hidden_size", 3}, {"direction", "bidirectional"}},
             {{4, {2, 4, 3}}}})
    .sample({"reserve, clip",
             {{3, 2, 3},
              {1, 16, 3},
              {1, 16, 4},
              {1, 32},
              kSkip,
              kSkip,
              kSkip,
              kSkip,
              {3, 1, 2, 4},
              kSkip,
              kSkip,
              {3, 2, 1, 40}},
             {{"hidden_size", 4}, {"clip", 0.5}}})
    .sample({"torch's order",
             {{4, 3, 2},
              {2, 12, 2},
              {2, 12, 3},
              {2, 24},
              {3},
              {2, 3, 3},
              {2, 3, 3},
              kSkip,
              {4, 2, 3, 3},
              {2, 3, 3},
              {2, 3, 3}},
             {{"hidden_size", 3}, {"direction", "bidirectional"}, {"gate_order", "torch"}},
             {{4, {2, 4, 3}}}})
    .sample({"bidirectional batch first",
             {{2, 5, 3},
              {2, 16, 3},
              {2, 16, 4},
              {2, 32},
              {2},
              {2, 2, 4},
              {2, 2, 4},
              kSkip,
              {2, 5, 2, 4}},
             {{"hidden_size", 4}, {"direction", "bidirectional"}, {"layout", 1}},
             {{4, {3, 5}}}})
    .sample({"activations, input_forget",
             {{3, 2, 3},
              {1, 16, 3},
              {1, 16, 4},
              {1, 32},
              kSkip,
              {1, 2, 4},
              {1, 2, 4},
              {1, 12},
              {3, 1, 2, 4}},
             {{"hidden_size", 4},
              {"input_forget", true},
              {"activations", "hardsigmoid,softsign,scaledtanh"}}})
    .sample({"clip, states alone",
             {{3, 2, 3},
              {1, 16, 3},
              {1, 16, 4},
              {1, 32},
              kSkip,
              kSkip,
              kSkip,
              kSkip,
              kSkip,
              {1, 2, 4},
              {1, 2, 4}},
             {{"hidden_size", 4}, {"clip", 0.5}}})
    .sample({"empty batch",
             {{3, 0, 3}, {1, 16, 3}, {1, 16, 4}, kSkip, kSkip, kSkip, kSkip, kSkip, {3, 1, 0, 4}},
             {{"hidden_size", 4}}});

OP(gru_gradient)
    .doc(
        "The gradients of gru to all of its float inputs, from those of its "
        "outputs.")
    .mps(
        "GRUGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:"
        "outputFwd:stateGradient:inputWeight:bias:initState:mask:secondaryBias:"
        "descriptor:name:")
    .mps(
        "GRUGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:"
        "outputFwd:inputWeight:bias:initState:descriptor:name:")
    .mps(
        "GRUGradientsWithSourceTensor:recurrentWeight:sourceGradient:zState:"
        "outputFwd:inputWeight:bias:descriptor:name:")
    .with(of_layer)
    .with(output_gradients)
    .with(of_reserve)
    .attr("linear_before_reset", false)
    .with(gate_order)
    .infer([](InferContext& ctx) { infer_gradient(ctx, 3, 6); })
    .sample({"y alone",
             {{4, 2, 3}, {1, 12, 3}, {1, 12, 4}, kSkip, kSkip, kSkip, {4, 1, 2, 4}},
             {{"hidden_size", 4}}})
    .sample({"linear_before_reset",
             {{4, 2, 3}, {1, 12, 3}, {1, 12, 4}, {1, 24}, {2}, {1, 2, 4}, {4, 1, 2, 4}, {1, 2, 4}},
             {{"hidden_size", 4}, {"linear_before_reset", true}, {"direction", "reverse"}},
             {{4, {4, 2}}}})
    .sample(
        {"reserve",
         {{4, 3, 2}, {2, 9, 2}, {2, 9, 3}, kSkip, {3}, kSkip, {4, 2, 3, 3}, kSkip, {4, 3, 2, 15}},
         {{"hidden_size", 3}, {"direction", "bidirectional"}},
         {{4, {2, 4, 3}}}})
    .sample({"reserve, linear_before_reset",
             {{2, 4, 2},
              {1, 9, 2},
              {1, 9, 3},
              {1, 18},
              kSkip,
              kSkip,
              {2, 4, 1, 3},
              kSkip,
              {2, 4, 1, 15}},
             {{"hidden_size", 3},
              {"linear_before_reset", true},
              {"layout", 1},
              {"gate_order", "torch"}}})
    .sample({"torch's order",
             {{4, 3, 2}, {2, 9, 2}, {2, 9, 3}, {2, 18}, {3}, {2, 3, 3}, {4, 2, 3, 3}, {2, 3, 3}},
             {{"hidden_size", 3},
              {"direction", "bidirectional"},
              {"linear_before_reset", true},
              {"gate_order", "torch"}},
             {{4, {2, 4, 3}}}})
    .sample({"bidirectional batch first",
             {{2, 5, 3}, {2, 12, 3}, {2, 12, 4}, {2, 24}, kSkip, {2, 2, 4}, {2, 5, 2, 4}},
             {{"hidden_size", 4}, {"direction", "bidirectional"}, {"layout", 1}, {"clip", 0.5}}})
    .sample({"activations",
             {{3, 2, 3}, {1, 12, 3}, {1, 12, 4}, {1, 24}, kSkip, {1, 2, 4}, {3, 1, 2, 4}},
             {{"hidden_size", 4}, {"activations", "softsign,elu"}}})
    .sample({"empty batch",
             {{3, 0, 3}, {1, 12, 3}, {1, 12, 4}, kSkip, kSkip, kSkip, {3, 1, 0, 4}},
             {{"hidden_size", 4}}});

OP(rnn_gradient)
    .doc(
        "The gradients of rnn to all of its float inputs, from those of its "
        "outputs.")
    .mps(
        "singleGateRNNGradientsWithSourceTensor:recurrentWeight:sourceGradient:"
        "zState:stateGradient:inputWeight:bias:initState:mask:descriptor:name:")
    .mps(
        "singleGateRNNGradientsWithSourceTensor:recurrentWeight:sourceGradient:"
        "zState:inputWeight:bias:initState:mask:descriptor:name:")
    .mps(
        "singleGateRNNGradientsWithSourceTensor:recurrentWeight:sourceGradient:"
        "zState:inputWeight:bias:initState:descriptor:name:")
    .mps(
        "singleGateRNNGradientsWithSourceTensor:recurrentWeight:sourceGradient:"
        "zState:initState:descriptor:name:")
    .with(of_layer)
    .with(output_gradients)
    .with(of_reserve)
    .attr("activation", "tanh", {"tanh", "relu", "sigmoid"})
    .infer([](InferContext& ctx) { infer_gradient(ctx, 1, 6); })
    .sample({"y alone",
             {{4, 2, 3}, {1, 4, 3}, {1, 4, 4}, kSkip, kSkip, kSkip, {4, 1, 2, 4}},
             {{"hidden_size", 4}}})
    .sample({"relu with lengths",
             {{4, 2, 3}, {1, 4, 3}, {1, 4, 4}, {1, 8}, {2}, {1, 2, 4}, {4, 1, 2, 4}, {1, 2, 4}},
             {{"hidden_size", 4}, {"activation", "relu"}},
             {{4, {4, 2}}}})
    .sample(
        {"reserve",
         {{4, 3, 2}, {1, 3, 2}, {1, 3, 3}, kSkip, {3}, kSkip, {4, 1, 3, 3}, kSkip, {4, 3, 1, 6}},
         {{"hidden_size", 3}},
         {{4, {2, 4, 3}}}})
    .sample({"sigmoid clip",
             {{2, 5, 3}, {2, 4, 3}, {2, 4, 4}, {2, 8}, kSkip, {2, 2, 4}, {2, 5, 2, 4}},
             {{"hidden_size", 4},
              {"direction", "bidirectional"},
              {"layout", 1},
              {"clip", 0.5},
              {"activation", "sigmoid"}}})
    .sample({"activations",
             {{3, 2, 3}, {1, 4, 3}, {1, 4, 4}, {1, 8}, kSkip, {1, 2, 4}, {3, 1, 2, 4}},
             {{"hidden_size", 4}, {"activations", "softplus"}}})
    .sample({"empty batch",
             {{3, 0, 3}, {1, 4, 3}, {1, 4, 4}, kSkip, kSkip, kSkip, {3, 1, 0, 4}},
             {{"hidden_size", 4}}});

}  // namespace anymps
