// SPDX-License-Identifier: Apache-2.0
// Reductions of segments of an axis, for dense tensors: the segments are found first, then each is
// reduced by one thread, in order.
#include "semantics/segments.h"

#include <algorithm>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/dense_rows.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/kernel_family.h"
#include "drivers/cpu/threads.h"

namespace anymps::cpu {

namespace {

template <typename A>
class SegmentKernel : public Kernel {
 public:
  size_t scratch_bytes() const override {
    return static_cast<size_t>(2 * outer_ * count_) * sizeof(int64_t);
  }

 protected:
  // Where x is among the inputs.
  SegmentKernel(const KernelRequest& request, size_t x)
      : mode_(parse_segment_mode(request.attrs.s("mode"))),
        has_initial_(request.attrs.b("has_initial")),
        start_(has_initial_ ? static_cast<A>(request.attrs.f("initial")) : segment_start<A>(mode_)),
        op_(request.op->name.c_str()),
        offsets_(!request.has(x + 1)),
        by_(offsets_ ? x + 2 : x + 1),
        wide_(request.in(by_).dtype == DType::kI64) {
    const Shape &shape = request.in(x).shape, &numbers = request.in(by_).shape;
    const size_t axis = numbers.size() - 1;
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != axis) (i < axis ? outer_ : inner_) *= shape[i];
    extent_ = shape[axis];
    row_ = numbers[axis];
    count_ = row_ - (offsets_ ? 1 : 0);
  }

  // fn(k, first, length) for segment k, whose rows of `inner_` elements begin at row `first`.
  template <typename Fn>
  void for_each(const KernelArgs& args, const Fn& fn) const {
    auto* found = static_cast<int64_t*>(args.scratch);
    for (int64_t o = 0; o < outer_; ++o) {
      const auto number = [&](int64_t i) {
        return wide_ ? static_cast<const int64_t*>(args.inputs[by_])[o * row_ + i]
                     : int64_t{static_cast<const int32_t*>(args.inputs[by_])[o * row_ + i]};
      };
      for_each_segment(op_, offsets_, count_, extent_, number,
                       [&](int64_t s, int64_t begin, int64_t end) {
                         int64_t* to = found + 2 * (o * count_ + s);
                         to[0] = o * extent_ + begin;
                         to[1] = end - begin;
                       });
    }
    const double ns = 5 + 0.5 * static_cast<double>(extent_ * inner_) /
                              static_cast<double>(std::max<int64_t>(count_, 1));
    parallel_for(0, outer_ * count_, ns, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) fn(k, found[2 * k], found[2 * k + 1]);
    });
  }

  SegmentMode mode_;
  bool has_initial_;
  A start_;
  int64_t outer_ = 1, inner_ = 1;

 private:
  const char* op_;
  bool offsets_;
  size_t by_;
  bool wide_;
  int64_t extent_ = 0, row_ = 0, count_ = 0;
};

template <typename A>
class SegmentReduce final : public SegmentKernel<A> {
 public:
  explicit SegmentReduce(const KernelRequest& request) : SegmentKernel<A>(request, 0) {}

  void run(const KernelArgs& args) const override {
    const auto* x = static_cast<const A*>(args.inputs[0]);
    auto* y = static_cast<A*>(args.outputs[0]);
    const int64_t inner = this->inner_;
    this->for_each(args, [&](int64_t k, int64_t first, int64_t length) {
      A* to = y + k * inner;
      std::fill_n(to, inner, this->start_);
      for (int64_t i = 0; i < length; ++i) join(x + (first + i) * inner, to);
      for (int64_t i = 0; i < inner; ++i)
        to[i] = segment_end(this->mode_, to[i], length, this->has_initial_);
    });
  }

 private:
  void join(const A* row, A* to) const {
    const auto each = [&](auto mode) {
      for (int64_t i = 0; i < this->inner_; ++i)
        to[i] = segment_join(decltype(mode)::value, to[i], row[i]);
    };
    switch (this->mode_) {
      case SegmentMode::kMax:
        return each(std::integral_constant<SegmentMode, SegmentMode::kMax>());
      case SegmentMode::kMin:
        return each(std::integral_constant<SegmentMode, SegmentMode::kMin>());
      case SegmentMode::kProd:
        return each(std::integral_constant<SegmentMode, SegmentMode::kProd>());
      default:
        return each(std::integral_constant<SegmentMode, SegmentMode::kSum>());
    }
  }
};

template <typename A>
class SegmentReduceGradient final : public SegmentKernel<A> {
 public:
  explicit SegmentReduceGradient(const KernelRequest& request)
      : SegmentKernel<A>(request, 2), bytes_(request.out().bytes()) {}

  void run(const KernelArgs& args) const override {
    clear(args.outputs[0], bytes_);  // offsets may leave elements out
    const int64_t inner = this->inner_;
    this->for_each(args, [&](int64_t k, int64_t first, int64_t length) {
      const auto at = [&](size_t i) { return static_cast<const A*>(args.inputs[i]); };
      for (int64_t i = 0; i < inner; ++i)
        column(at(0)[k * inner + i], at(1)[k * inner + i], at(2) + first * inner + i, length,
               static_cast<A*>(args.outputs[0]) + first * inner + i);
    });
  }

 private:
  void column(A dy, A y, const A* x, int64_t length, A* dx) const {
    const int64_t step = this->inner_;
    int64_t equal = 0;
    const bool extremum = this->mode_ == SegmentMode::kMax || this->mode_ == SegmentMode::kMin;
    for (int64_t i = 0; extremum && i < length; ++i) equal += is_segment_extremum(x[i * step], y);
    for (int64_t i = 0; i < length; ++i) {
      const A own = x[i * step];
      A& to = dx[i * step];
      if (this->mode_ == SegmentMode::kSum)
        to = dy;
      else if (this->mode_ == SegmentMode::kMean)
        to = dy / static_cast<A>(length);
      else if (extremum)
        to = is_segment_extremum(own, y) ? dy / static_cast<A>(equal) : A(0);
      else
        to = own == 0 || std::isnan(own) ? dy * others(x, i, length) : dy * y / own;
    }
  }
  A others(const A* x, int64_t but, int64_t length) const {
    A product = this->start_;
    for (int64_t i = 0; i < length; ++i)
      if (i != but) product *= x[i * this->inner_];
    return product;
  }

  size_t bytes_;
};

template <template <typename> class K>
KernelPtr make_segments(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  if (is_half(dtype)) return widened(request, make_segments<K>, why);
  if (!dense(request, why)) return nullptr;
  return with_computed(dtype,
                       [&]<typename A>() -> KernelPtr { return std::make_shared<K<A>>(request); });
}

const KernelFamily kSegments("dense", 10,
                             {{"segment_reduce", make_segments<SegmentReduce>},
                              {"segment_reduce_gradient", make_segments<SegmentReduceGradient>}});

}  // namespace

}  // namespace anymps::cpu
