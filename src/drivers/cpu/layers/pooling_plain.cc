// SPDX-License-Identifier: Apache-2.0
// What oneDNN does not pool: maxima with their places, norms, f64, averages with a divisor of their
// own, and the gradients of all pools. Planes, which are an image's channels, run in parallel;
// missing spatial axes get extent 1.
#include <array>
#include <cmath>
#include <limits>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/threads.h"
#include "drivers/kernel.h"
#include "ops/layers/pooling.h"

namespace anymps::cpu {

namespace {

struct Planes {
  Triple x, y, kernel, stride, dilation, begin, end;
  int64_t count = 0, x_size = 1, y_size = 1;
  double taps = 1;
  // Of each output along an axis, the elements of the kernel that lie in x.
  std::array<std::vector<std::pair<int64_t, int64_t>>, 3> spans;

  Planes(const Attrs& attrs, const Shape& in, const Shape& out) {
    const Window window = pool_window(attrs, in);
    x = lift(spatial_extents(attrs, in), 1);
    y = lift(spatial_extents(attrs, out), 1);
    kernel = lift(window.kernel, 1);
    stride = lift(window.strides, 1);
    dilation = lift(window.dilations, 1);
    begin = lift(window.pads_begin, 0);
    end = lift(window.pads_end, 0);
    count = in[0] * in[1];
    for (size_t i = 0; i < 3; ++i) {
      for (int64_t at = 0; at < y[i]; ++at) spans[i].push_back(range(i, at, 0));
      x_size *= x[i];
      y_size *= y[i];
      taps *= static_cast<double>(kernel[i]);
    }
  }

  // The elements of the kernel whose places are in [-before, extent + after) of axis `axis`.
  std::pair<int64_t, int64_t> range(size_t axis, int64_t at, int64_t after) const {
    const int64_t start = at * stride[axis] - begin[axis], step = dilation[axis];
    const int64_t first = start >= 0 ? 0 : (-start + step - 1) / step;
    const int64_t limit = x[axis] + after - start;
    return {first, std::min(kernel[axis], limit <= 0 ? 0 : (limit + step - 1) / step)};
  }

  // Calls fn(place in y, its index, visit), for each window; visit(each) calls each(first, n, step)
  // for its rows: the places first, first + step, … in x. Rows have one element or more.
  template <typename Fn>
  void for_each_window(Fn&& fn) const {
    int64_t place = 0;
    for (int64_t d = 0; d < y[0]; ++d)
      for (int64_t h = 0; h < y[1]; ++h)
        for (int64_t w = 0; w < y[2]; ++w, ++place) {
          const auto [d0, d1] = spans[0][d];
          const auto [h0, h1] = spans[1][h];
          const auto [w0, w1] = spans[2][w];
          const int64_t plane = d * stride[0] - begin[0], line = h * stride[1] - begin[1];
          const int64_t column = w * stride[2] - begin[2] + w0 * dilation[2], n = w1 - w0;
          const auto visit = [&, d0 = d0, d1 = d1, h0 = h0, h1 = h1](auto&& each) {
            if (n <= 0) return;
            for (int64_t i = d0; i < d1; ++i)
              for (int64_t j = h0; j < h1; ++j)
                each(((plane + i * dilation[0]) * x[1] + line + j * dilation[1]) * x[2] + column, n,
                     dilation[2]);
          };
          fn(place, Triple{d, h, w}, visit);
        }
  }

  // Elements that an average is divided by.
  double divisor(const Triple& at, bool padding) const {
    double count = 1;
    for (size_t i = 0; i < 3; ++i) {
      const auto [first, last] = range(i, at[i], padding ? end[i] : 0);
      count *= static_cast<double>(std::max<int64_t>(0, last - (padding ? 0 : first)));
    }
    return count;
  }
};

bool check(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return false;
  if (request.in(0).dtype != DType::kF32 && request.in(0).dtype != DType::kF64)
    return refuse<bool>(why, fmt::format("dtype {}", name(request.in(0).dtype)));
  if (request.attrs.s("layout") != "channels_first") return refuse<bool>(why, "channels come last");
  if (request.in(0).rank() > 5)
    return refuse<bool>(why, fmt::format("rank {}", request.in(0).rank()));
  return true;
}

// Calls fn(plane) for each plane, in parallel.
template <typename Fn>
void for_each_plane(const Planes& p, Fn&& fn) {
  const double ns = static_cast<double>(p.y_size) * (5 + p.taps);
  parallel_for(0, p.count, ns, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) fn(plane);
  });
}

