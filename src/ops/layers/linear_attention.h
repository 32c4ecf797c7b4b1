// SPDX-License-Identifier: Apache-2.0
// What linear_attention and its gradient have in common: the shapes of their inputs.
#pragma once

#include "ops/expect.h"

namespace anymps {

struct LinearAttentionShapes {
  Dim batch, length, width;  // width: of a head's values
  Dims state;                // [B, heads, D, Dv]
};

// Checks q, k, v, past, decay and beta, which are inputs 0 to 5 of both.
LinearAttentionShapes linear_attention_shapes(InferContext& ctx);

}  // namespace anymps
