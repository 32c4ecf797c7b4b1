// SPDX-License-Identifier: Apache-2.0
// What linear_attention and its gradient have in common: the shapes and extents of their inputs.
#pragma once

#include <optional>
#include <vector>

#include "ops/expect.h"
#include "semantics/linear_attention.h"

namespace anymps {

struct LinearAttentionShapes {
  Dim batch, length, width;  // width: of a head's values
  Dims state;                // [B, heads, D, Dv]
};

// Checks q, k, v, past, decay and beta, which are inputs 0 to 5 of both.
LinearAttentionShapes linear_attention_shapes(InferContext& ctx);
// The extents and the scale, from the shapes of these inputs; nullopt: absent.
LinearAttention linear_attention_of(const Attrs& attrs,
                                    const std::vector<std::optional<Shape>>& inputs);

// Parts of a record.
OpWriter& linear_attention_rows(OpWriter& op);   // q, k and v
OpWriter& linear_attention_gates(OpWriter& op);  // decay and beta
OpWriter& linear_attention_heads(OpWriter& op);  // the attributes, and how inputs are drawn

}  // namespace anymps