// The largest element of a window and its place, the first of equals or of NaNs; -1: there is none.
template <typename T, typename Visit>
std::pair<int64_t, T> largest(const T* x, Visit& visit) {
  T best = -std::numeric_limits<T>::infinity();
  int64_t found = -1;
  visit([&](int64_t from, int64_t n, int64_t step) {
    if (found < 0) found = from, best = x[from];
    for (int64_t i = 0; i < n; ++i, from += step) {
      const T value = x[from];
      const bool better = (value > best) | ((value != value) & (best == best));
      best = better ? value : best;
      found = better ? from : found;
    }
  });
  return {found, best};
}

// Calls each(place) for the elements of a window.
template <typename Visit, typename Each>
void for_each_element(Visit& visit, Each&& each) {
  visit([&](int64_t from, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; ++i, from += step) each(from);
  });
}

template <typename T>
KernelPtr make_max_typed(const KernelRequest& request) {
  const bool own = request.attrs.s("indices") != "tensor";  // places within the plane
  return make_kernel([p = Planes(request.attrs, request.in(0).shape, request.out().shape), own,
                      places = request.outputs.size() > 1](const KernelArgs& args) {
    for_each_plane(p, [&](int64_t plane) {
      const T* x = static_cast<const T*>(args.inputs[0]) + plane * p.x_size;
      T* y = static_cast<T*>(args.outputs[0]) + plane * p.y_size;
      int64_t* to = places ? static_cast<int64_t*>(args.outputs[1]) + plane * p.y_size : nullptr;
      const int64_t first = own ? 0 : plane * p.x_size;
      p.for_each_window([&](int64_t at, const Triple&, auto& visit) {
        const auto [found, best] = largest(x, visit);
        y[at] = best;
        if (to) to[at] = found < 0 ? -1 : first + found;
      });
    });
  });
}

template <typename T>
KernelPtr make_average_typed(const KernelRequest& request) {
  return make_kernel(
      [p = Planes(request.attrs, request.in(0).shape, request.out().shape),
       padding = request.attrs.b("count_include_pad"),
       own = static_cast<double>(request.attrs.i("divisor_override"))](const KernelArgs& args) {
        for_each_plane(p, [&](int64_t plane) {
          const T* x = static_cast<const T*>(args.inputs[0]) + plane * p.x_size;
          T* y = static_cast<T*>(args.outputs[0]) + plane * p.y_size;
          p.for_each_window([&](int64_t at, const Triple& index, auto& visit) {
            double sum = 0;
            for_each_element(visit, [&](int64_t from) { sum += double{x[from]}; });
            const double divisor = own != 0 ? own : p.divisor(index, padding);
            y[at] = static_cast<T>(divisor == 0 ? 0 : sum / divisor);
          });
        });
      });
}

template <typename T>
KernelPtr make_norm_typed(const KernelRequest& request) {
  return make_kernel([p = Planes(request.attrs, request.in(0).shape, request.out().shape),
                      power = static_cast<double>(request.attrs.i("p"))](const KernelArgs& args) {
    for_each_plane(p, [&](int64_t plane) {
      const T* x = static_cast<const T*>(args.inputs[0]) + plane * p.x_size;
      T* y = static_cast<T*>(args.outputs[0]) + plane * p.y_size;
      p.for_each_window([&](int64_t at, const Triple&, auto& visit) {
        double sum = 0;
        if (power == 2)
          for_each_element(visit, [&](int64_t from) { sum += double{x[from]} * double{x[from]}; });
        else
          for_each_element(
              visit, [&](int64_t from) { sum += std::pow(std::abs(double{x[from]}), power); });
        y[at] = static_cast<T>(power == 2 ? std::sqrt(sum) : std::pow(sum, 1 / power));
      });
    });
  });
}

