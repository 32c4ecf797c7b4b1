// SPDX-License-Identifier: Apache-2.0
// Pooling to a given size on the CPU. A tensor is planes of up to three spatial axes, with the
// channels behind each place in channels_last; planes run in parallel.
#include <limits>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/threads.h"
#include "ops/layers/window.h"
#include "semantics/adaptive_window.h"

namespace anymps::cpu {

namespace {

struct SizedPlanes {
  Triple x, y;
  int64_t count = 1, inner = 1;  // planes, and channels behind each place
  std::array<WindowSpans, 3> spans;
  double taps = 1;  // elements that a plane's windows hold

  SizedPlanes(const Attrs& attrs, const Shape& in, const Shape& out) {
    const TensorAxes axes = tensor_axes(attrs, in.size());
    const bool last = axes.spatial == 1;
    const auto spatial = [&](const Shape& shape) {
      return lift(Shape(shape.begin() + axes.spatial, shape.begin() + axes.spatial + axes.count),
                  1);
    };
    x = spatial(in);
    y = spatial(out);
    count = last ? in[0] : in[0] * in[1];
    inner = last ? in[in.size() - 1] : 1;
    for (size_t i = 0; i < 3; ++i) spans[i] = adaptive_spans(x[i], y[i]);
    for (size_t i = 0; i < 3; ++i) taps *= static_cast<double>(x[i] + y[i]);
  }
  int64_t x_size() const { return x[0] * x[1] * x[2] * inner; }
  int64_t y_size() const { return y[0] * y[1] * y[2] * inner; }
};

// Calls fn(place in y, size of the window, visit), for each window of a plane; visit(each) calls
// each(first place in x, places) for the window's rows.
template <typename Fn>
void for_each_window(const SizedPlanes& p, const std::array<WindowSpans, 3>& spans, Fn&& fn) {
  int64_t place = 0;
  for (const auto& [d0, d1] : spans[0])
    for (const auto& [h0, h1] : spans[1])
      for (const auto& [w0, w1] : spans[2]) {
        const int64_t size = (d1 - d0) * (h1 - h0) * (w1 - w0);
        const auto visit = [&, d0 = d0, d1 = d1, h0 = h0, h1 = h1, w0 = w0, w1 = w1](auto&& each) {
          if (w1 - w0 == p.x[2] && d1 - d0 == 1)  // whole rows: one run
            return each((d0 * p.x[1] + h0) * p.x[2], (h1 - h0) * p.x[2]);
          for (int64_t d = d0; d < d1; ++d)
            for (int64_t h = h0; h < h1; ++h) each((d * p.x[1] + h) * p.x[2] + w0, w1 - w0);
        };
        fn(place++, size, visit);
      }
}

template <typename Fn>
void for_each_plane(const SizedPlanes& p, Fn&& fn) {
  parallel_for(0, p.count, 5 + p.taps * static_cast<double>(p.inner),
               [&](int64_t begin, int64_t end) {
                 for (int64_t plane = begin; plane < end; ++plane) fn(plane);
               });
}

constexpr int64_t kChannels = 256;  // at once

// Lanes of their own keep sums of a few thousand elements exact enough; longer ones come in parts.
template <typename T>
double sum_of(const T* x, int64_t n) {
  constexpr int64_t kLanes = 8, kPart = 4096;
  double total = 0;
  if (n < 2 * kLanes) {
    for (int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]);
    return total;
  }
  for (int64_t first = 0; first < n; first += kPart, x += kPart) {
    const int64_t part = std::min(kPart, n - first);
    T lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= part; i += kLanes)
      for (int64_t k = 0; k < kLanes; ++k) lanes[k] += x[i + k];
    for (; i < part; ++i) lanes[i % kLanes] += x[i];
    for (int64_t width = kLanes / 2; width > 0; width /= 2)
      for (int64_t k = 0; k < width; ++k) lanes[k] += lanes[k + width];
    total += static_cast<double>(lanes[0]);
  }
  return total;
}

template <typename T>
KernelPtr make_average(const KernelRequest& request) {
  return make_kernel([p = SizedPlanes(request.attrs, request.in(0).shape, request.out().shape)](
                         const KernelArgs& args) {
    for_each_plane(p, [&](int64_t plane) {
      const T* x = static_cast<const T*>(args.inputs[0]) + plane * p.x_size();
      T* y = static_cast<T*>(args.outputs[0]) + plane * p.y_size();
      if (p.y_size() == 1) {  // the whole plane
        *y = static_cast<T>(sum_of(x, p.x_size()) / static_cast<double>(p.x_size()));
        return;
      }
      for_each_window(p, p.spans, [&](int64_t at, int64_t size, auto& visit) {
        if (p.inner == 1) {
          double sum = 0;
          visit([&](int64_t from, int64_t n) { sum += sum_of(x + from, n); });
          y[at] = static_cast<T>(sum / static_cast<double>(size));
          return;
        }
        double sums[kChannels];
        for (int64_t first = 0; first < p.inner; first += kChannels) {
          const int64_t channels = std::min(kChannels, p.inner - first);
          std::fill_n(sums, channels, 0.0);
          visit([&](int64_t from, int64_t n) {
            for (int64_t i = 0; i < n; ++i) {
              const T* row = x + (from + i) * p.inner + first;
              for (int64_t c = 0; c < channels; ++c) sums[c] += static_cast<double>(row[c]);
            }
          });
          for (int64_t c = 0; c < channels; ++c)
            y[at * p.inner + first + c] = static_cast<T>(sums[c] / static_cast<double>(size));
        }
      });
    });
  });
}

