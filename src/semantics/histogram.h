// SPDX-License-Identifier: Apache-2.0
// The bins of a histogram: their edges, and which one an element falls into.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace anymps {

class Bins {
 public:
  // Rising edges.
  explicit Bins(std::vector<double> edges) : edges_(std::move(edges)) {}
  // `count` equal parts of [low, high]; a range without extent is widened by `margin` on both
  // sides.
  Bins(int64_t count, double low, double high, double margin) : even_(true) {
    if (low == high) low -= margin, high += margin;
    const auto parts = static_cast<double>(count);
    for (int64_t i = 0; i < count; ++i)
      edges_.push_back(low + static_cast<double>(i) * ((high - low) / parts));
    edges_.push_back(high);
    scale_ = parts / (high - low);
  }

  const std::vector<double>& edges() const { return edges_; }
  int64_t count() const { return std::ssize(edges_) - 1; }
  // -1: outside of all, or NaN.
  int64_t find(double x) const {
    if (count() < 1 || !(x >= edges_.front() && x <= edges_.back())) return -1;
    if (x == edges_.back()) return count() - 1;
    if (!even_) return std::upper_bound(edges_.begin(), edges_.end(), x) - edges_.begin() - 1;
    int64_t bin =
        std::clamp<int64_t>(static_cast<int64_t>((x - edges_.front()) * scale_), 0, count() - 1);
    // The product is rounded: the edges decide.
    if (x < edges_[bin])
      --bin;
    else if (bin + 1 < count() && x >= edges_[static_cast<size_t>(bin) + 1])
      ++bin;
    return bin;
  }

 private:
  std::vector<double> edges_;
  double scale_ = 0;
  bool even_ = false;
};

}  // namespace anymps
