// SPDX-License-Identifier: Apache-2.0
// Activations of torch.
#include "formats/executorch/operators/aten.h"

namespace anymps::executorch {

namespace {

Values gelu(KernelArguments& c) {
  const std::string approximate = c.s(1);
  c.check(approximate == "none" || approximate == "tanh", "approximate '{}' is not none or tanh",
          approximate);
  return {c.add("gelu", {c.tensor(0)}, {{"approximate", approximate}})};
}

Values leaky_relu(KernelArguments& c) {
  return {c.add("leaky_relu", {c.tensor(0)}, {{"alpha", c.f(1)}})};
}

// scale * (x > 0 ? x : alpha * (exp(x * input_scale) - 1))
Values elu(KernelArguments& c) {
  const double alpha = c.f(1), scale = c.f(2), input_scale = c.f(3);
  Value* x = c.tensor(0);
  if (scale == 1 && input_scale == 1) return {c.add("elu", {x}, {{"alpha", alpha}})};
  if (input_scale == 1) return {c.add("selu", {x}, {{"alpha", alpha}, {"gamma", scale}})};
  x = c.cast(x, wide_dtype(x->dtype()));
  Value* low = c.add("expm1", {with_scalar(c, "mul", x, input_scale)});
  Value* negative = with_scalar(c, "less_equal", x, 0);
  return {c.add("where", {negative, with_scalar(c, "mul", low, alpha * scale),
                          with_scalar(c, "mul", x, scale)})};
}

Values hardtanh(KernelArguments& c) {
  Value* x = c.tensor(0);
  if (is_float(x->dtype())) return {c.add("clamp", {x}, {{"min", c.f(1)}, {"max", c.f(2)}})};
  return {c.add("clamp", {x, c.number(1, x->dtype()), c.number(2, x->dtype())})};
}

Values hardsigmoid(KernelArguments& c) {
  return {c.add("hard_sigmoid", {c.tensor(0)}, {{"alpha", 1.0 / 6}, {"beta", 0.5}})};
}

// Half of an axis, gated by the other half.
Values glu(KernelArguments& c) {
  Value* x = c.tensor(0);
  const int64_t axis = c.axis(1, x), extent = known_extent(c, x, axis);
  c.check(extent % 2 == 0, "axis {} has the odd extent {}", axis, extent);
  x = c.cast(x, wide_dtype(x->dtype()));
  Value* gate = c.add("sigmoid", {slice(c, x, axis, extent / 2, extent)});
  return {c.add("mul", {slice(c, x, axis, 0, extent / 2), gate})};
}

// Linear where beta * x is above the threshold.
Values softplus(KernelArguments& c) {
  const double beta = c.f(1), threshold = c.f(2);
  Value* x = c.tensor(0);
  x = c.cast(x, wide_dtype(x->dtype()));
  Value* scaled = with_scalar(c, "mul", x, beta);
  Value* soft = with_scalar(c, "div", c.add("softplus", {scaled}), beta);
  return {c.add("where", {with_scalar(c, "greater", scaled, threshold), x, soft})};
}

Values threshold(KernelArguments& c) {
  Value* x = c.tensor(0);
  Value* below = c.add("less_equal", {x, c.number(1, x->dtype())});
  return {c.add("where", {below, c.number(2, x->dtype()), x})};
}

// A scalar counts as a vector of one.
Values softmax(KernelArguments& c) {
  Value* x = c.tensor(0);
  x = c.cast(x, c.b(2) ? DType::kF32 : float_dtype(x->dtype()));
  const int64_t axis = c.axis(1, x), rank = c.rank(x);
  Value* y = c.add(c.engine_op, {at_least_1d(c, x)}, {{"axis", axis}});
  return {rank == 0 ? reshape(c, y, {}) : y};
}

const KernelConverters kAtenActivation{
    {"aten::_log_softmax.out", softmax, "log_softmax"},
    {"aten::_softmax.out", softmax, "softmax"},
    {"aten::elu.out", elu},
    {"aten::gelu.out", gelu},
    {"aten::glu.out", glu},
    {"aten::hardsigmoid.out", hardsigmoid},
    {"aten::hardtanh.out", hardtanh},
    {"aten::leaky_relu.out", leaky_relu},
    {"aten::softplus.out", softplus},
    {"aten::threshold.out", threshold},
};

}  // namespace

}  // namespace anymps::executorch
