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

// One panel of a matrix: packed[depth, block] = plain[depth, lanes], zeros after the lanes. Strides
// are those of the plain matrix.
void pack_panel(const float* plain, int64_t lane_stride, int64_t lanes, int64_t depth_stride,
                int64_t depth, int64_t block, float* packed);
// The same where the plain matrix is dense along its depth. It allocates nothing: for runs.
void pack_transposed(const float* plain, int64_t lane_stride, int64_t lanes, int64_t depth,
                     int64_t block, float* packed);

}  // namespace anymps::cpu
