// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. The op table has ONNX's own layouts and gate orders, so these only check.
#include <algorithm>

#include "formats/onnx/read/registry.h"
#include "semantics/cell_activation.h"

namespace anymps::onnx {

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
  return text;
}

// Activations other than the usual ones. Alphas and betas are listed only for those that have them.
NamedAttrs activations(Call& c, size_t directions, const std::vector<std::string>& usual) {
  auto given = c.strings("activations");
  auto alphas = c.floats("activation_alpha"), betas = c.floats("activation_beta");
  if (!given) return {};
  c.check(given->size() == directions * usual.size(), "{} activations are given, {} are needed",
          given->size(), directions * usual.size());
  bool other = false;
  std::string names;
  std::vector<double> alpha, beta;
  size_t next_alpha = 0, next_beta = 0;
  for (size_t i = 0; i < given->size(); ++i) {
    const std::string name = lower((*given)[i]);
    other = other || name != usual[i % usual.size()];
    names += (i ? "," : "") + name;
    CellActivation activation = CellActivation::named(name, std::string(c.node.op_type));
    if (alphas && activation.has_alpha() && next_alpha < alphas->size())
      activation.alpha = double{(*alphas)[next_alpha++]};
    if (betas && activation.has_beta() && next_beta < betas->size())
      activation.beta = double{(*betas)[next_beta++]};
    alpha.push_back(activation.alpha);
    beta.push_back(activation.beta);
  }
  if (!other) return {};
  return {{"activations", names}, {"activation_alpha", alpha}, {"activation_beta", beta}};
}

// The attributes that all recurrent ops share. `usual`: the activations of one direction.
NamedAttrs recurrent(Call& c, const std::vector<std::string>& usual) {
  const std::string direction = c.s("direction", "forward");
  const size_t directions = direction == "bidirectional" ? 2 : 1;
  NamedAttrs attrs = activations(c, directions, usual);
  int64_t hidden = c.i("hidden_size", 0);
  if (hidden == 0) {
    const Dims& r = c.in(2)->shape();
    c.check(c.rank(c.in(2)) == 3 && r[2].known(), "attribute 'hidden_size' is missing");
    hidden = r[2].value();
  }
  attrs.emplace_back("hidden_size", hidden);
  attrs.emplace_back("direction", direction);
  attrs.emplace_back("layout", c.i("layout", 0));
  if (c.has("clip")) attrs.emplace_back("clip", c.f("clip"));
  return attrs;
}

ONNX_READ(LSTM) {
  NamedAttrs attrs = recurrent(c, {"sigmoid", "tanh", "tanh"});
  attrs.emplace_back("input_forget", c.flag("input_forget", false));
  return c.add_all("lstm",
                   {c.in(0), c.in(1), c.in(2), c.opt(3), c.opt(4), c.opt(5), c.opt(6), c.opt(7)},
                   attrs, 3);
}

ONNX_READ(GRU) {
  NamedAttrs attrs = recurrent(c, {"sigmoid", "tanh"});
  attrs.emplace_back("linear_before_reset", c.flag("linear_before_reset", false));
  return c.add_all("gru", {c.in(0), c.in(1), c.in(2), c.opt(3), c.opt(4), c.opt(5)}, attrs, 2);
}

ONNX_READ(RNN) {
  NamedAttrs attrs = recurrent(c, {"tanh"});
  return c.add_all("rnn", {c.in(0), c.in(1), c.in(2), c.opt(3), c.opt(4), c.opt(5)}, attrs, 2);
}

}  // namespace

}  // namespace anymps::onnx
