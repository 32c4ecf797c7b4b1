// SPDX-License-Identifier: Apache-2.0
// pad_gradient and resize_gradient on the CPU. Both are weighted sums whose weights are products of
// one factor an axis; which elements of the gradient go into a place is listed axis by axis when
// the kernel is made, so that each element of dx is written once, by one thread.
#include <complex>

#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "ops/signal/resize_coordinates.h"
#include "semantics/border.h"

namespace anymps::cpu {

namespace {

template <typename T>
using Sum = std::conditional_t<std::is_same_v<T, Complex>, std::complex<double>,
                               std::conditional_t<std::is_integral_v<T>, uint64_t, double>>;

template <typename T>
Sum<T> widen(T element) {
  return static_cast<Sum<T>>(static_cast<Compute<T>>(element));
}

template <typename T>
T narrow(Sum<T> sum) {
  return static_cast<T>(static_cast<Compute<T>>(sum));
}

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
  void run_row(const KernelArgs& args, int64_t row, Taps& outer, Taps& next) const {
    const T* gradient = static_cast<const T*>(args.inputs[0]);
    T* dx = static_cast<T*>(args.outputs[0]);
    outer.assign(1, Tap{});
    for (size_t axis = shape_.size() - 1; axis-- > 0; row /= shape_[axis]) {
      const int64_t place = row % shape_[axis];
      dx += place * strides_[axis];
      next.clear();
      for (const Tap& tap : sources_[axis][static_cast<size_t>(place)])
        for (const Tap& other : outer)
          next.push_back({tap.offset + other.offset, tap.weight * other.weight});
      std::swap(outer, next);
    }
    for (const Taps& taps : sources_.back()) {
      Sum<T> sum{};
      for (const Tap& first : outer)
        for (const Tap& second : taps) {
          const Sum<T> element = widen(gradient[first.offset + second.offset]);
          const double weight = first.weight * second.weight;
          if constexpr (std::is_integral_v<T>)
            sum = weight > 0 ? sum + element : sum - element;
          else
            sum += weight * element;
        }
      *dx = narrow<T>(sum);
      dx += strides_.back();
    }
  }

  Shape shape_;
  Strides strides_;
  std::vector<std::vector<Taps>> sources_;
  double ns_ = 1;
};

KernelPtr make_pad_gradient(const KernelRequest& request, std::string&) {
  const TensorDesc &dy = request.in(0), &dx = request.out();
  const std::vector<int64_t>& pads = request.attrs.ints("pads");
  const std::string& mode = request.attrs.s("mode");
  if (dx.count() == 0) return make_kernel([](const KernelArgs&) {});
  std::vector<std::vector<Taps>> sources;
  for (size_t i = 0; i < dx.shape.size(); ++i) {
    sources.emplace_back(static_cast<size_t>(dx.shape[i]));
    for (int64_t at = 0; at < dy.shape[i]; ++at)
      if (const auto element = border_element(mode, at - pads[i], dx.shape[i]))
        sources.back()[static_cast<size_t>(element->place)].push_back(
            {at * dy.strides[i], element->negated ? -1.0 : 1.0});
  }
  return dispatch<kNumber>(
      dy.dtype, [&]<typename T>() { return make_kernel(SeparableSum<T>(dx, std::move(sources))); });
}

KernelPtr make_resize_gradient(const KernelRequest& request, std::string& why) {
  const TensorDesc &dy = request.in(0), &dx = request.out();
  if (dx.count() == 0 || dy.count() == 0) return refuse(why, "a tensor is empty");
  for (size_t i = 2; i < 5; ++i)
    if (request.has(i)) return refuse(why, "numbers that are inputs");
  const ResizeNumbers numbers{request.attrs.floats("scales"), request.attrs.floats("offsets"),
                              request.attrs.floats("roi")};
  const ResizeFilter filter = resize_filter(request.attrs);
  std::vector<std::vector<Taps>> sources;
  for (const ResizeAxis& axis :
       resize_axes(request.attrs, dx.shape, dy.shape, numbers, request.attrs.ints("sizes"))) {
    const int64_t step = dy.strides[sources.size()];
    sources.emplace_back(static_cast<size_t>(axis.in));
    for (int64_t at = 0; at < axis.out; ++at) {
      if (axis.identity()) {
        sources.back()[static_cast<size_t>(at)].push_back({at * step, 1});
        continue;
      }
      for (const ResizeTap& tap : axis.taps(at, filter))
        sources.back()[static_cast<size_t>(tap.index)].push_back({at * step, tap.weight});
    }
  }
  return dispatch<kFloat>(
      dy.dtype, [&]<typename T>() { return make_kernel(SeparableSum<T>(dx, std::move(sources))); });
}

const KernelRegistrar kPadGradient("cpu", "pad_gradient", "places", 10, make_pad_gradient);
const KernelRegistrar kResizeGradient("cpu", "resize_gradient", "places", 10, make_resize_gradient);

}  // namespace

}  // namespace anymps::cpu
