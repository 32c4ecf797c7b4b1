// SPDX-License-Identifier: Apache-2.0
// What scales and shifts the channels of a convolution's or matmul's result by constants moves into
// its weights and bias:
//   batch_norm(conv(x, w, b))  ->  conv(x, w * s, b * s + t),  s = gamma / sqrt(variance + epsilon)
// and the same for mul, div, add and sub with one number for each channel. What stands before a
// convolution moves into its weights by a pass of its own, when activations have been found in it;
// a shift only where no border is padded:
//   conv(x * s + t, w, b)  ->  conv(x, w * s, b + sum of w * t)
// The new weights are a recipe, made when a driver packs them: the model costs no second copy.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/known.h"
#include "memory/refreshable.h"
#include "passes/match.h"
#include "passes/pass.h"

namespace anymps {

namespace {

using Numbers = std::vector<double>;
constexpr int64_t kMaxChannels = 1 << 20;

// y = x * scale[c] + shift[c] along an axis.
struct ChannelAffine {
  Value* source = nullptr;
  int64_t axis = 0;
  Numbers scale, shift;
};

// One number for each channel from a constant that broadcasts along all other axes.
std::optional<Numbers> per_channel(const Value* value, int64_t rank, int64_t axis,
                                   int64_t channels) {
  if (!value->is_constant() || rank_of(value) > rank) return std::nullopt;
  const int64_t lead = rank - rank_of(value);
  for (int64_t i = 0; i < rank_of(value); ++i) {
    const Dim& extent = value->shape()[i];
    if (!extent.is(1) && !(lead + i == axis && extent.is(channels))) return std::nullopt;
  }
  auto numbers = numbers_of(value, channels);
  if (numbers && numbers->size() == 1) numbers->assign(channels, (*numbers)[0]);
  return numbers;
}

std::optional<ChannelAffine> from_batch_norm(const Node& node, int64_t axis, int64_t channels) {
  const int64_t rank = rank_of(node.output());
  if ((node.attrs.i("axis") + rank) % rank != axis) return std::nullopt;
  ChannelAffine affine{node.input(0), axis, Numbers(channels, 1.0), Numbers(channels, 0.0)};
  auto mean = numbers_of(node.input(1), channels), variance = numbers_of(node.input(2), channels);
  if (!mean || !variance) return std::nullopt;
  if (node.input(3)) {
    auto gamma = numbers_of(node.input(3), channels);
    if (!gamma) return std::nullopt;
    affine.scale = *gamma;
  }
  if (node.input(4)) {
    auto beta = numbers_of(node.input(4), channels);
    if (!beta) return std::nullopt;
    affine.shift = *beta;
  }
  const double epsilon = node.attrs.f("epsilon");
  for (size_t c = 0; c < affine.scale.size(); ++c) {
    affine.scale[c] /= std::sqrt((*variance)[c] + epsilon);
    affine.shift[c] -= (*mean)[c] * affine.scale[c];
  }
  return affine;
}

std::optional<ChannelAffine> from_arithmetic(const Node& node, size_t operand, int64_t axis,
                                             int64_t channels) {
  Value *source = node.input(operand), *other = node.input(1 - operand);
  if (!same_shape(source, node.output())) return std::nullopt;
  auto numbers = per_channel(other, rank_of(source), axis, channels);
  if (!numbers) return std::nullopt;
  const size_t count = channels;
  ChannelAffine affine{source, axis, Numbers(count, 1.0), Numbers(count, 0.0)};
  if (node.is("mul")) {
    affine.scale = *numbers;
  } else if (node.is("div")) {
    if (operand != 0 || node.attrs.s("rounding") != "none") return std::nullopt;
    for (size_t c = 0; c < count; ++c) affine.scale[c] = 1 / (*numbers)[c];
  } else if (node.is("add")) {
    affine.shift = *numbers;
  } else {
    const double sign = operand == 0 ? -1 : 1;
    for (size_t c = 0; c < count; ++c) affine.shift[c] = sign * (*numbers)[c];
    if (operand == 1) affine.scale.assign(count, -1.0);
  }
  return affine;
}

// Which channel of the result an element of the weights belongs to. Elements come in runs of one
// channel; the runs of `period` channels repeat, and each `block` of runs starts `step` later.
struct WeightChannels {
  int64_t run = 1, period = 1, block = 0, step = 0;

