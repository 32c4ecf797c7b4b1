// SPDX-License-Identifier: Apache-2.0
// Bytes of a few planes brought together by pixel.
#pragma once

#include <cstdint>

namespace anymps::cpu {

inline constexpr int64_t kMostPlanes = 4;

// to[i * planes + p] = from[p * plane + i] for two to kMostPlanes planes.
void interleave_bytes(const uint8_t* from, int64_t plane, int64_t planes, int64_t count,
                      uint8_t* to);

}  // namespace anymps::cpu
