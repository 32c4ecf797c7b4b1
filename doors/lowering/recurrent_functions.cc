// SPDX-License-Identifier: Apache-2.0
// Recurrent layers as frameworks have them: several, in one or both directions, with weights in
// lists and the gates in torch's order.
#include "lowering/evaluate.h"
#include "lowering/functions.h"

namespace anymps::lowering {

namespace {

// What rnn and its gradient begin with: x [steps, batch, input], states, weights, lengths, dropout,
// both, hidden, layers, mode, is_test. Weights come layer by layer and direction by direction,
// first those of input and state, then all biases. Where dropout works, `kept` says which elements
// stay between layers: [layers - 1, steps, batch, directions * hidden].
struct Layers {
  explicit Layers(Call& call)
      : c(call),
        states(call.part(1).values()),
        weights(call.part(2).values()),
        both(call.part(5).flag()),
        hidden(call.part(6).integer()),
        count(call.part(7).integer()),
        mode(call.part(8).text()),
        rate(call.part(4).number()) {}

  bool drops() const { return rate > 0 && count > 1 && !c.part(9).flag(); }
  Value drawn(const Value& state) const {
    Builder& b = c.builder;
    const Ints dims = b.dims(c.part(0).tensor());
    const Value numbers = b.op("random", std::vector<Value>{state},
                               {{"shape", Ints{count - 1, dims[0], dims[1], directions() * hidden}},
                                {"distribution", "uniform"},
                                {"dtype", AMPS_F32},
                                {"low", 0.0},
                                {"high", 1.0}},
                               2)[0];
    return b.op("greater_equal", {numbers, rate});
  }

  // The input of a layer but the first, without the elements that are dropped.
  Value without_dropped(const Value& x, const Value& kept, int64_t layer) const {
    Builder& b = c.builder;
    const Value all = b.op("slice", {kept},
                           {{"starts", Ints{layer - 1}}, {"ends", Ints{layer}}, {"axes", Ints{0}}});
    const Tensor factor = b.cast(b.reshape(all.tensor(), b.dims(x.tensor())), b.dtype(x.tensor()));
    return b.op("mul", {b.op("mul", {x, factor}), rate < 1 ? 1 / (1 - rate) : 0.0});
  }

  int64_t directions() const { return both ? 2 : 1; }

  // One tensor for each direction, as one.
  Value stacked(int64_t layer, int64_t first, int64_t each) const {
    Values parts;
    for (int64_t d = 0; d < directions(); ++d) {
      const int64_t at = (layer * directions() + d) * 2 + first;
      parts.push_back(each == 1 ? weights.at(at)
                                : c.builder.op("concat", {weights.at(at), weights.at(at + 1)},
                                               {{"axis", int64_t{0}}}));
    }
    return c.builder.op("stack", parts, {{"axis", int64_t{0}}}, 1)[0];
  }

  Value state(size_t which, int64_t layer) const {
    const int64_t first = layer * directions();
    return c.builder.op(
        "slice", {states.at(which)},
        {{"starts", Ints{first}}, {"ends", Ints{first + directions()}}, {"axes", Ints{0}}});
  }

  // The output, and the last states of all layers: h, and c of an LSTM.
  Values run(const Value& kept) const {
    const bool lstm = mode == "LSTM", gru = mode == "GRU";
    const int64_t biases = count * directions() * 2;
    Value x = c.part(0);
    std::vector<Values> last(lstm ? 2 : 1);
    for (int64_t layer = 0; layer < count; ++layer) {
      if (layer > 0 && drops()) x = without_dropped(x, kept, layer);
      Values inputs{
          x,         stacked(layer, 0, 1), stacked(layer, 1, 1), stacked(layer, biases, 2),
          c.part(3), state(0, layer)};
      NamedValues attrs{{"hidden_size", hidden}, {"direction", both ? "bidirectional" : "forward"}};
      if (lstm) inputs.push_back(state(1, layer));
      if (lstm || gru) attrs.emplace_back("gate_order", "torch");
      if (gru) attrs.emplace_back("linear_before_reset", true);
      if (mode == "RNN_RELU") attrs.emplace_back("activation", "relu");
      const Values y = c.builder.op(lstm  ? "lstm"
                                    : gru ? "gru"
                                          : "rnn",
                                    inputs, attrs, lstm ? 3 : 2);
      for (size_t i = 0; i < last.size(); ++i) last[i].push_back(y[i + 1]);
      const Ints dims = c.builder.dims(y[0].tensor());  // [steps, directions, batch, hidden]
      const Value ordered = c.builder.op("transpose", {y[0]}, {{"perm", Ints{0, 2, 1, 3}}});
      x = c.builder.reshape(ordered.tensor(), {dims[0], dims[2], dims[1] * dims[3]});
    }
    Values results{x};
    for (const Values& each : last)
      results.push_back(c.builder.op("concat", each, {{"axis", int64_t{0}}}, 1)[0]);
    return results;
  }

  Call& c;
  const Values &states, &weights;
  bool both;
  int64_t hidden, count;
  const std::string& mode;
  double rate;
};

// rnn_layers(..., state): the output, which elements dropout has kept, the last states, a reserve
// that is not needed. Without dropout what it has kept stays as it is.
Values rnn_layers(Call& c) {
  const Layers layers(c);
  const Value kept = layers.drops() ? layers.drawn(c.part(10)) : Value();
  const Values results = layers.run(kept);
  Values all{results[0], kept};
  all.insert(all.end(), results.begin() + 1, results.end());
  all.resize(std::max(all.size(), c.results));
  return all;
}

// rnn_gradients(..., dout, dstates, kept): to x, states and weights.
Values rnn_gradients(Call& c) {
  const Layers layers(c);
  const Values results = layers.run(c.part(12));
  Values seeds{c.part(10)};
  if (c.has(11)) seeds.insert(seeds.end(), c.part(11).values().begin(), c.part(11).values().end());
  Value total;
  for (size_t i = 0; i < results.size() && i < seeds.size(); ++i) {
    if (seeds[i].absent()) continue;
    const Value part = c.builder.op("reduce_sum", {c.builder.op("mul", {results[i], seeds[i]})},
                                    {{"keep_dims", false}});
    total = total.absent() ? part : c.builder.op("add", {total, part});
  }
  std::vector<Tensor> to{c.part(0).tensor()};
  for (const Value& state : layers.states) to.push_back(state.tensor());
  for (const Value& weight : layers.weights) to.push_back(weight.tensor());
  const Tensor sum = total.tensor();
  return c.builder.gradient(sum, c.builder.number(1, c.builder.dtype(sum)), to);
}

const Functions registered = {{"rnn_layers", rnn_layers}, {"rnn_gradients", rnn_gradients}};

}  // namespace

}  // namespace anymps::lowering
