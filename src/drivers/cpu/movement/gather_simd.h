// SPDX-License-Identifier: Apache-2.0
// Words of 32 bits picked by indices of 64, compiled for each instruction set.
#pragma once

#include <cstdint>

namespace anymps::cpu {

// y[i] = x[index * stride + i * step] for n indices on an axis of `extent`; negative ones count
// from the end. One that names no place reads the first: false then. n * step and extent * stride
// are below 2^31.
bool pick_words(const int32_t* x, const int64_t* indices, int64_t n, int64_t extent, int64_t stride,
                int64_t step, int32_t* y);

}  // namespace anymps::cpu
