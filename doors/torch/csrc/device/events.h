// SPDX-License-Identifier: Apache-2.0
// Events are moments, since calls are done when they return.
#pragma once

#include <chrono>
#include <cstdint>

namespace anymps::aten {

using Moment = std::chrono::steady_clock::time_point;
inline Moment now() { return std::chrono::steady_clock::now(); }
inline double milliseconds(Moment from, Moment to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace anymps::aten
