// SPDX-License-Identifier: Apache-2.0
// The fused activation over the accumulators of a convolution or matmul.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "drivers/reference/dense.h"
#include "semantics/fused_activation.h"

namespace anymps {

inline void activate(std::vector<double>& values, DType, const Attrs& attrs, const char* alpha,
                     const char* beta) {
  const Activation activation = parse_activation(attrs.s("activation"));
  const double a = attrs.f(alpha), b = attrs.f(beta);
  for (double& value : values) value = apply_activation(activation, value, a, b);
}

inline void activate(std::vector<WideComplex>&, DType, const Attrs&, const char*, const char*) {}

// Integers wrap to their width before relu and clamp; bounds are cut to the type's range.
inline void activate(std::vector<uint64_t>& values, DType dtype, const Attrs& attrs,
                     const char* alpha, const char* beta) {
  const Activation activation = parse_activation(attrs.s("activation"));
  if (activation == Activation::kNone) return;
  dispatch<kInt>(dtype, [&]<typename T>() {
    using Limits = std::numeric_limits<T>;
    const auto bound = [](double v) {
      if (v <= static_cast<double>(Limits::lowest())) return Limits::lowest();
      if (v >= static_cast<double>(Limits::max())) return Limits::max();
      return static_cast<T>(v);
    };
    const bool clamp = activation == Activation::kClamp;
    const T low = clamp ? bound(std::ceil(attrs.f(alpha))) : T(0);
    const T high = clamp ? bound(std::floor(attrs.f(beta))) : Limits::max();
    for (uint64_t& value : values)
      value = static_cast<uint64_t>(std::min(std::max(static_cast<T>(value), low), high));
  });
}

}  // namespace anymps
