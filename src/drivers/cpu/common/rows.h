// SPDX-License-Identifier: Apache-2.0
// Loops cut into rows, the innermost axis of several operands at once, and groups of elements that
// make one result each: what plain kernels with more than one input walk along.
#pragma once

#include <algorithm>
#include <array>

#include "drivers/cpu/common/loops.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

inline constexpr size_t kMostOperands = 10;
using Offsets = std::array<int64_t, kMostOperands>;  // of each operand, in elements

struct Rows {
  Loops outer;
  int64_t length = 1;
  Offsets steps{};

  Rows() = default;
  explicit Rows(Loops loops) : outer(std::move(loops)) {
    if (outer.extents.empty()) return;
    length = outer.extents.back();
    outer.extents.pop_back();
    for (size_t k = 0; k < outer.strides.size(); ++k) {
      steps[k] = outer.strides[k].back();
      outer.strides[k].pop_back();
    }
  }
  int64_t count() const { return outer.count(); }
  Offsets at(int64_t row) const {
    Offsets offsets{};
    for (size_t k = 0; k < outer.strides.size(); ++k) offsets[k] = outer.offset(k, row);
    return offsets;
  }
};

// Calls fn(offsets) for each row, on several threads. `ns` is what one element costs.
template <typename Fn>
void for_each_row(const Rows& rows, double ns, Fn&& fn) {
  if (rows.length == 0) return;
  parallel_for(0, rows.count(), 10 + ns * static_cast<double>(rows.length),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) fn(rows.at(i));
               });
}

// Elements of one shape in groups: those that differ along the reduced axes alone. Operand 0
// decides how they are walked: group by group where the reduced axes are innermost in memory, else
// many groups side by side, so that memory is read in the order in which it lies.
class Groups {
 public:
  static constexpr int64_t kMost = 64;  // groups side by side

  Groups(const Shape& shape, const std::vector<bool>& reduced,
         const std::vector<Strides>& operands) {
    Shape kept, gone;
    std::vector<Strides> kept_strides(operands.size()), gone_strides(operands.size());
    for (size_t i = 0; i < shape.size(); ++i) {
      (reduced[i] ? gone : kept).push_back(shape[i]);
      for (size_t k = 0; k < operands.size(); ++k)
        (reduced[i] ? gone_strides : kept_strides)[k].push_back(operands[k][i]);
    }
    count_ = element_count(gone);
    kept_ = Rows(make_loops(kept, kept_strides));
    gone_ = Rows(make_loops(gone, gone_strides));
    side_by_side_ =
        gone_.length > 1 && kept_.length > 1 && std::abs(kept_.steps[0]) < std::abs(gone_.steps[0]);
  }

  int64_t count() const { return count_; }  // elements of a group

  // Some groups that are walked together.
  class Block {
   public:
    Block(const Groups& groups, const Offsets& first, int64_t size)
        : groups_(groups), first_(first), size_(size) {}
    int64_t size() const { return size_; }
    // Where operand k is for the first element of group g.
    int64_t offset(size_t k, int64_t g) const { return first_[k] + g * groups_.kept_.steps[k]; }
    // Calls fn(offsets, steps, n, group_step) for runs of n elements. The i-th element of a run
    // belongs to group i * group_step of the block.
    template <typename Fn>
    void each(Fn&& fn) const {
      const Rows& gone = groups_.gone_;
      if (groups_.count_ == 0) return;
      for (int64_t row = 0, rows = gone.count(); row < rows; ++row) {
        Offsets at = gone.at(row);
        for (size_t k = 0; k < kMostOperands; ++k) at[k] += first_[k];
        if (!groups_.side_by_side_) {
          fn(at, gone.steps, gone.length, int64_t{0});
          continue;
        }
        for (int64_t i = 0; i < gone.length; ++i) {
          fn(at, groups_.kept_.steps, size_, int64_t{1});
          for (size_t k = 0; k < kMostOperands; ++k) at[k] += gone.steps[k];
        }
      }
    }

   private:
    const Groups& groups_;
    Offsets first_;
    int64_t size_;
  };

  // Calls fn(block) for blocks that together are all groups. `ns` is what one element costs.
  template <typename Fn>
  void run(double ns, Fn&& fn) const {
    if (kept_.length == 0) return;
    const int64_t width = side_by_side_ ? std::min(kMost, kept_.length) : 1;
    const int64_t blocks = (kept_.length + width - 1) / width;
    parallel_for(0, kept_.count() * blocks, 20 + ns * static_cast<double>(count_ * width),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     Offsets first = kept_.at(i / blocks);
                     const int64_t at = i % blocks * width;
                     for (size_t k = 0; k < kMostOperands; ++k) first[k] += at * kept_.steps[k];
                     fn(Block(*this, first, std::min(width, kept_.length - at)));
                   }
                 });
  }

 private:
  Rows kept_, gone_;
  int64_t count_ = 1;
  bool side_by_side_ = false;
};

}  // namespace anymps::cpu