  int64_t of_run(int64_t index) const {
    return index % period + (block ? index / block * step : 0);
  }
};

WeightChannels weight_channels(const Node& node, const Shape& w) {
  auto extent = [&](size_t i) { return w[i]; };
  int64_t kernel = 1;
  for (size_t i = 2; i < w.size(); ++i) kernel *= extent(i);
  if (node.is("matmul")) {
    const int64_t rows = w[w.size() - 2], columns = w[w.size() - 1];
    if (node.attrs.b("transpose_b")) return {columns, rows};
    return {1, columns};
  }
  if (node.is("conv_transpose")) {
    const int64_t groups = node.attrs.i("groups"), outputs = extent(1);
    return {kernel, outputs, extent(0) / groups * outputs, outputs};
  }
  if (node.attrs.s("weights_layout") == "*IO") return {1, w.back()};
  return {extent(1) * kernel, extent(0)};
}

ConstantPtr scaled_weights(const ConstantPtr& weights, WeightChannels channels, Numbers scale) {
  auto recipe = [channels, scale = std::move(scale)](std::span<const ConstantPtr> inputs,
                                                     std::byte* out) {
    const Constant& plain = *inputs[0];
    const auto bytes = plain.data();
    const int64_t runs = channels.run ? plain.desc().count() / channels.run : 0;
    dispatch<kFloat>(plain.dtype(), [&]<typename T>() {
      using C = Compute<T>;
      const T* from = reinterpret_cast<const T*>(bytes.get());
      T* to = reinterpret_cast<T*>(out);
      for (int64_t i = 0; i < runs; ++i) {
        const double factor = scale[channels.of_run(i)];
        for (int64_t k = 0; k < channels.run; ++k)
          to[k] =
              static_cast<T>(static_cast<C>(static_cast<double>(static_cast<C>(from[k])) * factor));
        from += channels.run;
        to += channels.run;
      }
    });
    plain.release();
  };
  return derived_constant(weights->dtype(), weights->shape(), {weights}, std::move(recipe));
}

// A conv, conv_transpose or matmul that can take a scale and a shift.
bool takes_affine(const Graph& graph, const Node& node) {
  if (!node.is("conv") && !node.is("conv_transpose") && !node.is("matmul")) return false;
  if (!is_float(node.output()->dtype()) || !single_use(graph, node.output())) return false;
  if (node.attrs.s("activation") != "none" || node.input(3)) return false;
  const Value* w = node.input(1);
  if (!w->is_constant() || rank_of(w) < 2) return false;
  if (node.is("matmul") && rank_of(node.input(0)) < 2) return false;
  return !node.input(2) || node.input(2)->is_constant();
}

// Which channel of x an element of a convolution's weights is multiplied with.
WeightChannels input_channels(const Node& conv, const Shape& w) {
  int64_t kernel = 1;
  for (size_t i = 2; i < w.size(); ++i) kernel *= w[i];
  return {kernel, w[1], w[0] / conv.attrs.i("groups") * w[1], w[1]};
}

// What each channel of the result gains from x + shift.
Numbers gained(const Constant& weights, const WeightChannels& in, const WeightChannels& out,
               const Numbers& shift, int64_t outputs) {
  Numbers result(outputs, 0.0);
  const Numbers w = doubles_of(weights);
  for (size_t i = 0; i < w.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    result[out.of_run(place / out.run)] += w[i] * shift[in.of_run(place / in.run)];
  }
  weights.release();
  return result;
}

// Whether no zero is put in beside x.
bool pads_nothing(const Node& conv) {
  const std::string& automatic = conv.attrs.s("auto_pad");
  const std::vector<int64_t>& pads = conv.attrs.ints("pads");
  return automatic == "valid" ||
         (automatic == "explicit" &&
          std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; }));
}

bool all_are(const Numbers& numbers, double number) {
  return std::all_of(numbers.begin(), numbers.end(), [&](double other) { return other == number; });
}

// A convolution whose weights and bias can take what stands before it.
bool takes_affine_before(const Graph& graph, const Node& conv) {
  constexpr int64_t kMostWeights = 1 << 22;  // they are looked at now
  if (!conv.is("conv") || !is_float(conv.output()->dtype())) return false;
  const Value *x = conv.input(0), *w = conv.input(1), *bias = conv.input(2);
  return x->producer && single_use(graph, x) && rank_of(x) >= 2 && w->is_constant() &&
         !is_refreshable(*w->constant) && w->constant->desc().count() <= kMostWeights &&
         conv.attrs.s("weights_layout") != "*IO" && (!bias || bias->is_constant());
}

