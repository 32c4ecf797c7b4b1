// SPDX-License-Identifier: Apache-2.0
// Gradients of softmax and log_softmax from their results: line by line along the last axis, many
// lines side by side along another.
#include <algorithm>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/dense_rows.h"
#include "drivers/cpu/common/gradient_ops.h"
#include "drivers/cpu/kernel_family.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

constexpr int64_t kSideBySide = 256, kTogether = 64;  // columns; rows that are summed at once

// dense [outer, length, inner]
template <typename A>
class SoftmaxResultGradient final : public Kernel {
 public:
  SoftmaxResultGradient(const KernelRequest& request, bool log)
      : rows_(request.in(1).dtype), log_(log) {
    const Shape& shape = request.in(1).shape;
    const size_t axis =
        normalize_axis(request.attrs.i("axis"), request.in(1).rank(), request.op->name.c_str());
    length_ = shape[axis];
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != axis) (i < axis ? outer_ : inner_) *= shape[i];
  }

  void run(const KernelArgs& args) const override {
    if (length_ == 0 || inner_ == 0) return;
    const double ns = 0.3 * static_cast<double>(length_);
    if (inner_ == 1) {
      parallel_for(0, outer_, 10 + ns, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) run_line(args, i * length_);
      });
      return;
    }
    const int64_t blocks = (inner_ + kSideBySide - 1) / kSideBySide;
    const int64_t width = std::min(inner_, kSideBySide);
    parallel_for(0, outer_ * blocks, ns * static_cast<double>(width),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i % blocks * kSideBySide;
                     run_columns(args, i / blocks * length_ * inner_ + first,
                                 std::min(kSideBySide, inner_ - first));
                   }
                 });
  }
  bool in_place(size_t i, size_t) const override { return i < 2; }

 private:
  void run_line(const KernelArgs& args, int64_t first) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    alignas(64) A dy_tile[kRowTile], y_tile[kRowTile], dx_tile[kRowTile];
    double sum = 0;
    for_row_tiles(length_, [&](int64_t i, int64_t n) {
      const A* dy = rows_.read(args.inputs[0], first + i, n, dy_tile);
      sum +=
          log_ ? ops.sum(dy, n) : ops.dot(dy, rows_.read(args.inputs[1], first + i, n, y_tile), n);
    });
    for_row_tiles(length_, [&](int64_t i, int64_t n) {
      const A* dy = rows_.read(args.inputs[0], first + i, n, dy_tile);
      const A* y = rows_.read(args.inputs[1], first + i, n, y_tile);
      A* dx = rows_.target(args.outputs[0], first + i, dx_tile);
      (log_ ? ops.log_softmax_back : ops.softmax_back)(dy, y, static_cast<A>(sum), dx,
                                                       static_cast<size_t>(n));
      rows_.write(args.outputs[0], first + i, n, dx);
    });
  }

  void run_columns(const KernelArgs& args, int64_t first, int64_t n) const {
    const GradientOps<A>& ops = gradient_ops<A>();
    const size_t count = n;
    alignas(64) A dy_tile[kSideBySide], y_tile[kSideBySide], dx_tile[kSideBySide],
        part[kSideBySide], sum[kSideBySide] = {};
    // Halves are read row by row.
    const int64_t together = rows_.direct() ? kTogether : 1;
    for (int64_t i = 0; i < length_; i += together) {
      const size_t rows = std::min(together, length_ - i);
      const A* dy = rows_.read(args.inputs[0], first + i * inner_, n, dy_tile);
      if (log_)
        ops.column_sum(dy, inner_, rows, part, count);
      else
        ops.column_dot(dy, rows_.read(args.inputs[1], first + i * inner_, n, y_tile), inner_, rows,
                       part, count);
      ops.add(part, sum, count);
    }
    for (int64_t i = 0; i < length_; ++i) {
      const A* dy = rows_.read(args.inputs[0], first + i * inner_, n, dy_tile);
      const A* y = rows_.read(args.inputs[1], first + i * inner_, n, y_tile);
      A* dx = rows_.target(args.outputs[0], first + i * inner_, dx_tile);
      (log_ ? ops.log_softmax_back_each : ops.softmax_back_each)(dy, y, sum, dx, count);
      rows_.write(args.outputs[0], first + i * inner_, n, dx);
    }
  }

  DenseRows<A> rows_;
  bool log_;
  int64_t outer_ = 1, length_ = 0, inner_ = 1;
};

template <bool log>
KernelPtr make_result_gradient(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  return with_computed(request.in(1).dtype, [&]<typename A>() -> KernelPtr {
    return std::make_shared<SoftmaxResultGradient<A>>(request, log);
  });
}

const KernelFamily kResultGradients("simd", 10,
                                    {{"softmax_result_gradient", make_result_gradient<false>},
                                     {"log_softmax_gradient", make_result_gradient<true>}});

}  // namespace

}  // namespace anymps::cpu
