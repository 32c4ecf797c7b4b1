// SPDX-License-Identifier: Apache-2.0
// stencil on the CPU: where each tap of each place lies is listed axis by axis when the kernel is
// made, borders included.
#include "ops/signal/stencil.h"
#include "drivers/cpu/cpu_kernel.h"

#include <cmath>

#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/threads.h"
#include "semantics/border.h"
#include "semantics/elements.h"

namespace anymps::cpu {

namespace {

enum class Reduce { kSum, kProduct, kMin, kMax };

struct Tap {
  int64_t offset = 0;
  double sign = 1;  // 0: outside
  int64_t weight = 0;
};

template <typename T>
class StencilKernel final : public Kernel {
 public:
  explicit StencilKernel(const KernelRequest& request)
      : y_(request.out()), value_(double{static_cast<T>(request.attrs.f("value"))}) {
    const TensorDesc &x = request.in(0), &weights = request.in(1);
    const StencilOnX on_x(request.attrs, x.shape, weights.shape);
    const Stencil& stencil = on_x.stencil;
    const std::string& reduce = on_x.reduce;
    reduce_ = reduce == "sum"         ? Reduce::kSum
              : reduce == "product"   ? Reduce::kProduct
              : reduce.ends_with("n") ? Reduce::kMin
                                      : Reduce::kMax;
    place_ = reduce.starts_with("arg");
    for (size_t i = 0; i < x.shape.size(); ++i) {
      axes_.emplace_back();
      for (int64_t at = 0; at < y_.shape[i]; ++at) {
        std::vector<Tap>& taps = axes_.back().emplace_back();
        if (i < on_x.lead) {
          taps.push_back({at * x.strides[i], 1, 0});
          continue;
        }
        const size_t k = i - on_x.lead;
        for (int64_t t = 0; t < weights.shape[k]; ++t) {
          const auto element = border_element(
              on_x.border, at * stencil.strides[k] + t * stencil.dilations[k] + stencil.first[k],
              on_x.in[k]);
          taps.push_back({element ? element->place * x.strides[i] : 0,
                          !element           ? 0.0
                          : element->negated ? -1.0
                                             : 1.0,
                          t * weights.strides[k]});
        }
      }
    }
    ns_ = 2 * static_cast<double>(weights.count());
  }

  void run(const KernelArgs& args) const override {
    if (y_.count() == 0) return;
    const int64_t columns = y_.shape.back();
    parallel_for(0, y_.count() / columns, 20 + ns_ * static_cast<double>(columns),
                 [&](int64_t begin, int64_t end) {
                   std::vector<Tap> outer, next;
                   for (int64_t row = begin; row < end; ++row) {
                     const int64_t to = combine(row, outer, next);
                     run_row(args, outer, to);
                   }
                 });
  }

 private:
  // The taps of all axes but the last for a row of y, in row-major order; returns where it begins.
  int64_t combine(int64_t row, std::vector<Tap>& outer, std::vector<Tap>& next) const {
    outer.assign(1, Tap{});
    int64_t to = 0;
    for (size_t axis = axes_.size() - 1; axis-- > 0; row /= y_.shape[axis]) {
      const int64_t at = row % y_.shape[axis];
      to += at * y_.strides[axis];
      next.clear();
      for (const Tap& a : axes_[axis][at])
        for (const Tap& b : outer)
          next.push_back({a.offset + b.offset, a.sign * b.sign, a.weight + b.weight});
      std::swap(outer, next);
    }
    return to;
  }

  void run_row(const KernelArgs& args, const std::vector<Tap>& outer, int64_t to) const {
    const T* x = static_cast<const T*>(args.inputs[0]);
    const T* weights = static_cast<const T*>(args.inputs[1]);
    for (const std::vector<Tap>& taps : axes_.back()) {
      double result = 0;
      int64_t count = 0, best = 0;
      for (const Tap& a : outer)
        for (const Tap& b : taps) {
          const double sign = a.sign * b.sign;
          const double element =
              sign == 0 ? value_ : sign * static_cast<double>(x[a.offset + b.offset]);
          const double product = element * static_cast<double>(weights[a.weight + b.weight]);
          if (count == 0)
            result = product;
          else if (reduce_ == Reduce::kSum)
            result += product;
          else if (reduce_ == Reduce::kProduct)
            result *= product;
          else if (!std::isnan(result) &&
                   (std::isnan(product) ||
                    (reduce_ == Reduce::kMin ? product < result : product > result)))
            result = product, best = count;
          ++count;
        }
      if (place_)
        static_cast<int64_t*>(args.outputs[0])[to] = best;
      else
        static_cast<T*>(args.outputs[0])[to] = static_cast<T>(result);
      to += y_.strides.back();
    }
  }

  TensorDesc y_;
  double value_, ns_ = 1;
  Reduce reduce_ = Reduce::kSum;
  bool place_ = false;
  std::vector<std::vector<std::vector<Tap>>> axes_;  // [axis][place of y][tap]
};

CPU_KERNEL(stencil, "taps") {
  if (is_half(request.in(0).dtype)) {
    // The border's value is an element: f32 must not hold what a half cannot.
    const double value = request.attrs.f("value");
    alignas(16) char half[16] = {};
    store_number(request.in(0).dtype, value, half);
    if (load_number(request.in(0).dtype, half) != value)
      return refuse(why, fmt::format("{} is no {}", value, name(request.in(0).dtype)));
    return widened(request, make_stencil, why);
  }
  if (request.in(0).dtype == DType::kF64) return std::make_shared<StencilKernel<double>>(request);
  return std::make_shared<StencilKernel<float>>(request);
}

}  // namespace

}  // namespace anymps::cpu