bool fold_before(Rewriter& rewriter, Node& conv) {
  Graph& graph = rewriter.graph();
  if (!takes_affine_before(graph, conv)) return false;
  const Value* x = conv.input(0);
  const Node& node = *x->producer;
  const bool norm = node.is("batch_norm");
  if (!norm && !node.is("mul") && !node.is("div") && !node.is("add") && !node.is("sub"))
    return false;
  const int64_t axis = conv.attrs.s("layout") == "channels_last" ? rank_of(x) - 1 : 1;
  const Dim& extent = x->shape()[axis];
  if (!extent.known() || extent.value() < 1 || extent.value() > kMaxChannels) return false;
  const ConstantPtr plain = conv.input(1)->constant;
  const int64_t outputs = plain->shape()[0];
  for (size_t operand = 0; operand < (norm ? 1u : 2u); ++operand) {
    const auto affine = norm ? from_batch_norm(node, axis, extent.value())
                             : from_arithmetic(node, operand, axis, extent.value());
    if (!affine) continue;
    const WeightChannels in = input_channels(conv, plain->shape());
    std::vector<Value*> inputs = conv.inputs;
    inputs.resize(std::max<size_t>(inputs.size(), 3), nullptr);
    inputs[0] = affine->source;
    if (!all_are(affine->shift, 0)) {
      auto bias = inputs[2] ? per_channel(inputs[2], 1, 0, outputs) : Numbers(outputs, 0.0);
      if (!pads_nothing(conv) || !bias) return false;
      const Numbers more =
          gained(*plain, in, weight_channels(conv, plain->shape()), affine->shift, outputs);
      for (size_t c = 0; c < bias->size(); ++c) (*bias)[c] += more[c];
      inputs[2] = graph.constant(constant_from(conv.output()->dtype(), {outputs}, *bias),
                                 conv.name + ".bias");
    }
    if (!all_are(affine->scale, 1))
      inputs[1] = graph.constant(scaled_weights(plain, in, affine->scale), conv.input(1)->name);
    return rewriter.replace(conv.output(),
                            graph.add("conv", inputs, conv.attrs.named(), conv.name));
  }
  return false;
}

bool fold(Rewriter& rewriter, Node& node) {
  Graph& graph = rewriter.graph();
  const bool norm = node.is("batch_norm");
  const bool minus = node.is("neg");
  if (!norm && !minus && !node.is("mul") && !node.is("div") && !node.is("add") && !node.is("sub"))
    return false;
  for (size_t operand = 0; operand < (norm || minus ? 1u : 2u); ++operand) {
    Node* linear = node.input(operand)->producer;
    if (!linear || !takes_affine(graph, *linear) || !linear->output()->type.ranked) continue;
    const Dims& shape = linear->output()->shape();
    const auto rank = std::ssize(shape);
    const bool last = linear->is("matmul") || linear->attrs.s("layout") == "channels_last";
    const int64_t axis = last ? rank - 1 : 1;
    const Dim& extent = shape[axis];
    if (!extent.known() || extent.value() < 1 || extent.value() > kMaxChannels) continue;
    // One number for a matmul is its alpha; see fuse_matmul.
    if (linear->is("matmul") && (node.is("mul") || node.is("div")) &&
        is_scalar(node.input(1 - operand)))
      continue;
    const size_t channels = extent.value();
    auto affine = norm ? from_batch_norm(node, axis, extent.value())
                  : minus
                      ? std::optional(ChannelAffine{node.input(0), axis, Numbers(channels, -1.0),
                                                    Numbers(channels, 0.0)})
                      : from_arithmetic(node, operand, axis, extent.value());
    if (!affine) continue;
    Numbers bias(affine->shift.size(), 0.0);
    if (linear->input(2)) {
      auto old = per_channel(linear->input(2), 1, 0, extent.value());
      if (!old) continue;
      bias = *old;
    }
    bool scaled = false;
    for (size_t c = 0; c < bias.size(); ++c) {
      bias[c] = bias[c] * affine->scale[c] + affine->shift[c];
      scaled |= affine->scale[c] != 1;
    }
    const DType dtype = linear->output()->dtype();
    Value* w = linear->input(1);
    if (scaled) {
      const ConstantPtr& plain = w->constant;
      const ConstantPtr weights =
          scaled_weights(plain, weight_channels(*linear, plain->shape()), affine->scale);
      const bool by_channel =
          linear->is("matmul") || (linear->is("conv") && linear->attrs.i("groups") == 1);
      if (by_channel && !is_refreshable(*weights)) weights->set_scaled({plain, affine->scale});
      w = graph.constant(weights, w->name);
    }
    Value* b = graph.constant(constant_from(dtype, {extent.value()}, bias), linear->name + ".bias");
    Value* folded =
        graph.add(linear->op->name, {linear->input(0), w, b}, linear->attrs.named(), linear->name);
    return rewriter.replace(node.output(), folded);
  }
  return false;
}

}  // namespace

PASS(fold_batch_norm, 300, "batch_norm and per-channel arithmetic move into weights and bias") {
  Rewriter rewriter(graph);
  return rewriter.each([&](Node& node) { return fold(rewriter, node); });
}

PASS(fold_input_scale, 335, "arithmetic before a convolution moves into its weights and bias") {
  if (!context.fuses) return 0;
  Rewriter rewriter(graph);
  return rewriter.each([&](Node& node) { return fold_before(rewriter, node); });
}

}  // namespace anymps
