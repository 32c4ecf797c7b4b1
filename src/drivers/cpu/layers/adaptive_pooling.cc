// SPDX-License-Identifier: Apache-2.0
// Pooling to a given size and its gradients: planes are shared out among threads; with the channels
// last, windows of all channels at once, in vectors.
#include <algorithm>
#include <cmath>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/gradient_ops.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/threads.h"
#include "semantics/adaptive_window.h"

namespace anymps::cpu {

namespace {

AdaptiveGrid grid_of(const KernelRequest& request, size_t x) {
  return {request.in(x).shape, request.attrs.ints("output_size"),
          request.attrs.s("layout") == "channels_last"};
}

// y[outer, windows, inner] of x[outer, places, inner].
template <typename T>
class AdaptiveForward {
 public:
  AdaptiveForward(const KernelRequest& request, bool max)
      : grid_(grid_of(request, 0)), max_(max), places_(request.outputs.size() > 1) {}

  void operator()(const KernelArgs& args) const {
    const AdaptiveGrid& g = grid_;
    if (g.windows() == 0 || g.inner == 0) return;
    const double ns =
        5 + 0.5 * static_cast<double>(g.inner) *
                (1 + static_cast<double>(g.places()) / static_cast<double>(g.windows()));
    parallel_for(0, g.outer * g.windows(), ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* x = static_cast<const T*>(args.inputs[0]) + i / g.windows() * g.places() * g.inner;
        T* y = static_cast<T*>(args.outputs[0]) + i * g.inner;
        if (max_)
          largest(x, i % g.windows(), y,
                  places_ ? static_cast<int64_t*>(args.outputs[1]) + i * g.inner : nullptr);
        else
          mean(x, i % g.windows(), y);
      }
    });
  }

 private:
  void mean(const T* x, int64_t w, T* y) const {
    const GradientOps<T>& ops = gradient_ops<T>();
    const int64_t inner = grid_.inner;
    const auto size = static_cast<double>(grid_.size(w));
    if (inner == 1) {
      double sum = 0;
      grid_.each_run(w, [&](int64_t at, int64_t n) {
        if (n >= 32)
          sum += static_cast<double>(ops.sum(x + at, static_cast<size_t>(n)));
        else
          for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[at + i]);
      });
      *y = static_cast<T>(sum / size);
      return;
    }
    const auto width = static_cast<size_t>(inner);
    std::fill_n(y, inner, T(0));
    grid_.each(w, [&](int64_t at) { ops.add(x + at * inner, y, width); });
    ops.affine(y, T(0), static_cast<T>(1 / size), T(0), y, width);
  }

  void largest(const T* x, int64_t w, T* y, int64_t* places) const {
    const int64_t inner = grid_.inner;
    bool begun = false;
    grid_.each(w, [&](int64_t at) {
      for (int64_t c = 0; c < inner; ++c)
        if (const T value = x[at * inner + c]; !begun || value > y[c] || std::isnan(value)) {
          y[c] = value;
          if (places) places[c] = at;
        }
      begun = true;
    });
  }

  AdaptiveGrid grid_;
  bool max_, places_;
};

// A plane of dx is one thread's: windows overlap.
template <typename T>
class AdaptiveBackward {
 public:
  AdaptiveBackward(const KernelRequest& request, bool max)
      : grid_(grid_of(request, 1)), max_(max) {}

  void operator()(const KernelArgs& args) const {
    const AdaptiveGrid& g = grid_;
    const int64_t plane = g.places() * g.inner, results = g.windows() * g.inner;
    if (plane == 0) return;
    parallel_for(0, g.outer, static_cast<double>(plane + results), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        T* dx = static_cast<T*>(args.outputs[0]) + o * plane;
        const T* dy = static_cast<const T*>(args.inputs[0]) + o * results;
        std::fill_n(dx, plane, T(0));
        if (max_)
          to_places(static_cast<const int64_t*>(args.inputs[2]) + o * results, dy, dx);
        else
          share_out(dy, dx);
      }
    });
  }

 private:
  void share_out(const T* dy, T* dx) const {
    const int64_t inner = grid_.inner;
    for (int64_t w = 0; w < grid_.windows(); ++w) {
      const T share = T(1) / static_cast<T>(grid_.size(w));
      if (inner == 1) {
        const T value = dy[w] * share;
        grid_.each_run(w, [&](int64_t at, int64_t n) {
          for (int64_t i = 0; i < n; ++i) dx[at + i] += value;
        });
        continue;
      }
      grid_.each(w, [&](int64_t at) {
        gradient_ops<T>().combine(dy + w * inner, dx + at * inner, nullptr, T(0), share, T(1), T(0),
                                  dx + at * inner, static_cast<size_t>(inner));
      });
    }
  }

  void to_places(const int64_t* places, const T* dy, T* dx) const {
    const int64_t inner = grid_.inner, count = grid_.places();
    for (int64_t w = 0; w < grid_.windows(); ++w)
      for (int64_t c = 0; c < inner; ++c) {
        const int64_t place = places[w * inner + c];
        if (place < 0 || place >= count) [[unlikely]]
          fail(Code::kInvalidArgument,
               "[adaptive_max_pool_gradient] place {} is out of range for {}", place, count);
        dx[place * inner + c] += dy[w * inner + c];
      }
  }

  AdaptiveGrid grid_;
  bool max_;
};

template <template <typename> class K, bool max>
KernelPtr make_adaptive(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return nullptr;
  if (is_half(request.in(0).dtype)) return widened(request, make_adaptive<K, max>, why);
  if (request.in(0).dtype == DType::kF64) return make_kernel(K<double>(request, max));
  return make_kernel(K<float>(request, max));
}

const KernelRegistrar kAdaptiveAvg("cpu", "adaptive_avg_pool", "windows", 10,
                                   make_adaptive<AdaptiveForward, false>);
const KernelRegistrar kAdaptiveMax("cpu", "adaptive_max_pool", "windows", 10,
                                   make_adaptive<AdaptiveForward, true>);
const KernelRegistrar kAdaptiveAvgGradient("cpu", "adaptive_avg_pool_gradient", "windows", 10,
                                           make_adaptive<AdaptiveBackward, false>);
const KernelRegistrar kAdaptiveMaxGradient("cpu", "adaptive_max_pool_gradient", "windows", 10,
                                           make_adaptive<AdaptiveBackward, true>);

}  // namespace

}  // namespace anymps::cpu