template <typename T>
KernelPtr make_average_gradient(const KernelRequest& request) {
  return make_kernel([p = SizedPlanes(request.attrs, request.out().shape, request.in(0).shape)](
                         const KernelArgs& args) {
    for_each_plane(p, [&](int64_t plane) {
      const T* g = static_cast<const T*>(args.inputs[0]) + plane * p.y_size();
      T* dx = static_cast<T*>(args.outputs[0]) + plane * p.x_size();
      std::fill_n(dx, p.x_size(), T{0});
      for_each_window(p, p.spans, [&](int64_t at, int64_t size, auto& visit) {
        const T divisor = static_cast<T>(size);
        if (p.inner == 1) {
          const T share = g[at] / divisor;
          return visit([&](int64_t from, int64_t n) {
            for (int64_t i = from; i < from + n; ++i) dx[i] += share;
          });
        }
        visit([&](int64_t from, int64_t n) {
          for (int64_t i = from; i < from + n; ++i)
            for (int64_t c = 0; c < p.inner; ++c)
              dx[i * p.inner + c] += g[at * p.inner + c] / divisor;
        });
      });
    });
  });
}

// The maxima of a plane; places are null if nobody asks.
template <typename T>
void pool_plane(const SizedPlanes& p, const std::array<WindowSpans, 3>& spans, const T* x, T* y,
                int64_t* places) {
  for_each_window(p, spans, [&](int64_t at, int64_t, auto& visit) {
    if (p.inner == 1) {
      T best = -std::numeric_limits<T>::infinity();
      int64_t place = -1;
      visit([&](int64_t from, int64_t n) {
        for (int64_t i = from; i < from + n; ++i)
          if (place < 0 || x[i] > best || x[i] != x[i]) best = x[i], place = i;
      });
      y[at] = best;
      if (places) places[at] = place;
      return;
    }
    T best[kChannels];
    int64_t found[kChannels];
    for (int64_t first = 0; first < p.inner; first += kChannels) {
      const int64_t channels = std::min(kChannels, p.inner - first);
      std::fill_n(best, channels, -std::numeric_limits<T>::infinity());
      std::fill_n(found, channels, int64_t{-1});
      visit([&](int64_t from, int64_t n) {
        for (int64_t i = from; i < from + n; ++i) {
          const T* row = x + i * p.inner + first;
          for (int64_t c = 0; c < channels; ++c)
            if (found[c] < 0 || row[c] > best[c] || row[c] != row[c])
              best[c] = row[c], found[c] = i;
        }
      });
      std::copy_n(best, channels, y + at * p.inner + first);
      if (places) std::copy_n(found, channels, places + at * p.inner + first);
    }
  });
}

template <typename T>
KernelPtr make_max(const KernelRequest& request) {
  return make_kernel([p = SizedPlanes(request.attrs, request.in(0).shape, request.out().shape),
                      places = request.outputs.size() > 1](const KernelArgs& args) {
    for_each_plane(p, [&](int64_t plane) {
      auto* to = places ? static_cast<int64_t*>(args.outputs[1]) + plane * p.y_size() : nullptr;
      pool_plane(p, p.spans, static_cast<const T*>(args.inputs[0]) + plane * p.x_size(),
                 static_cast<T*>(args.outputs[0]) + plane * p.y_size(), to);
    });
  });
}

template <typename T>
KernelPtr make_fractional(const KernelRequest& request) {
  const std::vector<int64_t>& kernel = request.attrs.ints("kernel");
  return make_kernel([p = SizedPlanes(request.attrs, request.in(0).shape, request.out().shape),
                      size = lift(Shape(kernel.begin(), kernel.end()), 1), axes = kernel.size(),
                      places = request.outputs.size() > 1](const KernelArgs& args) {
    for_each_plane(p, [&](int64_t plane) {
      const T* samples = static_cast<const T*>(args.inputs[1]) + plane * static_cast<int64_t>(axes);
      std::array<WindowSpans, 3> spans = p.spans;
      for (size_t i = 0; i < axes; ++i) {
        const size_t axis = 3 - axes + i;
        spans[axis] =
            fractional_spans(p.x[axis], p.y[axis], size[axis], samples[axes == 2 ? 1 - i : i]);
      }
      auto* to = places ? static_cast<int64_t*>(args.outputs[1]) + plane * p.y_size() : nullptr;
      pool_plane(p, spans, static_cast<const T*>(args.inputs[0]) + plane * p.x_size(),
                 static_cast<T*>(args.outputs[0]) + plane * p.y_size(), to);
    });
  });
}

// f32 and f64 as they are, halves through f32.
template <KernelPtr (*make_f32)(const KernelRequest&), KernelPtr (*make_f64)(const KernelRequest&)>
KernelPtr make_dense(const KernelRequest& request, std::string& why) {
  const DType dtype = request.in(0).dtype;
  if (is_half(dtype)) return widened(request, make_dense<make_f32, make_f64>, why);
  if (!dense(request, why)) return nullptr;
  if (request.out().count() == 0) return make_kernel([](const KernelArgs&) {});
  return dtype == DType::kF64 ? make_f64(request) : make_f32(request);
}

const KernelRegistrar kAverage("cpu", "adaptive_avg_pool", "plain", 10,
                               make_dense<make_average<float>, make_average<double>>);
const KernelRegistrar kAverageGradient(
    "cpu", "adaptive_avg_pool_gradient", "plain", 10,
    make_dense<make_average_gradient<float>, make_average_gradient<double>>);
const KernelRegistrar kMax("cpu", "adaptive_max_pool", "plain", 10,
                           make_dense<make_max<float>, make_max<double>>);
const KernelRegistrar kFractional("cpu", "fractional_max_pool", "plain", 10,
                                  make_dense<make_fractional<float>, make_fractional<double>>);

}  // namespace

}  // namespace anymps::cpu
