// SPDX-License-Identifier: Apache-2.0
// Elements of a few planes brought together by pixel, and pixels taken apart. Elements have 1, 2, 4
// or 8 bytes; distances are in elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anymps::cpu {

inline constexpr int64_t kMostPlanes = 4;

// to[i * planes + p] = from[p * plane + i] for two to kMostPlanes planes.
void interleave_planes(size_t element, const void* from, int64_t plane, int64_t planes,
                       int64_t count, void* to);
// to[p * plane + i] = from[i * planes + p]
void separate_planes(size_t element, const void* from, int64_t planes, int64_t count, void* to,
                     int64_t plane);
// to[i] = from[2 * i]
void take_every_second(size_t element, const void* from, int64_t count, void* to);

}  // namespace anymps::cpu
