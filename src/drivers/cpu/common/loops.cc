// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/common/loops.h"

#include <cstdlib>
#include <numeric>

namespace anymps::cpu {

Loops merge_loops(const Shape& shape, std::vector<Strides> strides) {
  Loops loops;
  loops.strides.resize(strides.size());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    bool merge = !loops.extents.empty();
    for (size_t k = 0; merge && k < strides.size(); ++k)
      merge = loops.strides[k].back() == strides[k][axis] * shape[axis];
    if (merge) {
      loops.extents.back() *= shape[axis];
      for (size_t k = 0; k < strides.size(); ++k) loops.strides[k].back() = strides[k][axis];
    } else {
      loops.extents.push_back(shape[axis]);
      for (size_t k = 0; k < strides.size(); ++k) loops.strides[k].push_back(strides[k][axis]);
    }
  }
  return loops;
}

Loops make_loops(const Shape& shape, std::vector<Strides> strides) {
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    for (const Strides& s : strides)
      if (std::abs(s[a]) != std::abs(s[b])) return std::abs(s[a]) > std::abs(s[b]);
    return false;
  });
  Shape sorted(shape.size());
  std::vector<Strides> moved(strides.size(), Strides(shape.size()));
  for (size_t i = 0; i < order.size(); ++i) {
    sorted[i] = shape[order[i]];
    for (size_t k = 0; k < strides.size(); ++k) moved[k][i] = strides[k][order[i]];
  }
  return merge_loops(sorted, std::move(moved));
}

}  // namespace anymps::cpu
