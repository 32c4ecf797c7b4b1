// SPDX-License-Identifier: Apache-2.0
// Recurrent layers over a whole sequence, with the tensor layouts and gate orders of ONNX.
#include "ops/layers/recurrent.h"

#include "ops/expect.h"

namespace anymps {

int64_t recurrent_directions(const Attrs& attrs) {
  return attrs.s("direction") == "bidirectional" ? 2 : 1;
}

RecurrentExtents recurrent_extents(const Attrs& attrs, const Shape& x, int64_t gates) {
  const bool batch_first = attrs.i("layout") == 1;
  RecurrentExtents extents{.gates = gates,
                           .hidden = attrs.i("hidden_size"),
                           .steps = x[batch_first ? 1 : 0],
                           .batch = x[batch_first ? 0 : 1],
                           .width = x[2],
                           .directions = recurrent_directions(attrs),
                           .batch_first = batch_first,
                           .reverse = attrs.s("direction") == "reverse"};
  if (gates > 1 && attrs.s("gate_order") == "torch") {
    constexpr int64_t kLstm[] = {0, 3, 1, 2}, kGru[] = {1, 0, 2};
    std::copy_n(gates == 4 ? kLstm : kGru, gates, extents.order);
  }
  return extents;
}

RecurrentParts recurrent_parts(const Attrs& attrs, int64_t gates) {
  return {gates, attrs.f("clip") > 0 || !attrs.s("activations").empty()};
}

RecurrentShapes recurrent_shapes(InferContext& ctx, int64_t gates) {
  if (ctx.type(0).ranked) expect_rank(ctx, 0, 3, 3);
  const int64_t hidden = ctx.attrs.i("hidden_size"), layout = ctx.attrs.i("layout");
  ctx.check(hidden >= 1, "hidden_size is {}, must be at least 1", hidden);
  ctx.check(layout == 0 || layout == 1, "layout is {}, must be 0 or 1", layout);
  ctx.check(ctx.attrs.f("clip") >= 0, "clip is {}, must not be negative", ctx.attrs.f("clip"));
  const Dim directions = recurrent_directions(ctx.attrs);
  const Dims x = shape_of_rank(ctx, 0, 3);
  const Dim &steps = x[layout == 0 ? 0 : 1], &batch = x[layout == 0 ? 1 : 0];
  const Dim rows = Dim(gates) * hidden;
  RecurrentShapes shapes;
  shapes.w = {directions, rows, x[2]};
  shapes.r = {directions, rows, hidden};
  shapes.b = {directions, rows * 2};
  shapes.lengths = {batch};
  shapes.peephole = {directions, Dim(3) * hidden};
  shapes.state = layout == 0 ? Dims{directions, batch, hidden} : Dims{batch, directions, hidden};
  shapes.y =
      layout == 0 ? Dims{steps, directions, batch, hidden} : Dims{batch, steps, directions, hidden};
  shapes.reserve = {x[0], x[1], directions,
                    Dim(recurrent_parts(ctx.attrs, gates).count()) * hidden};
  expect_shape(ctx, 1, shapes.w);
  expect_shape(ctx, 2, shapes.r);
  expect_shape(ctx, 3, shapes.b);
  expect_shape(ctx, 4, shapes.lengths);
  return shapes;
}

std::vector<std::string> usual_activations(const Attrs& attrs, int64_t gates) {
  if (gates == 4) return {"sigmoid", "tanh", "tanh"};
  if (gates == 3) return {"sigmoid", "tanh"};
  return {attrs.s("activation")};
}

std::vector<CellActivation> cell_activations(const Attrs& attrs, int64_t directions,
                                             const std::vector<std::string>& usual) {
  const std::string& op = attrs.op()->name;
  std::vector<std::string> names(1);
  for (const char c : attrs.s("activations")) {
    if (c == ',')
      names.emplace_back();
    else
      names.back() += c;
  }
  if (attrs.s("activations").empty()) {
    names.clear();
    for (int64_t i = 0; i < directions; ++i) names.insert(names.end(), usual.begin(), usual.end());
  }
  require(names.size() == usual.size() * static_cast<size_t>(directions),
          "[{}] {} activations are given, must be {}", op, names.size(),
          usual.size() * static_cast<size_t>(directions));
  const std::vector<double>&alpha = attrs.floats("activation_alpha"),
        &beta = attrs.floats("activation_beta");
  std::vector<CellActivation> result;
  for (size_t i = 0; i < names.size(); ++i) {
    result.push_back(CellActivation::named(names[i], op));
    if (i < alpha.size()) result.back().alpha = alpha[i];
    if (i < beta.size()) result.back().beta = beta[i];
  }
  return result;
}

OpWriter& layer_size(OpWriter& op) {
  return op.required("hidden_size", AttrKind::kInt).attr("direction", "forward", kDirections);
}

OpWriter& layer_steps(OpWriter& op) { return op.attr("layout", 0).attr("clip", 0.0, "0: none"); }

OpWriter& activation_lists(OpWriter& op) {
  return op
      .attr("activations", "", {},
            "of the gates, the candidate and, of lstm, the cell, for each direction: ONNX's names "
            "in lower case, separated by commas; empty: the usual ones")
      .attr("activation_alpha", std::vector<double>{}, "one for each of them")
      .attr("activation_beta", std::vector<double>{}, "one for each of them");
}

OpWriter& gate_order(OpWriter& op) {
  return op.attr(
      "gate_order", "onnx", {"onnx", "torch"},
      "of the rows of w, r and b: lstm i, o, f, c or i, f, c, o; gru z, r, h or r, z, h");
}

namespace {

void infer_recurrent(InferContext& ctx, int64_t gates) {
  const RecurrentShapes shapes = recurrent_shapes(ctx, gates);
  cell_activations(ctx.attrs, recurrent_directions(ctx.attrs), usual_activations(ctx.attrs, gates));
  expect_shape(ctx, 5, shapes.state);
  if (ctx.op.name == "lstm") {
    expect_shape(ctx, 6, shapes.state);
    expect_shape(ctx, 7, shapes.peephole);
  }
  ctx.set(0, shapes.y);
  const size_t states = ctx.op.main_outputs();
  for (size_t i = 1; i < std::min(ctx.output_count(), states); ++i) ctx.set(i, shapes.state);
  if (ctx.output_count() > states) ctx.set(states, reserve_dtype(ctx.dtype(0)), shapes.reserve);
}

InferFn infer_gates(int64_t gates) {
  return [gates](InferContext& ctx) { infer_recurrent(ctx, gates); };
}

void infer_lstm(InferContext& ctx) {
  infer_recurrent(ctx, 4);
  if (!ctx.attrs.b("dynamic_bytes")) return;
  ctx.check(ctx.dtype(0) == DType::kF32, "dynamic_bytes: x is {}, must be f32", name(ctx.dtype(0)));
  ctx.check(ctx.output_count() <= ctx.op.main_outputs(), "dynamic_bytes has no reserve");
}

double recurrent_cost(const Attrs& attrs, const std::vector<Shape>& in, const std::vector<Shape>&) {
  const Shape &x = in[0], &w = in[1];
  return 2.0 * static_cast<double>(x[0]) * static_cast<double>(x[1]) * static_cast<double>(w[0]) *
         static_cast<double>(w[1]) * static_cast<double>(w[2] + attrs.i("hidden_size"));
}

constexpr Tolerance kRecurrentTolerance{.f32 = 2e-5, .f16 = 5e-3, .bf16 = 4e-2, .f64 = 1e-10};
const char* const kLayerStateDoc =
    "[directions, batch, hidden], or [batch, directions, hidden]; absent: 0";

// Of a layer whose weights have so many rows a hidden element.
auto layer_inputs(int64_t gates) {
  return [gates](OpWriter& op) -> OpWriter& {
    const std::string rows = gates == 1 ? "hidden" : fmt::format("{}*hidden", gates);
    return op.input("x", kFloat, "T", kSequenceDoc)
        .input("w", kFloat, "T", fmt::format("[directions, {}, input]", rows))
        .input("r", kFloat, "T", fmt::format("[directions, {}, hidden]", rows))
        .optional("b", kFloat, "T", fmt::format("[directions, {}*hidden]", 2 * gates))
        .optional("seq_lens", kIndex, "I", kLengthsDoc)
        .optional("h0", kFloat, "T", kLayerStateDoc);
  };
}

OpWriter& layer_outputs(OpWriter& op) {
  return op
      .output("y", "T", "[steps, directions, batch, hidden], or [batch, steps, directions, hidden]")
      .output("y_h", "T", "optional");
}

OpWriter& layer_reserve(OpWriter& op) { return op.by_product("reserve", "f32", kReserveDoc); }

OpWriter& recurrent_tests(OpWriter& op) {
  return op.cost(recurrent_cost).domain(-1, 1).tolerance(kRecurrentTolerance);
}

}  // namespace

OP(lstm)
    .doc(
        "Long short-term memory over a sequence. b holds the biases of w, then of r; peephole "
        "holds "
        "those of i, o, f. Past its length a sequence gives 0, and y_h and y_c are the states "
        "after "
        "its last step. Clip bounds what activations see. The reserve, if asked for, spares the "
        "gradient another run of the layer.")
    .formula(
        "i,f = sigmoid(x w + h r + p*c + b); c = f*c + i*tanh(x w + h r + b); "
        "o = sigmoid(x w + h r + p*c + b); h = o*tanh(c)")
    .mps(
        "LSTMWithSourceTensor:recurrentWeight:inputWeight:bias:initState:initCell:mask:peephole:"
        "descriptor:name:")
    .mps(
        "LSTMWithSourceTensor:recurrentWeight:inputWeight:bias:initState:initCell:descriptor:name:")
    .mps("LSTMWithSourceTensor:recurrentWeight:initState:initCell:descriptor:name:")
    .with(layer_inputs(4))
    .optional("c0", kFloat, "T", kLayerStateDoc)
    .optional("peephole", kFloat, "T", "[directions, 3*hidden]")
    .with(layer_outputs)
    .output("y_c", "T", "optional")
    .with(layer_reserve)
    .with(layer_size)
    .with(layer_steps)
    .with(activation_lists)
    .attr("input_forget", false, "the forget gate is 1 - the input gate")
    .with(gate_order)
    .attr("dynamic_bytes", false,
          "what w and r multiply is rounded to 8 bits first, as dynamic_quantize does it: x (all "
          "that lies within the lengths) as a whole, the state of each sequence before each step")
    .infer(infer_lstm)
    .with(recurrent_tests)
    .sample({"plain", {{5, 2, 3}, {1, 16, 3}, {1, 16, 4}}, {{"hidden_size", 4}}})
    .sample({"bias", {{5, 2, 3}, {1, 16, 3}, {1, 16, 4}, {1, 32}}, {{"hidden_size", 4}}})
    .sample({"states",
             {{4, 2, 3}, {1, 16, 3}, {1, 16, 4}, {1, 32}, {-1}, {1, 2, 4}, {1, 2, 4}},
             {{"hidden_size", 4}}})
    .sample({"peephole",
             {{4, 2, 3}, {1, 16, 3}, {1, 16, 4}, {1, 32}, {-1}, {1, 2, 4}, {1, 2, 4}, {1, 12}},
             {{"hidden_size", 4}}})
    .sample({"reverse lengths",
             {{5, 3, 2}, {1, 12, 2}, {1, 12, 3}, {1, 24}, {3}},
             {{"hidden_size", 3}, {"direction", "reverse"}},
             {{4, {5, 2, 1}}}})
    .sample({"bidirectional",
             {{5, 2, 3}, {2, 16, 3}, {2, 16, 4}, {2, 32}},
             {{"hidden_size", 4}, {"direction", "bidirectional"}}})
    .sample({"bidirectional lengths batch first",
             {{2, 5, 3}, {2, 16, 3}, {2, 16, 4}, {2, 32}, {2}, {2, 2, 4}, {2, 2, 4}},
             {{"hidden_size", 4}, {"direction", "bidirectional"}, {"layout", 1}},
             {{4, {3, 5}}}})
    .sample({"clip",
             {{4, 2, 3}, {1, 16, 3}, {1, 16, 4}, {1, 32}},
             {{"hidden_size", 4}, {"clip", 0.5}}})
    .sample({"activations",
             {{4, 2, 3}, {1, 16, 3}, {1, 16, 4}, {1, 32}, {-1}, {1, 2, 4}, {1, 2, 4}, {1, 12}},
             {{"hidden_size", 4},
              {"activations", "hardsigmoid,scaledtanh,softsign"},
              {"activation_alpha", std::vector<double>{0.3, 0.8}},
              {"activation_beta", std::vector<double>{0.5, 1.2}}}})
    .sample({"input_forget",
             {{4, 2, 3}, {2, 16, 3}, {2, 16, 4}, {2, 32}, {2}, {2, 2, 4}, {2, 2, 4}, {2, 12}},
             {{"hidden_size", 4},
              {"direction", "bidirectional"},
              {"input_forget", true},
              {"activations", "sigmoid,elu,affine,sigmoid,tanh,softplus"},
              {"activation_alpha", std::vector<double>{1, 0.7, 0.9}},
              {"activation_beta", std::vector<double>{0, 0, 0.1}}},
             {{4, {4, 2}}}})
    .sample({"torch's order",
             {{4, 3, 2}, {2, 12, 2}, {2, 12, 3}, {2, 24}, {3}, {2, 3, 3}, {2, 3, 3}},
             {{"hidden_size", 3}, {"direction", "bidirectional"}, {"gate_order", "torch"}},
             {{4, {2, 4, 3}}}})
    .sample({"one step", {{1, 1, 8}, {1, 64, 8}, {1, 64, 16}, {1, 128}}, {{"hidden_size", 16}}})
    .sample({"wide", {{6, 2, 24}, {1, 128, 24}, {1, 128, 32}, {1, 256}}, {{"hidden_size", 32}}})
    .sample({"empty batch", {{3, 0, 3}, {1, 16, 3}, {1, 16, 4}}, {{"hidden_size", 4}}});

OP(gru)
    .doc(
        "Gated recurrent unit over a sequence. b holds the biases of w, then of r. With "
        "linear_before_reset the reset gate scales what r has made of the state, else the state "
        "itself. Past its length a sequence gives 0. The reserve is as of lstm.")
    .formula("z,r = sigmoid(x w + h r + b); n = tanh(x w + (r*h) r + b); h = (1-z)*n + z*h")
    .mps(
        "GRUWithSourceTensor:recurrentWeight:inputWeight:bias:initState:mask:secondaryBias:"
        "descriptor:name:")
    .mps("GRUWithSourceTensor:recurrentWeight:inputWeight:bias:initState:descriptor:name:")
    .mps("GRUWithSourceTensor:recurrentWeight:inputWeight:bias:descriptor:name:")
    .with(layer_inputs(3))
    .with(layer_outputs)
    .with(layer_reserve)
    .with(layer_size)
    .attr("linear_before_reset", false)
    .with(layer_steps)
    .with(activation_lists)
    .with(gate_order)
    .infer(infer_gates(3))
    .with(recurrent_tests)
    .sample({"plain", {{5, 2, 3}, {1, 12, 3}, {1, 12, 4}}, {{"hidden_size", 4}}})
    .sample({"bias and state",
             {{5, 2, 3}, {1, 12, 3}, {1, 12, 4}, {1, 24}, {-1}, {1, 2, 4}},
             {{"hidden_size", 4}}})
    .sample({"linear_before_reset",
             {{5, 2, 3}, {1, 12, 3}, {1, 12, 4}, {1, 24}, {-1}, {1, 2, 4}},
             {{"hidden_size", 4}, {"linear_before_reset", true}}})
    .sample({"reverse lengths",
             {{5, 3, 2}, {1, 9, 2}, {1, 9, 3}, {1, 18}, {3}},
             {{"hidden_size", 3}, {"direction", "reverse"}},
             {{4, {5, 2, 1}}}})
    .sample({"bidirectional batch first",
             {{2, 5, 3}, {2, 12, 3}, {2, 12, 4}, {2, 24}, {2}, {2, 2, 4}},
             {{"hidden_size", 4},
              {"direction", "bidirectional"},
              {"layout", 1},
              {"linear_before_reset", true}},
             {{4, {3, 5}}}})
    .sample({"clip",
             {{4, 2, 3}, {1, 12, 3}, {1, 12, 4}, {1, 24}},
             {{"hidden_size", 4}, {"clip", 0.5}}})
    .sample({"activations",
             {{4, 2, 3}, {2, 12, 3}, {2, 12, 4}, {2, 24}, {-1}, {2, 2, 4}},
             {{"hidden_size", 4},
              {"direction", "bidirectional"},
              {"activations", "softsign,leakyrelu,hardsigmoid,none"}}})
    .sample({"torch's order",
             {{4, 3, 2}, {2, 9, 2}, {2, 9, 3}, {2, 18}, {3}, {2, 3, 3}},
             {{"hidden_size", 3},
              {"direction", "bidirectional"},
              {"linear_before_reset", true},
              {"gate_order", "torch"}},
             {{4, {2, 4, 3}}}})
    .sample({"wide", {{6, 2, 24}, {1, 96, 24}, {1, 96, 32}, {1, 192}}, {{"hidden_size", 32}}})
    .sample({"empty batch", {{3, 0, 3}, {1, 12, 3}, {1, 12, 4}}, {{"hidden_size", 4}}});

OP(rnn)
    .doc(
        "Simple recurrent layer over a sequence. b holds the biases of w, then of r. Past its "
        "length a sequence gives 0. The reserve is as of lstm.")
    .formula("h = act(x w + h r + b)")
    .mps(
        "singleGateRNNWithSourceTensor:recurrentWeight:inputWeight:bias:initState:mask:descriptor:"
        "name:")
    .mps(
        "singleGateRNNWithSourceTensor:recurrentWeight:inputWeight:bias:initState:descriptor:name:")
    .mps("singleGateRNNWithSourceTensor:recurrentWeight:initState:descriptor:name:")
    .with(layer_inputs(1))
    .with(layer_outputs)
    .with(layer_reserve)
    .with(layer_size)
    .with(layer_steps)
    .attr("activation", "tanh", {"tanh", "relu", "sigmoid"})
    .with(activation_lists)
    .infer(infer_gates(1))
    .with(recurrent_tests)
    .sample({"plain", {{5, 2, 3}, {1, 4, 3}, {1, 4, 4}}, {{"hidden_size", 4}}})
    .sample({"bias and state",
             {{5, 2, 3}, {1, 4, 3}, {1, 4, 4}, {1, 8}, {-1}, {1, 2, 4}},
             {{"hidden_size", 4}}})
    .sample({"relu",
             {{5, 2, 3}, {1, 4, 3}, {1, 4, 4}, {1, 8}},
             {{"hidden_size", 4}, {"activation", "relu"}}})
    .sample({"reverse lengths",
             {{5, 3, 2}, {1, 3, 2}, {1, 3, 3}, {1, 6}, {3}},
             {{"hidden_size", 3}, {"direction", "reverse"}},
             {{4, {5, 2, 1}}}})
    .sample({"bidirectional batch first",
             {{2, 5, 3}, {2, 4, 3}, {2, 4, 4}, {2, 8}, {2}, {2, 2, 4}},
             {{"hidden_size", 4}, {"direction", "bidirectional"}, {"layout", 1}},
             {{4, {3, 5}}}})
    .sample({"clip",
             {{4, 2, 3}, {1, 4, 3}, {1, 4, 4}, {1, 8}},
             {{"hidden_size", 4}, {"clip", 0.3}}})
    .sample({"activations",
             {{4, 2, 3}, {2, 4, 3}, {2, 4, 4}, {2, 8}, {-1}, {2, 2, 4}},
             {{"hidden_size", 4},
              {"direction", "bidirectional"},
              {"activations", "thresholdedrelu,softplus"},
              {"activation_alpha", std::vector<double>{0.4}}}})
    .sample({"empty batch", {{3, 0, 3}, {1, 4, 3}, {1, 4, 4}}, {{"hidden_size", 4}}});

}  // namespace anymps
