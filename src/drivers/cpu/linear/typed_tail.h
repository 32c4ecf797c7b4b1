// SPDX-License-Identifier: Apache-2.0
// Scale, summands and activation of a product of typed_gemm.h, in a second pass over its result.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "drivers/cpu/common/rows.h"
#include "drivers/kernel.h"
#include "semantics/fused_activation.h"
#include "semantics/scalar_functions.h"

namespace anymps::cpu {

struct TypedTail {
  double scale = 1;
  Activation activation = Activation::kNone;
  double alpha = 0, beta = 0;
  std::vector<size_t> summands;  // numbers of the inputs
  Rows rows;                     // operands: y, then the summands

  TypedTail() = default;
  TypedTail(const Attrs& attrs, const char* alpha_name, const char* beta_name)
      : activation(parse_activation(attrs.s("activation"))),
        alpha(attrs.f(alpha_name)),
        beta(attrs.f(beta_name)) {}

  void run(DType dtype, const KernelArgs& args) const;
};

}  // namespace anymps::cpu
