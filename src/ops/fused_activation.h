// SPDX-License-Identifier: Apache-2.0
// The activation that convolutions and matmuls apply to their result before they store it: its
// names in the op table, and its formula for scalars.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"

namespace anymps {

enum class Activation {
  kNone,
  kRelu,
  kClamp,
  kLeakyRelu,
  kElu,
  kGelu,
  kGeluTanh,
  kSilu,
  kSigmoid,
  kTanh,
  kHardSwish,
  kHardSigmoid,
};

// In the enum's order.
inline std::vector<std::string> activation_choices() {
  return {"none",      "relu", "clamp",   "leaky_relu", "elu",        "gelu",
          "gelu_tanh", "silu", "sigmoid", "tanh",       "hard_swish", "hard_sigmoid"};
}

inline Activation parse_activation(const std::string& text) {
  const std::vector<std::string> choices = activation_choices();
  for (size_t i = 0; i < choices.size(); ++i)
    if (choices[i] == text) return static_cast<Activation>(i);
  fail(Code::kInvalidArgument, "[activation] '{}' is not an activation", text);
}

inline const char* activation_doc() {
  return "applied last: clamp(alpha, beta), leaky_relu(alpha), elu(alpha), hard_sigmoid(alpha, "
         "beta)";
}

// T is float or double. NaN stays NaN.
template <typename T>
T apply_activation(Activation activation, T x, T alpha, T beta) {
  const auto clamp = [](T v, T low, T high) { return v < low ? low : v > high ? high : v; };
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < T(0) ? T(0) : x;
    case Activation::kClamp:
      return clamp(x, alpha, beta);
    case Activation::kLeakyRelu:
      return x < T(0) ? alpha * x : x;
    case Activation::kElu:
      return x < T(0) ? alpha * std::expm1(x) : x;
    case Activation::kGelu:
      return x * T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440)));
    case Activation::kGeluTanh: {
      const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
      return x * T(0.5) * (T(1) + std::tanh(inner));
    }
    case Activation::kSilu:
      return x / (T(1) + std::exp(-x));
    case Activation::kSigmoid:
      return T(1) / (T(1) + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kHardSwish:
      return x * clamp(x / T(6) + T(0.5), T(0), T(1));
    case Activation::kHardSigmoid:
      return clamp(alpha * x + beta, T(0), T(1));
  }
  return x;
}

}  // namespace anymps
