// SPDX-License-Identifier: Apache-2.0
// Running sums, products and extrema: lines are shared out among threads; those that are not dense
// run many side by side, in the order in which memory lies. Floats accumulate in double, as the
// reference does.
#include <algorithm>
#include <limits>

#include "drivers/cpu/common/lines.h"
#include "drivers/cpu/kernel_family.h"
#include "drivers/cpu/threads.h"
#include "semantics/running.h"

namespace anymps::cpu {

namespace {

// What joins elements, and what it starts from.
#define ANYMPS_RUNNING(Name, first, joined)                         \
  struct Name {                                                     \
    template <typename T>                                           \
    static Wide<T> start() {                                        \
      using Limits [[maybe_unused]] = std::numeric_limits<Wide<T>>; \
      return first;                                                 \
    }                                                               \
    template <typename W>                                           \
    W operator()(W a, W b) const {                                  \
      return joined;                                                \
    }                                                               \
  };
ANYMPS_RUNNING(Sum, Wide<T>(0), scalar::add(a, b))
ANYMPS_RUNNING(Product, Wide<T>(1), scalar::mul(a, b))
ANYMPS_RUNNING(Minimum, Limits::has_infinity ? Limits::infinity() : Limits::max(),
               scalar::min(a, b, true))
ANYMPS_RUNNING(Maximum, Limits::has_infinity ? -Limits::infinity() : Limits::lowest(),
               scalar::max(a, b, true))
#undef ANYMPS_RUNNING

struct LogSum {
  template <typename T>
  static double start() {
    return -std::numeric_limits<double>::infinity();
  }
  double operator()(double a, double b) const { return log_of_sum(a, b); }
};

constexpr int64_t kColumns = 64;  // lines side by side

// `columns` lines that begin at from[0], from[1], …
template <typename T, class Join>
void run_columns(const T* from, T* to, int64_t columns, int64_t length, int64_t x_step,
                 int64_t y_step, bool exclusive) {
  Wide<T> before[kColumns];
  std::fill_n(before, columns, Join::template start<T>());
  for (int64_t k = 0; k < length; ++k, from += x_step, to += y_step)
    for (int64_t c = 0; c < columns; ++c) {
      const Wide<T> with = Join{}(before[c], widen(from[c]));
      to[c] = narrow<T>(exclusive ? before[c] : with);
      before[c] = with;
    }
}

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
  const bool beside = !lines.extents.empty() && lines.extents.back() > 1 && x_step != sign &&
                      lines.strides[0].back() == 1 && lines.strides[1].back() == 1;
  if (beside) {
    const int64_t width = lines.extents.back(), blocks = (width + kColumns - 1) / kColumns;
    return make_kernel([=](const KernelArgs& args) {
      parallel_for(0, lines.count() / width * blocks, static_cast<double>(length * kColumns),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t b = begin; b < end; ++b) {
                       const int64_t at = b % blocks * kColumns, line = b / blocks * width + at;
                       run_columns<T, Join>(
                           static_cast<const T*>(args.inputs[0]) + lines.offset(0, line) + x_first,
                           static_cast<T*>(args.outputs[0]) + lines.offset(1, line) + y_first,
                           std::min(kColumns, width - at), length, x_step, y_step, exclusive);
                     }
                   });
    });
  }
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

template <bool maximum>
KernelPtr make_indexed(const KernelRequest& request, std::string&) {
  const TensorDesc &x = request.in(0), &values = request.out(0), &indices = request.out(1);
  const size_t axis = normalize_axis(request.attrs.i("axis"), x.rank(), request.op->name.c_str());
  const int64_t length = x.shape[axis], x_step = x.strides[axis];
  const int64_t value_step = values.strides[axis], index_step = indices.strides[axis];
  const Loops lines = line_starts(x.shape, axis, {x.strides, values.strides, indices.strides});
  if (x.count() == 0) return make_kernel([](const KernelArgs&) {});
  return dispatch<kReal | kBoolean>(x.dtype, [&]<typename T>() {
    return make_kernel([=](const KernelArgs& args) {
      const double ns = 2 * static_cast<double>(length);
      parallel_for(0, lines.count(), ns, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* from = static_cast<const T*>(args.inputs[0]) + lines.offset(0, i);
          T* value = static_cast<T*>(args.outputs[0]) + lines.offset(1, i);
          auto* index = static_cast<int64_t*>(args.outputs[1]) + lines.offset(2, i);
          T best = *from;
          int64_t place = 0;
          for (int64_t k = 0; k < length; ++k) {
            const T next = from[k * x_step];
            if (is_new_extremum<maximum>(static_cast<Compute<T>>(next),
                                         static_cast<Compute<T>>(best))) [[unlikely]]
              best = next, place = k;
            value[k * value_step] = best;
            index[k * index_step] = place;
          }
        }
      });
    });
  });
}

const KernelFamily kCumulative("lines", 10,
                               {{"cummax_with_indices", make_indexed<true>},
                                {"cummin_with_indices", make_indexed<false>},
                                {"log_cumsum_exp", make_cumulative<LogSum, kFloat>},
                                {"cumsum", make_cumulative<Sum, kNumber>},
                                {"cumprod", make_cumulative<Product, kNumber>},
                                {"cummin", make_cumulative<Minimum, kReal>},
                                {"cummax", make_cumulative<Maximum, kReal>}});

}  // namespace

}  // namespace anymps::cpu
