// SPDX-License-Identifier: Apache-2.0
// The activations' formulas, each under its op's name and written once: for the ops themselves, for
// those that convolutions and products apply to their results, and for the cells of recurrent
// layers. NaN stays NaN in all of them, and no tail is lost to a difference of large numbers.
#pragma once

#include <cmath>
#include <numbers>

namespace anymps::scalar {

// max first, then min.
inline constexpr auto clamp = []<typename W>(W x, W low, W high) {
  const W raised = x < low ? low : x;
  return raised > high ? high : raised;
};

inline constexpr auto relu = []<typename W>(W x) { return x < W{0} ? W{0} : x; };
inline constexpr auto sigmoid = []<typename W>(W x) { return W{1} / (W{1} + std::exp(-x)); };

// The others are for double alone.
inline constexpr auto leaky_relu = [](double x, double alpha) { return x < 0 ? alpha * x : x; };
inline constexpr auto prelu = leaky_relu;
inline constexpr auto elu = [](double x, double alpha) {
  return x < 0 ? alpha * std::expm1(x) : x;
};
inline constexpr auto selu = [](double x, double alpha, double gamma) {
  return gamma * elu(x, alpha);
};
inline constexpr auto celu = [](double x, double alpha) {
  return x < 0 ? std::fmin(0.0, alpha * std::expm1(x / alpha)) : x;
};
// 1 + erf(z) is erfc(-z), which is right for large negative z too.
inline constexpr auto gelu = [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); };
// (1 + tanh(z)) / 2 is sigmoid(2 z), which is right for large negative z too.
inline constexpr auto gelu_tanh = [](double x) {
  const double scale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return x / (1 + std::exp(-scale * (x + 0.044715 * x * x * x)));
};
inline constexpr auto silu = [](double x) { return x / (1 + std::exp(-x)); };
inline constexpr auto softplus = [](double x) {
  return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x)));
};
inline constexpr auto mish = [](double x) { return x * std::tanh(softplus(x)); };
inline constexpr auto softsign = [](double x) { return x / (1 + std::abs(x)); };
inline constexpr auto hard_sigmoid = [](double x, double alpha, double beta) {
  return clamp(alpha * x + beta, 0.0, 1.0);
};
inline constexpr auto hard_swish = [](double x) { return x * clamp(x / 6 + 0.5, 0.0, 1.0); };
inline constexpr auto thresholded_relu = [](double x, double alpha) { return x <= alpha ? 0 : x; };
inline constexpr auto hardshrink = [](double x, double alpha) {
  return std::abs(x) <= alpha ? 0 : x;
};
inline constexpr auto threshold = [](double x, double alpha, double value) {
  return x <= alpha ? value : x;
};
inline constexpr auto log_sigmoid = [](double x) { return -softplus(-x); };

// Their gradients: dy times the slope at x. A bound on x keeps products of zero and infinity away
// where the slope has long reached its limit.
inline constexpr auto gelu_gradient = [](double dy, double x) {
  const double z = clamp(x, -40.0, 40.0), below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double density = std::exp(-0.5 * z * z) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return dy * (below + z * density);
};
inline constexpr auto gelu_tanh_gradient = [](double dy, double x) {
  const double scale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double z = clamp(x, -40.0, 40.0), cubic = 0.044715 * z * z;
  const double s = sigmoid(scale * (z + cubic * z));
  return dy * (s * (1 + z * (1 - s) * scale * (1 + 3 * cubic)));
};
inline constexpr auto silu_gradient = [](double dy, double x) {
  const double z = clamp(x, -800.0, 800.0), s = sigmoid(z);
  return dy * (s * (1 + z * (1 - s)));
};
// tanh(ln(1 + e)) is n / (n + 2) with n = e (e + 2).
inline constexpr auto mish_gradient = [](double dy, double x) {
  const double z = clamp(x, -800.0, 40.0), e = std::exp(z), n = e * (e + 2);
  return dy * ((n * (n + 2) + 4 * z * e * (1 + e)) / ((n + 2) * (n + 2)));
};
inline constexpr auto sigmoid_gradient = [](double dy, double x) {
  return dy / (1 + std::exp(-x)) / (1 + std::exp(x));
};
inline constexpr auto softplus_gradient = [](double dy, double x) { return dy * sigmoid(x); };
inline constexpr auto log_sigmoid_gradient = [](double dy, double x) { return dy * sigmoid(-x); };
inline constexpr auto hard_swish_gradient = [](double dy, double x) {
  return x > -3 ? (x < 3 ? dy * (x / 3 + 0.5) : dy) : 0;
};
inline constexpr auto hard_sigmoid_gradient = [](double dy, double x, double alpha, double beta) {
  const double y = alpha * x + beta;
  return y > 0 && y < 1 ? dy * alpha : 0;
};
inline constexpr auto elu_gradient = [](double dy, double x, double alpha) {
  return x > 0 ? dy : dy * (alpha * std::exp(x));
};
inline constexpr auto hardtanh_gradient = [](double dy, double x, double min, double max) {
  return x > min && x < max ? dy : 0;
};
inline constexpr auto threshold_gradient = [](double dy, double x, double alpha) {
  return x > alpha ? dy : 0;
};
// From the activation's result.
inline constexpr auto sigmoid_result_gradient = [](double dy, double y) {
  return dy * (y * (1 - y));
};
inline constexpr auto tanh_result_gradient = [](double dy, double y) { return dy * (1 - y * y); };

// The ops that are one of these functions of floats and nothing more, and how many attributes it
// takes after x: the record's numbers in its order. Drivers make kernels from the list.
#define ANYMPS_ACTIVATIONS(ACTIVATION) \
  ACTIVATION(leaky_relu, 1)            \
  ACTIVATION(elu, 1)                   \
  ACTIVATION(selu, 2)                  \
  ACTIVATION(celu, 1)                  \
  ACTIVATION(silu, 0)                  \
  ACTIVATION(mish, 0)                  \
  ACTIVATION(softplus, 0)              \
  ACTIVATION(softsign, 0)              \
  ACTIVATION(sigmoid, 0)               \
  ACTIVATION(hard_sigmoid, 2)          \
  ACTIVATION(hard_swish, 0)            \
  ACTIVATION(thresholded_relu, 1)      \
  ACTIVATION(hardshrink, 1)            \
  ACTIVATION(threshold, 2)             \
  ACTIVATION(log_sigmoid, 0)

// The same for gradients: of dy and x, and as many attributes.
#define ANYMPS_ACTIVATION_GRADIENTS(GRADIENT) \
  GRADIENT(sigmoid_gradient, 0)               \
  GRADIENT(silu_gradient, 0)                  \
  GRADIENT(mish_gradient, 0)                  \
  GRADIENT(softplus_gradient, 0)              \
  GRADIENT(log_sigmoid_gradient, 0)           \
  GRADIENT(hard_swish_gradient, 0)            \
  GRADIENT(hard_sigmoid_gradient, 2)          \
  GRADIENT(elu_gradient, 1)                   \
  GRADIENT(hardtanh_gradient, 2)              \
  GRADIENT(threshold_gradient, 1)             \
  GRADIENT(sigmoid_result_gradient, 0)        \
  GRADIENT(tanh_result_gradient, 0)

}  // namespace anymps::scalar
