// SPDX-License-Identifier: Apache-2.0
// The activation that convolutions and matmuls apply to their result before they store it: its
// names in the op table, and what it does to a number.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "semantics/activation_formulas.h"

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

// The op of the activation's name, on one number.
inline double apply_activation(Activation activation, double x, double alpha, double beta) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return scalar::relu(x);
    case Activation::kClamp:
      return scalar::clamp(x, alpha, beta);
    case Activation::kLeakyRelu:
      return scalar::leaky_relu(x, alpha);
    case Activation::kElu:
      return scalar::elu(x, alpha);
    case Activation::kGelu:
      return scalar::gelu(x);
    case Activation::kGeluTanh:
      return scalar::gelu_tanh(x);
    case Activation::kSilu:
      return scalar::silu(x);
    case Activation::kSigmoid:
      return scalar::sigmoid(x);
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kHardSwish:
      return scalar::hard_swish(x);
    case Activation::kHardSigmoid:
      return scalar::hard_sigmoid(x, alpha, beta);
  }
  return x;
}

}  // namespace anymps