enum class Kind { kMax, kAverage, kNorm };

// dx, from the gradient (input 0) and x (input 1).
template <typename T, Kind kind>
KernelPtr make_gradient_typed(const KernelRequest& request) {
  const double power = kind == Kind::kNorm ? static_cast<double>(request.attrs.i("p")) : 0;
  const bool padding = kind == Kind::kAverage && request.attrs.b("count_include_pad");
  const double own =
      kind == Kind::kAverage ? static_cast<double>(request.attrs.i("divisor_override")) : 0;
  return make_kernel([=, p = Planes(request.attrs, request.in(1).shape, request.in(0).shape)](
                         const KernelArgs& args) {
    for_each_plane(p, [&](int64_t plane) {
      const T* g = static_cast<const T*>(args.inputs[0]) + plane * p.y_size;
      const T* x = static_cast<const T*>(args.inputs[1]) + plane * p.x_size;
      T* dx = static_cast<T*>(args.outputs[0]) + plane * p.x_size;
      std::fill_n(dx, p.x_size, T{0});
      p.for_each_window([&](int64_t at, const Triple& index, auto& visit) {
        if constexpr (kind == Kind::kAverage) {
          const double divisor = own != 0 ? own : p.divisor(index, padding);
          const auto share = static_cast<T>(double{g[at]} / divisor);
          return for_each_element(visit, [&](int64_t from) { dx[from] += share; });
        } else if constexpr (kind == Kind::kMax) {
          const int64_t found = largest(x, visit).first;
          if (found >= 0) dx[found] += g[at];
        } else {
          double sum = 0;
          for_each_element(
              visit, [&](int64_t from) { sum += std::pow(std::abs(double{x[from]}), power); });
          const double norm = std::pow(sum, 1 / power);
          if (norm == 0) return;
          for_each_element(visit, [&](int64_t from) {
            const double value = x[from];
            dx[from] += static_cast<T>(
                g[at] * std::copysign(std::pow(std::abs(value) / norm, power - 1), value));
          });
        }
      });
    });
  });
}

// f32 and f64 as they are, halves through f32.
template <KernelPtr (*make_f32)(const KernelRequest&), KernelPtr (*make_f64)(const KernelRequest&)>
KernelPtr make_plain(const KernelRequest& request, std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, make_plain<make_f32, make_f64>, why);
  if (!check(request, why)) return nullptr;
  return request.in(0).dtype == DType::kF64 ? make_f64(request) : make_f32(request);
}
template <Kind kind>
constexpr auto make_gradient =
    make_plain<make_gradient_typed<float, kind>, make_gradient_typed<double, kind>>;

KernelPtr make_max(const KernelRequest& request, std::string& why) {
  const std::string& places = request.attrs.s("indices");
  if (request.outputs.size() > 1 && places != "tensor" &&
      places != fmt::format("global_{}d", request.in(0).rank() - 2))
    return refuse(why, "places in other terms");
  return make_plain<make_max_typed<float>, make_max_typed<double>>(request, why);
}

const KernelRegistrar kMax("cpu", "max_pool", "plain", 20, make_max);
const KernelRegistrar kAverage("cpu", "avg_pool", "plain", 20,
                               make_plain<make_average_typed<float>, make_average_typed<double>>);
const KernelRegistrar kNorm("cpu", "lp_pool", "plain", 20,
                            make_plain<make_norm_typed<float>, make_norm_typed<double>>);
const KernelRegistrar kMaxGradient("cpu", "max_pool_gradient", "plain", 10,
                                   make_gradient<Kind::kMax>);
const KernelRegistrar kAverageGradient("cpu", "avg_pool_gradient", "plain", 10,
                                       make_gradient<Kind::kAverage>);
const KernelRegistrar kNormGradient("cpu", "lp_pool_gradient", "plain", 10,
                                    make_gradient<Kind::kNorm>);

}  // namespace

}  // namespace anymps::cpu
