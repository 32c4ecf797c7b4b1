// SPDX-License-Identifier: Apache-2.0
// The steady clock as numbers.
#pragma once

#include <chrono>
#include <cstdint>

namespace anymps::common {

inline uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

inline double now_ms() { return static_cast<double>(now_ns()) * 1e-6; }

}  // namespace anymps::common
