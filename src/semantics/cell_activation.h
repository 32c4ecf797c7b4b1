// SPDX-License-Identifier: Apache-2.0
// The activations of recurrent cells, by the names of ONNX in lower case.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "semantics/activation_formulas.h"

namespace anymps {

struct CellActivation {
  enum class Kind {
    kSigmoid,
    kTanh,
    kRelu,
    kNone,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus,
  };
  Kind kind = Kind::kTanh;
  double alpha = 0, beta = 0;

  static const std::vector<std::string>& names() {
    static const std::vector<std::string> kNames = {
        "sigmoid",         "tanh",       "relu",        "none", "affine",   "leakyrelu",
        "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu",  "softsign", "softplus"};
    return kNames;
  }
  bool has_alpha() const { return kind >= Kind::kAffine && kind <= Kind::kElu; }
  bool has_beta() const {
    return kind == Kind::kAffine || kind == Kind::kScaledTanh || kind == Kind::kHardSigmoid;
  }

  // Fails, naming the op, on another name. Alpha and beta are the usual ones.
  static CellActivation named(const std::string& name, const std::string& op) {
    for (size_t i = 0; i < names().size(); ++i) {
      if (names()[i] != name) continue;
      CellActivation result;
      result.kind = static_cast<Kind>(i);
      switch (result.kind) {
        case Kind::kLeakyRelu:
          result.alpha = 0.01;
          break;
        case Kind::kHardSigmoid:
          result.alpha = 0.2;
          result.beta = 0.5;
          break;
        case Kind::kScaledTanh:
          result.alpha = result.beta = 1;
          break;
        default:
          result.alpha = 1;
      }
      return result;
    }
    fail(Code::kInvalidArgument, "[{}] '{}' is not an activation of a recurrent cell", op, name);
  }

  double operator()(double x) const {
    switch (kind) {
      case Kind::kSigmoid:
        return scalar::sigmoid(x);
      case Kind::kTanh:
        return std::tanh(x);
      case Kind::kRelu:
        return scalar::relu(x);
      case Kind::kNone:
        return x;
      case Kind::kAffine:
        return alpha * x + beta;
      case Kind::kLeakyRelu:
        return scalar::leaky_relu(x, alpha);
      case Kind::kThresholdedRelu:
        return scalar::thresholded_relu(x, alpha);
      case Kind::kScaledTanh:
        return alpha * std::tanh(beta * x);
      case Kind::kHardSigmoid:
        return scalar::hard_sigmoid(x, alpha, beta);
      case Kind::kElu:
        return scalar::elu(x, alpha);
      case Kind::kSoftsign:
        return scalar::softsign(x);
      case Kind::kSoftplus:
        return scalar::softplus(x);
    }
    return x;
  }

  // How it moves with x, for which it gives y; at a kink that of the left side.
  double slope(double x, double y) const {
    switch (kind) {
      case Kind::kSigmoid:
        return y * (1 - y);
      case Kind::kTanh:
        return 1 - y * y;
      case Kind::kRelu:
        return x > 0 ? 1 : 0;
      case Kind::kNone:
        return 1;
      case Kind::kAffine:
        return alpha;
      case Kind::kLeakyRelu:
        return x > 0 ? 1 : alpha;
      case Kind::kThresholdedRelu:
        return x > alpha ? 1 : 0;
      case Kind::kScaledTanh:
        return beta * (alpha - (alpha == 0 ? 0 : y * y / alpha));
      case Kind::kHardSigmoid:
        return y > 0 && y < 1 ? alpha : 0;
      case Kind::kElu:
        return x > 0 ? 1 : alpha * std::exp(x);
      case Kind::kSoftsign:
        return 1 / ((1 + std::abs(x)) * (1 + std::abs(x)));
      case Kind::kSoftplus:
        return scalar::sigmoid(x);
    }
    return 1;
  }
};

}  // namespace anymps
