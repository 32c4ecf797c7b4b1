// SPDX-License-Identifier: Apache-2.0
// Which scale belongs to which element of a quantized tensor. One rule serves all the ways in which
// tensors are quantized:
//   one scale            for the whole tensor
//   a vector of scales   one for each place on the axis
//   scales of x's rank   each is for a block: of block_size elements along the axis, or of as many
//                        as divide x evenly
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "base/dtype.h"
#include "base/shape.h"

namespace anymps {

struct QuantGroups {
  Shape blocks;     // element i of an axis has the scale at place i / blocks[axis]
  Strides strides;  // of the scales, in elements; 0 along axes where they do not differ

  int64_t offset(const Shape& index) const {
    int64_t sum = 0;
    for (size_t i = 0; i < index.size(); ++i) sum += index[i] / blocks[i] * strides[i];
    return sum;
  }
};

// The steps in which dynamic_quantize counts numbers between `low` <= 0 and `high` >= 0: 255 of
// them, one of which is 0.
struct DynamicSteps {
  float scale = 1, zero = 0;

  DynamicSteps() = default;
  DynamicSteps(float low, float high) : scale(high == low ? 1.0f : (high - low) / 255.0f) {
    const float place = 0.0f - low / scale;  // NaN where low is infinite
    zero = place > 0 ? std::nearbyint(std::min(place, 255.0f)) : 0.0f;
  }

  // The nearest of the 256 numbers; NaN: the least.
  float rounded(float x) const {
    const float step = std::nearbyint(x / scale) + zero;
    return ((step >= 0 ? std::min(step, 255.0f) : 0.0f) - zero) * scale;
  }
};

// Fails, naming the op, if the scales do not fit the tensor.
QuantGroups quant_groups(const char* op, const Shape& x, const Shape& scale,
                         const Strides& scale_strides, int64_t axis, int64_t block_size);

}  // namespace anymps
