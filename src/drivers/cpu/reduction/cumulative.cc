// SPDX-License-Identifier: Apache-2.0
// Running sums, products and extrema: lines are shared out among threads. Floats accumulate in
// double, as the reference does.
#include <limits>

#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/threads.h"
#include "semantics/scalar_functions.h"

namespace anymps::cpu {

namespace {

struct Sum {
  template <typename T>
  static Wide<T> start() {
    return Wide<T>(0);
  }
  template <typename W>
  W operator()(W a, W b) const {
    return scalar::add(a, b);
  }
};
struct Product {
  template <typename T>
  static Wide<T> start() {
    return Wide<T>(1);
  }
  template <typename W>
  W operator()(W a, W b) const {
    return scalar::mul(a, b);
  }
};
struct Minimum {
  template <typename T>
  static Wide<T> start() {
    using Limits = std::numeric_limits<Wide<T>>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  template <typename W>
  W operator()(W a, W b) const {
    return scalar::min(a, b, true);
  }
};
struct Maximum {
  template <typename T>
  static Wide<T> start() {
    using Limits = std::numeric_limits<Wide<T>>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  template <typename W>
  W operator()(W a, W b) const {
    return scalar::max(a, b, true);
  }
};

template <typename T, class Join>
KernelPtr make_typed(const KernelRequest& request, size_t axis) {
  const TensorDesc &x = request.in(0), &y = request.out();
  const bool exclusive = request.attrs.b("exclusive"), reverse = request.attrs.b("reverse");
  const int64_t length = x.shape[axis];
  const int64_t first = reverse ? length - 1 : 0, sign = reverse ? -1 : 1;
  const int64_t x_first = first * x.strides[axis], x_step = sign * x.strides[axis];
  const int64_t y_first = first * y.strides[axis], y_step = sign * y.strides[axis];
  Loops lines = line_starts(x.shape, axis, {x.strides, y.strides});
  if (x.count() == 0) return make_kernel([](const KernelArgs&) {});
  return make_kernel([=](const KernelArgs& args) {
    parallel_for(0, lines.count(), static_cast<double>(length), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* from = static_cast<const T*>(args.inputs[0]) + lines.offset(0, i) + x_first;
        T* to = static_cast<T*>(args.outputs[0]) + lines.offset(1, i) + y_first;
        Wide<T> before = Join::template start<T>();
        for (int64_t k = 0; k < length; ++k) {
          const Wide<T> with = Join{}(before, widen(from[k * x_step]));
          to[k * y_step] = narrow<T>(exclusive ? before : with);
          before = with;
        }
      }
    });
  });
}

template <class Join, DTypeSet allowed>
KernelPtr make_cumulative(const KernelRequest& request, std::string& why) {
  const auto axis = known_axis(request, 1, request.in(0).rank(), why);
  if (!axis) return nullptr;
  return dispatch<allowed>(request.in(0).dtype,
                           [&]<typename T>() { return make_typed<T, Join>(request, *axis); });
}

const KernelRegistrar kSum("cpu", "cumsum", "lines", 10, make_cumulative<Sum, kNumber>);
const KernelRegistrar kProduct("cpu", "cumprod", "lines", 10, make_cumulative<Product, kNumber>);
const KernelRegistrar kMinimum("cpu", "cummin", "lines", 10, make_cumulative<Minimum, kReal>);
const KernelRegistrar kMaximum("cpu", "cummax", "lines", 10, make_cumulative<Maximum, kReal>);

}  // namespace

}  // namespace anymps::cpu
