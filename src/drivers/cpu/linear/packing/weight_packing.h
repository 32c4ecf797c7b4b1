// SPDX-License-Identifier: Apache-2.0
// Writes f32 weights in the blocked layouts that oneDNN's kernels want, without a primitive for
// each shape: making one takes longer than to pack most weights.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace anymps::cpu {

// Whether pack_weights can write `to` from a plain tensor `from`, both as oneDNN describes them:
// f32, and the innermost block lies along one axis.
bool can_pack_weights(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

// The same elements as oneDNN's reorder writes, zeros in the padding included.
void pack_weights(const dnnl::memory::desc& from, const float* plain, const dnnl::memory::desc& to,
                  float* packed);

}  // namespace anymps::cpu
