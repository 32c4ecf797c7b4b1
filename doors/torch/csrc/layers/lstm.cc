// SPDX-License-Identifier: Apache-2.0
// nn.LSTM as whole layers, where PyTorch composes it of a dozen ops for each step on any device but
// the CPU and CUDA. A layer in one direction is the op that the CPU has for it (named after oneDNN;
// PyTorch knows its gradient, and the gradient of that). What upstream's MPS calls a whole LSTM,
// _lstm_mps, is made of the same.
#include <algorithm>

#include <ATen/FuncTorchTLS.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/mkldnn_rnn_layer_backward.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>
#include "strict.h"

namespace anymps::aten {

namespace {

using at::Tensor;
using at::TensorList;

constexpr int64_t kLstm = 2;  // among the kinds of layers that PyTorch's op knows

// How the parameters of nn.LSTM lie: for each layer and direction w_ih, w_hh, b_ih, b_hh.
struct Layers {
  TensorList params;
  bool biased;
  int64_t count;
  bool both;

  int64_t directions() const { return both ? 2 : 1; }
  int64_t each() const { return biased ? 4 : 2; }
  int64_t at(int64_t layer, int64_t direction) const { return layer * directions() + direction; }
  bool complete() const { return std::ssize(params) == count * directions() * each(); }
  int64_t hidden() const { return params[1].size(1); }
  Tensor part(int64_t place, int64_t i) const {
    if (i < each()) return params[place * each() + i];
    return at::zeros({params[place * each()].size(0)}, params[0].options());
  }
};

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Results run_one(const Layers& layers, const Tensor& x, const Tensor& h, const Tensor& c,
                int64_t place, bool keep) {
  return at::mkldnn_rnn_layer(x, layers.part(place, 0), layers.part(place, 1),
                              layers.part(place, 2), layers.part(place, 3), h, c,
                              layers.both && place % 2 == 1, {}, kLstm, layers.hidden(), 1,
                              layers.biased, layers.both, false, keep);
}

struct Kept {
  std::vector<Tensor> inputs;    // of each layer
  std::vector<Results> results;  // of each layer and direction
};

// `between`: what comes of a layer's output before the next. `kept`: what a gradient needs.
template <typename F>
std::tuple<Tensor, Tensor, Tensor> run(const Layers& layers, const Tensor& input, TensorList hx,
                                       bool batch_first, bool keep, Kept* kept, F between) {
  Tensor x = batch_first ? input.transpose(0, 1) : input;
  std::vector<Tensor> h, c;
  for (int64_t layer = 0; layer < layers.count; ++layer) {
    if (layer > 0) x = between(x, layer - 1);
    if (kept) kept->inputs.push_back(x);
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < layers.directions(); ++direction) {
      const int64_t place = layers.at(layer, direction);
      Results results = run_one(layers, x, hx[0][place], hx[1][place], place, keep);
      outputs.push_back(std::get<0>(results));
      h.push_back(std::get<1>(results));
      c.push_back(std::get<2>(results));
      if (kept) kept->results.push_back(std::move(results));
    }
    x = layers.both ? at::cat(outputs, -1) : outputs[0];
  }
  return {batch_first ? x.transpose(0, 1) : x, at::stack(h), at::stack(c)};
}

bool all_of_type(TensorList list, at::ScalarType type) {
  return std::all_of(list.begin(), list.end(), [&](const Tensor& tensor) {
    return tensor.defined() && tensor.device().is_mps() && tensor.scalar_type() == type &&
           !tensor._fw_grad(0).defined();
  });
}

// What whole layers do not serve: projections, mixed types (autocast), transforms of torch.func,
// and tensors without memory, all of which PyTorch's composition does.
bool in_whole_layers(const Layers& layers, const Tensor& input, TensorList hx) {
  static constexpr c10::DispatchKeySet kSpecial({c10::DispatchKey::Python,
                                                 c10::DispatchKey::FuncTorchBatched,
                                                 c10::DispatchKey::FuncTorchGradWrapper});
  const at::ScalarType type = input.scalar_type();
  return !strict() && layers.complete() && hx.size() == 2 && input.dim() == 3 &&
         !input.key_set().has_any(kSpecial) && input.numel() > 0 && input.is_floating_point() &&
         !at::functorch::functorchTLSAccessor() && !at::autocast::is_autocast_enabled(at::kMPS) &&
         all_of_type(input, type) && all_of_type(hx, type) && all_of_type(layers.params, type) &&
         hx[1].size(-1) == hx[0].size(-1);
}

bool wants_gradient(const Tensor& input, TensorList hx, TensorList params) {
  const auto wants = [](const Tensor& tensor) { return tensor.requires_grad(); };
  return at::GradMode::is_enabled() && (wants(input) || std::any_of(hx.begin(), hx.end(), wants) ||
                                        std::any_of(params.begin(), params.end(), wants));
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params,
                                        bool has_biases, int64_t count, double dropout, bool train,
                                        bool both, bool batch_first) {
  const Layers layers{params, has_biases, count, both};
  if (!in_whole_layers(layers, input, hx))
    return at::native::lstm(input, hx, params, has_biases, count, dropout, train, both,
                            batch_first);
  return run(layers, input, hx, batch_first, wants_gradient(input, hx, params), nullptr,
             [&](const Tensor& x, int64_t) { return at::dropout(x, dropout, train); });
}

void check_whole(const Layers& layers, TensorList hx) {
  TORCH_CHECK(layers.count > 0 && layers.complete() && hx.size() == 2,
              "[_lstm_mps] expects two states, and for each layer and direction two weights and "
              "maybe two biases");
}

// Upstream's op: its three last results are what its gradient wants. Here that is what dropout
// multiplies the outputs of layers with; the layers are run again.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> whole(const Tensor& input, TensorList hx,
                                                                 TensorList params, bool has_biases,
                                                                 int64_t count, double dropout,
                                                                 bool train, bool both,
                                                                 bool batch_first) {
  const Layers layers{params, has_biases, count, both};
  check_whole(layers, hx);
  const bool drops = train && dropout > 0 && count > 1;
  std::vector<Tensor> factors;
  auto [y, h, c] =
      run(layers, input, hx, batch_first, false, nullptr, [&](const Tensor& x, int64_t) {
        if (!drops) return x;
        factors.push_back(
            at::zeros_like(x).bernoulli_(1 - dropout).div_(dropout < 1 ? 1 - dropout : 1));
        return x * factors.back();
      });
  const Tensor none = at::empty({0}, input.options());
  return {y, h, c, drops ? at::stack(factors) : none, none, none};
}

