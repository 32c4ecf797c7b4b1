// SPDX-License-Identifier: Apache-2.0
// Gradients of ops that read each axis by itself (pad, resize): weighted sums whose weights are
// products of one factor per axis. Which elements of the gradient go into a place is listed axis by
// axis when the kernel is made, so that each element of dx is written once, by one thread.
#pragma once

#include <complex>
#include <vector>

#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"

namespace anymps::cpu {

struct Tap {
  int64_t offset = 0;  // in the gradient, in elements
  double weight = 1;   // 1 or -1 for what is not a float
};
using Taps = std::vector<Tap>;

template <typename T>
class SeparableSum {
 public:
  // sources[axis][place] are the elements of the gradient along the axis that make up dx there.
  SeparableSum(const TensorDesc& dx, std::vector<std::vector<Taps>> sources)
      : shape_(dx.shape), strides_(dx.strides), sources_(std::move(sources)) {
    if (shape_.empty()) {
      shape_.push_back(1);
      strides_.push_back(1);
      sources_.push_back({{Tap{}}});
    }
    size_t most = 1;
    for (const auto& axis : sources_) {
      size_t longest = 1;
      for (const Taps& taps : axis) longest = std::max(longest, taps.size());
      most *= longest;
    }
    ns_ = 2 * static_cast<double>(most);
  }

  void operator()(const KernelArgs& args) const {
    const int64_t count = element_count(shape_), columns = shape_.back();
    if (count == 0) return;
    parallel_for(0, count / columns, 20 + ns_ * static_cast<double>(columns),
                 [&](int64_t begin, int64_t end) {
                   Taps outer, next;
                   for (int64_t row = begin; row < end; ++row) run_row(args, row, outer, next);
                 });
  }

 private:
  using Sum = std::conditional_t<kIsComplexType<T>, WideComplex,
                                 std::conditional_t<std::is_integral_v<T>, uint64_t, double>>;

  void run_row(const KernelArgs& args, int64_t row, Taps& outer, Taps& next) const {
    const T* gradient = static_cast<const T*>(args.inputs[0]);
    T* dx = static_cast<T*>(args.outputs[0]);
    outer.assign(1, Tap{});
    for (size_t axis = shape_.size() - 1; axis-- > 0; row /= shape_[axis]) {
      const int64_t place = row % shape_[axis];
      dx += place * strides_[axis];
      next.clear();
      for (const Tap& tap : sources_[axis][place])
        for (const Tap& other : outer)
          next.push_back({tap.offset + other.offset, tap.weight * other.weight});
      std::swap(outer, next);
    }
    for (const Taps& taps : sources_.back()) {
      Sum sum{};
      for (const Tap& first : outer)
        for (const Tap& second : taps) {
          const auto element =
              static_cast<Sum>(static_cast<Compute<T>>(gradient[first.offset + second.offset]));
          const double weight = first.weight * second.weight;
          if constexpr (std::is_integral_v<T>)
            sum = weight > 0 ? sum + element : sum - element;
          else
            sum += weight * element;
        }
      *dx = static_cast<T>(static_cast<Compute<T>>(sum));
      dx += strides_.back();
    }
  }

  Shape shape_;
  Strides strides_;
  std::vector<std::vector<Taps>> sources_;
  double ns_ = 1;
};

}  // namespace anymps::cpu
