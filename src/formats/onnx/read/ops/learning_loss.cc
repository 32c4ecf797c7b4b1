// SPDX-License-Identifier: Apache-2.0
// Losses over classes in axis 1.
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

// The weighted mean, the sum or all of -log_p[target], without the places to ignore.
Value* negative_log_likelihood(Call& c, Value* log_p, Value* target, Value* weight) {
  const std::string reduction = c.s("reduction", "mean");
  c.check(reduction == "mean" || reduction == "sum" || reduction == "none",
          "reduction '{}' is not known", reduction);
  target = c.cast(target, DType::kI64);
  Value* ignored = nullptr;
  if (c.has("ignore_index")) {
    const auto number = [&](int64_t value) {
      return c.graph.constant(anymps::Constant::of<int64_t>({}, {value}));
    };
    ignored = c.add("equal", {target, number(c.i("ignore_index"))});
    target = c.add("where", {ignored, number(0), target});
  }
  Value* places = c.add("unsqueeze", {target}, {{"axes", Ints{1}}});
  Value* loss = c.add("gather_along_axis", {log_p, places}, {{"axis", 1}});
  loss = c.add("neg", {c.add("squeeze", {loss}, {{"axes", Ints{1}}})});
  Value* zero = c.scalar_like(loss, 0);
  Value* weights = weight ? c.add("gather", {weight, target}, {{"axis", 0}}) : nullptr;
  if (ignored) {
    // Where nothing counts, nothing of the scores may show, not even a NaN.
    loss = c.add("where", {ignored, zero, loss});
    weights = c.add("where", {ignored, zero, weights ? weights : c.scalar_like(loss, 1)});
  }
  if (weight) loss = c.add("mul", {loss, weights});
  if (reduction == "none") return loss;
  const NamedAttrs whole = {{"keep_dims", false}};
  if (reduction == "mean" && !weights) return c.add("reduce_mean", {loss}, whole);
  Value* sum = c.add("reduce_sum", {loss}, whole);
  return reduction == "sum" ? sum : c.add("div", {sum, c.add("reduce_sum", {weights}, whole)});
}

ONNX_READ(NegativeLogLikelihoodLoss) {
  return {negative_log_likelihood(c, c.in(0), c.in(1), c.opt(2))};
}

ONNX_READ(SoftmaxCrossEntropyLoss) {
  Value* log_p = c.add("log_softmax", {c.in(0)}, {{"axis", 1}});
  return {negative_log_likelihood(c, log_p, c.in(1), c.opt(2)), log_p};
}

}  // namespace

}  // namespace anymps::onnx