Tensor part_of(const std::optional<Tensor>& all, int64_t place) {
  return all && all->defined() ? all->select(0, place) : Tensor();
}

std::tuple<Tensor, std::vector<Tensor>, std::vector<Tensor>> whole_backward(
    const std::optional<Tensor>& grad_y, const std::optional<Tensor>& grad_h,
    const std::optional<Tensor>& grad_c, const Tensor& factors, const Tensor& /*cell_state*/,
    const Tensor& input, const Tensor& /*outputs*/, TensorList hx, TensorList params,
    bool has_biases, int64_t count, double /*dropout*/, bool /*train*/, bool both,
    bool batch_first) {
  const Layers layers{params, has_biases, count, both};
  check_whole(layers, hx);
  const bool drops = factors.numel() > 0;
  Kept kept;
  run(layers, input, hx, batch_first, true, &kept,
      [&](const Tensor& x, int64_t at) { return drops ? x * factors[at] : x; });
  std::vector<Tensor> to_params(params.size()), to_h(count * layers.directions()),
      to_c(count * layers.directions());
  Tensor dy = grad_y.value_or(Tensor());
  if (dy.defined() && batch_first) dy = dy.transpose(0, 1);
  for (int64_t layer = count; layer-- > 0;) {
    Tensor dx;
    for (int64_t direction = 0; direction < layers.directions(); ++direction) {
      const int64_t place = layers.at(layer, direction), first = place * layers.each();
      const auto& [y, h, c, reserve] = kept.results[place];
      const Tensor own =
          dy.defined() && both ? dy.narrow(-1, direction * layers.hidden(), layers.hidden()) : dy;
      auto [to_x, w, r, b, b2, h0, c0] = at::mkldnn_rnn_layer_backward(
          kept.inputs[layer], layers.part(place, 0), layers.part(place, 1), layers.part(place, 2),
          layers.part(place, 3), hx[0][place], hx[1][place], y, h, c, own, part_of(grad_h, place),
          part_of(grad_c, place), direction == 1, kLstm, layers.hidden(), 1, has_biases, true, both,
          {}, false, reserve);
      const Tensor found[] = {w, r, b, b2};
      std::copy_n(found, layers.each(), to_params.begin() + first);
      to_h[place] = h0;
      to_c[place] = c0;
      dx = dx.defined() ? dx + to_x : to_x;
    }
    dy = layer > 0 && drops ? dx * factors[layer - 1] : dx;
  }
  return {batch_first ? dy.transpose(0, 1) : dy, {at::stack(to_h), at::stack(to_c)}, to_params};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_lstm_mps", whole);
  m.impl("lstm_mps_backward", whole_backward);
  m.impl("lstm.input", lstm);
}
TORCH_LIBRARY_IMPL(aten, AutogradMPS, m) { m.impl("lstm.input", lstm); }

}  // namespace anymps::aten
