// SPDX-License-Identifier: Apache-2.0
// Which activations our own convolutions and products can apply; activation-inl.h has the formulas.
#pragma once

#include "ops/op.h"
#include "semantics/fused_activation.h"

namespace anymps::cpu {

struct TileActivation {
  Activation kind = Activation::kNone;
  float alpha = 0, beta = 0;
};

inline TileActivation tile_activation(const Attrs& attrs, const char* alpha, const char* beta) {
  return {parse_activation(attrs.s("activation")), static_cast<float>(attrs.f(alpha)),
          static_cast<float>(attrs.f(beta))};
}

inline bool tile_has(Activation kind) {
  return kind == Activation::kNone || kind == Activation::kRelu || kind == Activation::kClamp ||
         kind == Activation::kHardSwish || kind == Activation::kHardSigmoid;
}

}  // namespace anymps::cpu
