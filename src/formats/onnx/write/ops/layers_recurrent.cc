// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: layouts and the order of the gates are ONNX's own.
#include "formats/onnx/write/emit.h"
#include "ops/layers/recurrent.h"

namespace anymps::onnx {

namespace {

// As ONNX writes the names; in the order of CellActivation::Kind.
const char* kNames[] = {
    "Sigmoid",         "Tanh",       "Relu",        "",    "Affine",   "LeakyRelu",
    "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"};

// Alphas and betas are listed only for those that have them.
void add_activations(Emit& e, OutAttrs& attrs, int64_t directions,
                     const std::vector<std::string>& usual) {
  const Attrs& own = e.attrs().all({"activations", "activation_alpha", "activation_beta"});
  Names names;
  std::vector<double> alphas, betas;
  for (const CellActivation& activation : cell_activations(own, directions, usual)) {
    if (activation.kind == CellActivation::Kind::kNone) e.refuse("an activation is none");
    names.emplace_back(kNames[static_cast<size_t>(activation.kind)]);
    if (activation.has_alpha()) alphas.push_back(activation.alpha);
    if (activation.has_beta()) betas.push_back(activation.beta);
  }
  attrs.emplace_back("activations", names);
  if (!alphas.empty()) attrs.emplace_back("activation_alpha", alphas);
  if (!betas.empty()) attrs.emplace_back("activation_beta", betas);
}

void expect_own_order(Emit& e) {
  if (e.attrs().s("gate_order") != "onnx") e.refuse("its gates are in torch's order");
}

OutAttrs attrs_of(Emit& e, const std::vector<std::string>& usual) {
  const std::string& direction = e.attrs().s("direction");
  OutAttrs attrs = {{"hidden_size", e.attrs().i("hidden_size")},
                    {"direction", direction},
                    {"layout", e.attrs().i("layout")}};
  if (e.attrs().f("clip") > 0) attrs.emplace_back("clip", e.attrs().f("clip"));
  add_activations(e, attrs, direction == "bidirectional" ? 2 : 1, usual);
  return attrs;
}

Names layer(Emit& e, const char* op, const OutAttrs& attrs) {
  if (e.node.outputs.size() > e.node.op->main_outputs()) e.refuse("it gives a reserve");
  Names inputs = e.all();
  if (e.has(4)) inputs[4] = e.cast(inputs[4], DType::kI32);  // the lengths
  return e.add_all(op, inputs, attrs, e.node.outputs.size());
}

ONNX_WRITE(lstm) {
  expect_own_order(e);
  if (e.attrs().b("dynamic_bytes")) e.refuse("its products are of bytes");
  OutAttrs attrs = attrs_of(e, {"sigmoid", "tanh", "tanh"});
  if (e.attrs().b("input_forget")) attrs.emplace_back("input_forget", 1);
  return layer(e, "LSTM", attrs);
}

ONNX_WRITE(gru) {
  expect_own_order(e);
  OutAttrs attrs = attrs_of(e, {"sigmoid", "tanh"});
  attrs.emplace_back("linear_before_reset", e.attrs().b("linear_before_reset"));
  return layer(e, "GRU", attrs);
}

ONNX_WRITE(rnn) { return layer(e, "RNN", attrs_of(e, {e.attrs().s("activation")})); }

}  // namespace

}  // namespace anymps::onnx
