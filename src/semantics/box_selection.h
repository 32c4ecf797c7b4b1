// SPDX-License-Identifier: Apache-2.0
// Which boxes survive non-maximum suppression: used to measure the result and to compute it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "semantics/sort_items.h"

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

// Boxes that were kept, side by side, so that one is compared with several at once.
class KeptBoxes {
 public:
  void push_back(const Box& box) {
    if (count_ % kTogether == 0) blocks_.emplace_back();
    Block& block = blocks_.back();
    const int64_t at = count_++ % kTogether;
    block.top[at] = box.top, block.left[at] = box.left;
    block.bottom[at] = box.bottom, block.right[at] = box.right;
    block.area[at] = box.area();
  }
  // Whether one of them overlaps `box`, as overlap() says it. Most have nothing in common with it.
  bool overlap(const Box& box, float threshold) const {
    const float area = box.area();
    if (!(area > 0)) return false;
    for (const Block& block : blocks_) {
      float heights[kTogether], widths[kTogether];
      int touches = 0;
      for (int64_t i = 0; i < kTogether; ++i) {
        const float bottom = block.bottom[i] < box.bottom ? block.bottom[i] : box.bottom;
        const float right = block.right[i] < box.right ? block.right[i] : box.right;
        const float top = block.top[i] > box.top ? block.top[i] : box.top;
        const float left = block.left[i] > box.left ? block.left[i] : box.left;
        heights[i] = bottom - top, widths[i] = right - left;
        touches |= static_cast<int>(heights[i] > 0) & static_cast<int>(widths[i] > 0);
      }
      if (touches == 0) continue;
      int lost = 0;
      for (int64_t i = 0; i < kTogether; ++i) {
        const float both = heights[i] * widths[i], all = area + block.area[i] - both;
        lost |= static_cast<int>(heights[i] > 0) & static_cast<int>(widths[i] > 0) &
                static_cast<int>(block.area[i] > 0) & static_cast<int>(all > 0) &
                static_cast<int>(both / all > threshold);
      }
      if (lost != 0) return true;
    }
    return false;
  }

 private:
  static constexpr int64_t kTogether = 24;  // more than gcc unrolls before it makes vectors
  // What is not there yet has no area.
  struct Block {
    float top[kTogether] = {}, left[kTogether] = {}, bottom[kTogether] = {}, right[kTogether] = {},
          area[kTogether] = {};
  };
  std::vector<Block> blocks_;
  int64_t count_ = 0;
};

// ONNX's selection: [batch, class, box] for each survivor, by batch, class and falling score.
struct BoxSelection {
  const float* boxes = nullptr;   // [batches, count, 4], dense
  const float* scores = nullptr;  // [batches, classes, count], dense
  int64_t batches = 0, classes = 0, count = 0, most = 0;
  float iou_threshold = 0, score_threshold = 0;
  bool has_score_threshold = false, centres = false;

  Box box_of(int64_t batch, int64_t i) const {
    const float* b = boxes + (batch * count + i) * 4;
    return centres ? Box::centre(b[1], b[0], b[3], b[2]) : Box::corners(b);
  }

  // The survivors of one class, best first.
  std::vector<int64_t> keep(int64_t batch, int64_t category) const {
    const float* score = scores + (batch * classes + category) * count;
    std::vector<SortItem<uint32_t>> items(2 * count);
    int64_t found = 0;
    for (int64_t i = 0; i < count; ++i) {  // never NaN; no branch depends on the scores
      items[found] = SortItem<uint32_t>::of(~key_of(score[i]), i);
      found += static_cast<int64_t>(has_score_threshold ? score[i] > score_threshold
                                                        : score[i] == score[i]);
    }
    const SortItem<uint32_t>* const order = sort_items(items.data(), items.data() + count, found);
    std::vector<int64_t> kept;
    KeptBoxes rivals;
    for (int64_t k = 0; k < found && std::ssize(kept) < most; ++k) {
      const Box box = box_of(batch, order[k].at());
      if (rivals.overlap(box, iou_threshold)) continue;
      kept.push_back(order[k].at());
      rivals.push_back(box);
    }
    return kept;
  }

  std::vector<std::array<int64_t, 3>> run() const {
    std::vector<std::array<int64_t, 3>> selected;
    for (int64_t n = 0; n < batches; ++n)
      for (int64_t c = 0; c < classes; ++c)
        for (const int64_t i : keep(n, c)) selected.push_back({n, c, i});
    return selected;
  }
};

}  // namespace anymps
