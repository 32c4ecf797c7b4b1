// SPDX-License-Identifier: Apache-2.0
// Norms of any order and their slopes: distances and vector norms are made of them.
#pragma once

#include <algorithm>
#include <cmath>

namespace anymps {

// Collects absolute values and gives their norm of order p: 0 counts those that are not 0, inf and
// -inf take the largest and the smallest. NaN stays.
class Norm {
 public:
  explicit Norm(double p) : p_(p), sum_(p == -HUGE_VAL ? HUGE_VAL : 0) {}

  void add(double size) {
    if (p_ == 2)
      sum_ += size * size;
    else if (p_ == 1)
      sum_ += size;
    else if (p_ == 0)
      sum_ += std::isnan(size) ? size : size != 0 ? 1 : 0;
    else if (std::isinf(p_))
      sum_ = std::isnan(size) || std::isnan(sum_) ? sum_ + size
             : p_ > 0                             ? std::max(sum_, size)
                                                  : std::min(sum_, size);
    else
      sum_ += std::pow(size, p_);
  }
  double value() const {
    if (p_ == 2) return std::sqrt(sum_);
    return p_ == 0 || p_ == 1 || std::isinf(p_) ? sum_ : std::pow(sum_, 1 / p_);
  }

 private:
  double p_, sum_;
};

// The slope of the norm of order p, which is `norm`, to an element d of the vector; 0 where it has
// none. `single`: the norm is one that was rounded to f32.
inline double norm_slope(double d, double norm, double p, bool single) {
  if (p == 0 || (d == 0 && p < 2) || norm == 0) return 0;
  const double sign = d > 0 ? 1 : d < 0 ? -1 : d;
  if (p == 1) return sign;
  if (p == 2) return d / norm;
  if (std::isinf(p)) {
    const double size = single ? static_cast<float>(std::abs(d)) : std::abs(d);
    return size == norm ? sign : 0;
  }
  return sign * std::pow(std::abs(d) / norm, p - 1);
}

}  // namespace anymps
