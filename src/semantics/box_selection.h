// SPDX-License-Identifier: Apache-2.0
// Which boxes survive non-maximum suppression: used to measure the result and to compute it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace anymps {

struct Box {
  float top = 0, left = 0, bottom = 0, right = 0;

  static Box corners(const float* b) {
    return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
  }
  // Height and y first.
  static Box centre(float y, float x, float h, float w) {
    return {y - h / 2, x - w / 2, y + h / 2, x + w / 2};
  }
  float area() const { return (bottom - top) * (right - left); }
};

// Whether the intersection over the union is above the threshold.
inline bool overlap(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0) || !(width > 0)) return false;
  const float both = height * width, all = a.area() + b.area() - both;
  if (!(a.area() > 0) || !(b.area() > 0) || !(all > 0)) return false;
  return both / all > threshold;
}

// ONNX's selection: [batch, class, box] for each survivor, by batch, class and falling score.
struct BoxSelection {
  const float* boxes = nullptr;   // [batches, count, 4], dense
  const float* scores = nullptr;  // [batches, classes, count], dense
  int64_t batches = 0, classes = 0, count = 0, most = 0;
  float iou_threshold = 0, score_threshold = 0;
  bool has_score_threshold = false, centres = false;

  std::vector<Box> boxes_of(int64_t batch) const {
    std::vector<Box> all;
    all.reserve(count);
    for (int64_t i = 0; i < count; ++i) {
      const float* b = boxes + (batch * count + i) * 4;
      all.push_back(centres ? Box::centre(b[1], b[0], b[3], b[2]) : Box::corners(b));
    }
    return all;
  }

  // The survivors of one class, best first.
  std::vector<int64_t> keep(const std::vector<Box>& all, int64_t batch, int64_t category) const {
    const float* score = scores + (batch * classes + category) * count;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < count; ++i)
      if (has_score_threshold ? score[i] > score_threshold : score[i] == score[i])
        order.push_back(i);  // never NaN
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return score[a] > score[b]; });
    std::vector<int64_t> kept;
    for (const int64_t i : order) {
      if (std::ssize(kept) >= most) break;
      const bool lost = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
        return overlap(all[i], all[k], iou_threshold);
      });
      if (!lost) kept.push_back(i);
    }
    return kept;
  }

  std::vector<std::array<int64_t, 3>> run() const {
    std::vector<std::array<int64_t, 3>> selected;
    for (int64_t n = 0; n < batches; ++n) {
      const std::vector<Box> all = boxes_of(n);
      for (int64_t c = 0; c < classes; ++c)
        for (const int64_t i : keep(all, n, c)) selected.push_back({n, c, i});
    }
    return selected;
  }
};

}  // namespace anymps
