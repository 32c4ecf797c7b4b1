// SPDX-License-Identifier: Apache-2.0
// How running results take in the next element, where that is more than a function of one line.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "semantics/scalar_functions.h"

namespace anymps {

// ln(e^a + e^b), without overflow.
inline double log_of_sum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  const double high = std::max(a, b), low = std::min(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

// Whether `next` takes the place of the extremum so far: the last of equals does, and so does a
// NaN.
template <bool maximum, typename W>
bool is_new_extremum(W next, W so_far) {
  const bool behind = maximum ? next < so_far : next > so_far;
  if (behind) [[likely]]
    return false;
  return !scalar::is_nan_value(so_far) || scalar::is_nan_value(next);
}

}  // namespace anymps
