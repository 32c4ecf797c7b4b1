// SPDX-License-Identifier: Apache-2.0
// What detectors keep of boxes that have a score for each class, as PaddlePaddle does it: used to
// measure the result and to compute it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace anymps {

struct Detection {
  int64_t label = 0, box = 0;
  float score = 0;
};

// Boxes are [x1, y1, x2, y2]; of pixels, which are not normalized, both ends belong to the box.
struct Detector {
  const float* boxes = nullptr;   // [images, count, 4], dense
  const float* scores = nullptr;  // [images, classes, count], dense
  int64_t images = 0, classes = 0, count = 0;
  int64_t background = -1;  // a label that is passed over
  int64_t most_before = -1,
          most = -1;  // of a class before boxes are compared, and of an image after
  float score_threshold = 0;
  bool normalized = true;

  // multiclass_nms
  float iou_threshold = 0, eta = 1;
  // matrix_nms
  float post_threshold = 0, sigma = 2;
  bool gaussian = false;

  float iou(const float* a, const float* b) const {
    if (b[0] > a[2] || b[2] < a[0] || b[1] > a[3] || b[3] < a[1]) return 0;
    const float one = normalized ? 0 : 1;
    const float width = std::min(a[2], b[2]) - std::max(a[0], b[0]) + one;
    const float height = std::min(a[3], b[3]) - std::max(a[1], b[1]) + one;
    const float both = width * height;
    return both / (area(a) + area(b) - both);
  }

  // The boxes of one class that come into question, best first.
  std::vector<int64_t> candidates(int64_t image, int64_t label) const {
    const float* score = scores + (image * classes + label) * count;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < count; ++i)
      if (score[i] > score_threshold) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return score[a] > score[b]; });
    if (most_before >= 0 && std::ssize(order) > most_before) order.resize(most_before);
    return order;
  }

  // fn(label, candidates) for each class that counts.
  template <typename Fn>
  void for_each_class(int64_t image, Fn fn) const {
    for (int64_t label = 0; label < classes; ++label)
      if (label != background) fn(label, candidates(image, label));
  }

  // Boxes are dropped that overlap a better one of their class. The result is by label; best first.
  std::vector<Detection> suppress(int64_t image) const {
    std::vector<Detection> all;
    const float* own = boxes + image * count * 4;
    for_each_class(image, [&](int64_t label, const std::vector<int64_t>& order) {
      std::vector<int64_t> kept;
      float limit = iou_threshold;
      for (const int64_t i : order) {
        const bool lost = std::any_of(kept.begin(), kept.end(), [&](int64_t better) {
          return iou(own + i * 4, own + better * 4) > limit;
        });
        if (lost) continue;
        kept.push_back(i);
        all.push_back({label, i, score_of(image, label, i)});
        if (eta < 1 && limit > 0.5f) limit *= eta;
      }
    });
    if (!over(all)) return all;
    best_first(all);
    all.resize(most);
    std::stable_sort(all.begin(), all.end(),
                     [](const Detection& a, const Detection& b) { return a.label < b.label; });
    return all;
  }

  // Scores fall by how much a box overlaps better ones, and boxes stay that are above the threshold
  // then. The result is best first.
  std::vector<Detection> decay(int64_t image) const {
    std::vector<Detection> all;
    const float* own = boxes + image * count * 4;
    for_each_class(image, [&](int64_t label, const std::vector<int64_t>& order) {
      std::vector<float> highest(order.size(), 0.0f), overlaps;  // with better ones
      for (size_t i = 0; i < order.size(); ++i) {
        overlaps.assign(i, 0.0f);
        float lowest = 1;
        for (size_t k = 0; k < i; ++k) {
          overlaps[k] = iou(own + order[i] * 4, own + order[k] * 4);
          highest[i] = std::max(highest[i], overlaps[k]);
          const float other = highest[k];
          const float factor = gaussian
                                   ? std::exp((other * other - overlaps[k] * overlaps[k]) * sigma)
                                   : (1 - overlaps[k]) / (1 - other);
          lowest = std::min(lowest, factor);
        }
        const float score = lowest * score_of(image, label, order[i]);
        if (score > post_threshold) all.push_back({label, order[i], score});
      }
    });
    best_first(all);
    if (over(all)) all.resize(most);
    return all;
  }

 private:
  float area(const float* b) const {
    if (b[2] < b[0] || b[3] < b[1]) return 0;
    const float one = normalized ? 0 : 1;
    return (b[2] - b[0] + one) * (b[3] - b[1] + one);
  }
  float score_of(int64_t image, int64_t label, int64_t i) const {
    return scores[(image * classes + label) * count + i];
  }
  bool over(const std::vector<Detection>& all) const { return most >= 0 && std::ssize(all) > most; }
  static void best_first(std::vector<Detection>& all) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Detection& a, const Detection& b) { return a.score > b.score; });
  }
};

// What yolo_box makes of one cell of one anchor.
struct YoloRule {
  float scale = 1, threshold = 0, iou_factor = 0.5f;
  int64_t downsample = 32;
  bool clip = true;

  static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
  float confidence(float object, const float* iou) const {
    const float own = sigmoid(object);
    if (!iou) return own;
    return std::pow(own, 1 - iou_factor) * std::pow(sigmoid(*iou), iou_factor);
  }
  struct Cell {
    int64_t row, column, height, width;  // and of how many
    float anchor_width, anchor_height, image_height, image_width;
  };
  // From the raw x, y, width and height.
  void box(const Cell& cell, const float* raw, float* to) const {
    const float bias = -0.5f * (scale - 1);
    const auto rows = static_cast<float>(cell.height), columns = static_cast<float>(cell.width);
    const auto ratio = static_cast<float>(downsample);
    const float x = (static_cast<float>(cell.column) + sigmoid(raw[0]) * scale + bias) *
                    cell.image_width / columns;
    const float y =
        (static_cast<float>(cell.row) + sigmoid(raw[1]) * scale + bias) * cell.image_height / rows;
    const float w = std::exp(raw[2]) * cell.anchor_width * cell.image_width / (ratio * columns);
    const float h = std::exp(raw[3]) * cell.anchor_height * cell.image_height / (ratio * rows);
    to[0] = x - w / 2, to[1] = y - h / 2, to[2] = x + w / 2, to[3] = y + h / 2;
    if (!clip) return;
    to[0] = std::max(to[0], 0.0f), to[1] = std::max(to[1], 0.0f);
    to[2] = std::min(to[2], cell.image_width - 1), to[3] = std::min(to[3], cell.image_height - 1);
  }
};

}  // namespace anymps
