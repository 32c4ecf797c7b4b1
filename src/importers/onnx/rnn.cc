// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. The op table has ONNX's own layouts and gate orders, so these only check.
#include <algorithm>

#include "importers/onnx/registry.h"

namespace anymps::onnx {

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
  return text;
}

// The attributes that all recurrent ops share. `usual`: the activations of one direction.
NamedAttrs recurrent(Call& c, const std::vector<std::string>& usual) {
  const std::string direction = c.s("direction", "forward");
  const size_t directions = direction == "bidirectional" ? 2 : 1;
  if (auto given = c.strings("activations")) {
    c.check(given->size() == directions * usual.size(), "{} activations are given, {} are needed",
            given->size(), directions * usual.size());
    for (size_t i = 0; i < given->size(); ++i)
      if (lower((*given)[i]) != usual[i % usual.size()])
        c.unsupported("activation '{}' is not supported here, only '{}'", (*given)[i],
                      usual[i % usual.size()]);
  }
  c.ignore({"activation_alpha", "activation_beta"});  // the usual activations have none
  int64_t hidden = c.i("hidden_size", 0);
  if (hidden == 0) {
    const Dims& r = c.in(2)->shape();
    c.check(c.rank(c.in(2)) == 3 && r[2].known(), "attribute 'hidden_size' is missing");
    hidden = r[2].value();
  }
  return {{"hidden_size", hidden}, {"direction", direction}, {"layout", c.i("layout", 0)}};
}

Values LSTM(Call& c) {
  NamedAttrs attrs = recurrent(c, {"sigmoid", "tanh", "tanh"});
  if (c.i("input_forget", 0) != 0) c.unsupported("input_forget is not supported");
  if (c.has("clip")) attrs.emplace_back("clip", c.f("clip"));
  return c.add_all("lstm",
                   {c.in(0), c.in(1), c.in(2), c.opt(3), c.opt(4), c.opt(5), c.opt(6), c.opt(7)},
                   attrs, 3);
}

Values GRU(Call& c) {
  NamedAttrs attrs = recurrent(c, {"sigmoid", "tanh"});
  if (c.has("clip")) c.unsupported("clip is not supported");
  attrs.emplace_back("linear_before_reset", c.flag("linear_before_reset", false));
  return c.add_all("gru", {c.in(0), c.in(1), c.in(2), c.opt(3), c.opt(4), c.opt(5)}, attrs, 2);
}

Values RNN(Call& c) {
  NamedAttrs attrs = recurrent(c, {"tanh"});
  if (c.has("clip")) c.unsupported("clip is not supported");
  return c.add_all("rnn", {c.in(0), c.in(1), c.in(2), c.opt(3), c.opt(4), c.opt(5)}, attrs, 2);
}

const Converter kTable[] = {
    {"GRU", GRU},
    {"LSTM", LSTM},
    {"RNN", RNN},
};

}  // namespace

std::span<const Converter> rnn_converters() { return kTable; }

}  // namespace anymps::onnx
