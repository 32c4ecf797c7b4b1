// SPDX-License-Identifier: Apache-2.0
// The steady clock as the nanoseconds that `Timestamps` hold.
#pragma once

#include <chrono>
#include <cstdint>

#include "common/clock.h"

namespace anymps::server {

using common::now_ns;

inline std::chrono::steady_clock::time_point time_point(uint64_t ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
}

// now + microseconds, at most some centuries away: no configuration overflows it.
inline uint64_t after_us(uint64_t now, uint64_t microseconds) {
  constexpr uint64_t kFar = uint64_t{1} << 62;
  return microseconds > (kFar - now) / 1000 ? kFar : now + microseconds * 1000;
}

}  // namespace anymps::server
