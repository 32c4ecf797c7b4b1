// SPDX-License-Identifier: Apache-2.0
// Ops of com.microsoft that exporters and graph optimizers write in place of several standard ones:
// fused products, convolutions, activations and normalizations.
#include "formats/onnx/read/ops/layers.h"
#include "formats/onnx/read/ops/linear.h"
#include "formats/onnx/read/registry.h"

namespace anymps::onnx {

namespace {

using Ints = std::vector<int64_t>;

Value* sum_of(Call& c, Value* a, Value* b) { return b ? c.add("add", {a, b}) : a; }

// The attribute `activation` by the name of the standard's op, with its parameters.
Value* activated(Call& c, Value* x, const std::vector<double>& params) {
  const std::string name = c.s("activation", "");
  const auto param = [&](size_t i, double otherwise) {
    return i < params.size() ? params[i] : otherwise;
  };
  if (name.empty()) return x;
  if (name == "Relu") return c.add("relu", {x});
  if (name == "Tanh") return c.add("tanh", {x});
  if (name == "Sigmoid") return c.add("sigmoid", {x});
  if (name == "Softplus") return c.add("softplus", {x});
  if (name == "Softsign") return c.add("softsign", {x});
  if (name == "Elu") return c.add("elu", {x}, {{"alpha", param(0, 1)}});
  if (name == "LeakyRelu") return c.add("leaky_relu", {x}, {{"alpha", param(0, 0.01)}});
  if (name == "HardSigmoid")
    return c.add("hard_sigmoid", {x}, {{"alpha", param(0, 0.2)}, {"beta", param(1, 0.5)}});
  if (name == "ThresholdedRelu") return c.add("thresholded_relu", {x}, {{"alpha", param(0, 1)}});
  if (name == "Clip" && params.size() == 2)
    return c.add("clamp", {x}, {{"min", params[0]}, {"max", params[1]}});
  c.unsupported("activation '{}' with {} parameters is not supported", name, params.size());
}

ONNX_READ_IN(kMicrosoft, FusedMatMul) {
  if (c.i("transBatchA", 0) != 0 || c.i("transBatchB", 0) != 0)
    c.unsupported("transBatchA and transBatchB are not supported");
  return {c.add("matmul", {c.in(0), c.in(1)},
                {{"transpose_a", c.rank(c.in(0)) > 1 && c.flag("transA", false)},
                 {"transpose_b", c.rank(c.in(1)) > 1 && c.flag("transB", false)},
                 {"alpha", c.f("alpha", 1.0)}})};
}
ONNX_READ_ALSO(kMicrosoft, TransposeMatMul, kMicrosoft, FusedMatMul);

ONNX_READ_IN(kMicrosoft, FusedGemm) {
  std::vector<double> params;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (c.has(name)) params.push_back(c.f(name));
  return {activated(c, gemm(c), params)};
}

ONNX_READ_IN(kMicrosoft, FusedConv) {
  const auto floats = c.floats("activation_params").value_or(std::vector<float>{});
  const NamedAttrs attrs = convolution_attrs(c);
  Value* y = c.add("conv", {c.in(0), c.in(1), c.opt(2), c.opt(3)}, attrs);
  return {activated(c, y, {floats.begin(), floats.end()})};
}

ONNX_READ_IN(kMicrosoft, NhwcConv) {
  NamedAttrs attrs = convolution_attrs(c);
  attrs.emplace_back("layout", "channels_last");
  return {c.add("conv", {c.in(0), c.in(1), c.opt(2)}, attrs)};
}

ONNX_READ_IN(kMicrosoft, Gelu) { return {c.add("gelu", {c.in(0)}, {{"approximate", "none"}})}; }
ONNX_READ_IN(kMicrosoft, BiasGelu) { return {c.add("gelu", {c.add("add", {c.in(0), c.in(1)})})}; }
ONNX_READ_IN(kMicrosoft, FastGelu) {
  return {c.add("gelu", {sum_of(c, c.in(0), c.opt(1))}, {{"approximate", "tanh"}})};
}
ONNX_READ_IN(kMicrosoft, QuickGelu) {
  Value* x = c.in(0);
  Value* scaled = c.add("mul", {x, c.scalar_like(x, c.f("alpha", 1.702f))});
  return {c.add("mul", {x, c.add("sigmoid", {scaled})})};
}
ONNX_READ_IN(kMicrosoft, BiasAdd) { return {sum_of(c, sum_of(c, c.in(0), c.in(1)), c.in(2))}; }

// mean and inverse deviation are f32.
Value* statistic(Call& c, Value* value) {
  return is_half(value->dtype()) ? c.cast(value, DType::kF32) : value;
}

ONNX_READ_IN(kMicrosoft, SkipLayerNormalization) {
  Value* sum = sum_of(c, c.add("add", {c.in(0), c.in(1)}), c.opt(4));
  const size_t outputs = c.wants(2) ? 3 : c.wants(1) ? 2 : 1;
  Values y = c.add_all("layer_norm", {sum, c.in(2), c.opt(3)},
                       {{"axis", -1}, {"epsilon", c.f("epsilon", 1e-12f)}}, outputs);
  y.resize(4, nullptr);
  for (size_t i = 1; i < outputs; ++i) y[i] = statistic(c, y[i]);
  y[3] = sum;
  return y;
}

// y and, if asked for, one over the root of the mean square.
Values rms(Call& c, Value* x, Value* scale, double epsilon, bool inverse) {
  const NamedAttrs attrs = {{"axis", c.i("axis", -1)}, {"epsilon", epsilon}};
  Values y = {c.add("rms_norm", {x, scale}, attrs), nullptr};
  if (!inverse) return y;
  const int64_t rank = c.rank(x);
  Ints axes;
  for (int64_t axis = c.axis("axis", -1, rank); axis < rank; ++axis) axes.push_back(axis);
  Value* wide = statistic(c, x);
  Value* mean = c.add("reduce_mean", {c.add("square", {wide})}, {{"axes", axes}});
  y[1] = c.add("rsqrt", {c.add("add", {mean, c.scalar_like(mean, epsilon)})});
  return y;
}

ONNX_READ(SimplifiedLayerNormalization) {
  c.ignore({"stash_type"});
  return rms(c, c.in(0), c.in(1), c.f("epsilon", 1e-5f), c.wants(1));
}
ONNX_READ_ALSO(kMicrosoft, SimplifiedLayerNormalization, kOnnx, SimplifiedLayerNormalization);

ONNX_READ_IN(kMicrosoft, SkipSimplifiedLayerNormalization) {
  Value* sum = sum_of(c, c.add("add", {c.in(0), c.in(1)}), c.opt(3));
  const Values y = rms(c, sum, c.in(2), c.f("epsilon", 1e-12f), c.wants(2));
  return {y[0], nullptr, y[1], sum};
}

// The sum of three embeddings, normalized; and how many tokens of a row the mask keeps.
ONNX_READ_IN(kMicrosoft, EmbedLayerNormalization) {
  Value *ids = c.in(0), *segments = c.opt(1), *words = c.in(2), *places = c.in(3),
        *kinds = c.opt(4), *mask = c.opt(7), *positions = c.opt(8);
  const int64_t mask_type = c.i("mask_index_type", 0);
  if (mask_type != 0) c.unsupported("mask_index_type {} is not supported", mask_type);
  Value* sum = c.add("gather", {words, ids}, {{"axis", 0}});
  if (positions) {
    sum = c.add("add", {sum, c.add("gather", {places, positions}, {{"axis", 0}})});
  } else {
    Value* length = c.add("shape", {ids}, {{"start", 1}, {"end", 2}});
    sum = c.add(
        "add",
        {sum, c.add("slice", {places, c.graph.ints({0}), length, c.graph.ints({0}), nullptr})});
  }
  if (segments && kinds)
    sum = c.add("add", {sum, c.add("gather", {kinds, segments}, {{"axis", 0}})});
  Value* y = c.add("layer_norm", {sum, c.in(5), c.in(6)},
                   {{"axis", -1}, {"epsilon", c.f("epsilon", 1e-12f)}});
  Value* counts = nullptr;
  if (c.wants(1)) {
    Value* kept = mask ? c.cast(mask, DType::kI32)
                       : c.add("mul", {c.cast(ids, DType::kI32), c.graph.scalar(DType::kI32, 0)});
    counts = c.add("reduce_sum", {kept}, {{"axes", Ints{1}}, {"keep_dims", false}});
  }
  return {y, counts, sum};
}

}  // namespace

}  // namespace anymps::onnx
