// SPDX-License-Identifier: Apache-2.0
// What oneDNN does not pool: maxima with their places, norms, and the gradients of all pools.
// Planes, which are an image's channels, run in parallel; missing spatial axes get extent 1.
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

  // Calls fn(place in y, visit), for each window; visit(each) calls each(place in x).
  template <typename Fn>
  void for_each_window(Fn&& fn) const {
    int64_t place = 0;
    for (int64_t d = 0; d < y[0]; ++d)
      for (int64_t h = 0; h < y[1]; ++h)
        for (int64_t w = 0; w < y[2]; ++w, ++place) {
          const auto [d0, d1] = range(0, d, 0);
          const auto [h0, h1] = range(1, h, 0);
          const auto [w0, w1] = range(2, w, 0);
          const auto visit = [&, d0 = d0, d1 = d1, h0 = h0, h1 = h1, w0 = w0,
                              w1 = w1](auto&& each) {
            for (int64_t i = d0; i < d1; ++i)
              for (int64_t j = h0; j < h1; ++j) {
                const int64_t row = ((d * stride[0] + i * dilation[0] - begin[0]) * x[1] +
                                     h * stride[1] + j * dilation[1] - begin[1]) *
                                        x[2] +
                                    w * stride[2] - begin[2];
                for (int64_t k = w0; k < w1; ++k) each(row + k * dilation[2]);
              }
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
  if (request.in(0).dtype != DType::kF32)
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

KernelPtr make_max(const KernelRequest& request, std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, make_max, why);
  if (!check(request, why)) return nullptr;
  if (request.attrs.s("indices") != "tensor") return refuse(why, "places in other terms");
  return make_kernel([p = Planes(request.attrs, request.in(0).shape, request.out().shape),
                      places = request.outputs.size() > 1](const KernelArgs& args) {
    for_each_plane(p, [&](int64_t plane) {
      const float* x = static_cast<const float*>(args.inputs[0]) + plane * p.x_size;
      float* y = static_cast<float*>(args.outputs[0]) + plane * p.y_size;
      int64_t* to = places ? static_cast<int64_t*>(args.outputs[1]) + plane * p.y_size : nullptr;
      p.for_each_window([&](int64_t at, const Triple&, auto& visit) {
        float best = -std::numeric_limits<float>::infinity();
        int64_t found = -1;
        visit([&](int64_t from) {
          if (found >= 0 && (best != best || !(x[from] > best || x[from] != x[from]))) return;
          best = x[from];
          found = from;
        });
        y[at] = best;
        if (to) to[at] = found < 0 ? -1 : plane * p.x_size + found;
      });
    });
  });
}

enum class Kind { kMax, kAverage, kNorm };

// dx, from the gradient (input 0) and x (input 1).
KernelPtr make_gradient(const KernelRequest& request, std::string& why, Kind kind) {
  if (!check(request, why)) return nullptr;
  const double power = kind == Kind::kNorm ? static_cast<double>(request.attrs.i("p")) : 0;
  const bool padding = kind == Kind::kAverage && request.attrs.b("count_include_pad");
  return make_kernel([=, p = Planes(request.attrs, request.in(1).shape, request.in(0).shape)](
                         const KernelArgs& args) {
    for_each_plane(p, [&](int64_t plane) {
      const float* g = static_cast<const float*>(args.inputs[0]) + plane * p.y_size;
      const float* x = static_cast<const float*>(args.inputs[1]) + plane * p.x_size;
      float* dx = static_cast<float*>(args.outputs[0]) + plane * p.x_size;
      std::fill_n(dx, p.x_size, 0.0f);
      p.for_each_window([&](int64_t at, const Triple& index, auto& visit) {
        if (kind == Kind::kAverage) {
          const auto share = static_cast<float>(double{g[at]} / p.divisor(index, padding));
          return visit([&](int64_t from) { dx[from] += share; });
        }
        if (kind == Kind::kMax) {
          int64_t found = -1;
          visit([&](int64_t from) {
            if (found >= 0 && (x[found] != x[found] || !(x[from] > x[found] || x[from] != x[from])))
              return;
            found = from;
          });
          if (found >= 0) dx[found] += g[at];
          return;
        }
        double sum = 0;
        visit([&](int64_t from) { sum += std::pow(std::abs(double{x[from]}), power); });
        const double norm = std::pow(sum, 1 / power);
        if (norm == 0) return;
        visit([&](int64_t from) {
          const double value = x[from];
          dx[from] += static_cast<float>(
              g[at] * std::copysign(std::pow(std::abs(value) / norm, power - 1), value));
        });
      });
    });
  });
}

KernelPtr make_max_gradient(const KernelRequest& request, std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, make_max_gradient, why);
  return make_gradient(request, why, Kind::kMax);
}
KernelPtr make_average_gradient(const KernelRequest& request, std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, make_average_gradient, why);
  return make_gradient(request, why, Kind::kAverage);
}
KernelPtr make_norm_gradient(const KernelRequest& request, std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, make_norm_gradient, why);
  return make_gradient(request, why, Kind::kNorm);
}

KernelPtr make_norm(const KernelRequest& request, std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, make_norm, why);
  if (!check(request, why)) return nullptr;
  return make_kernel([p = Planes(request.attrs, request.in(0).shape, request.out().shape),
                      power = static_cast<double>(request.attrs.i("p"))](const KernelArgs& args) {
    for_each_plane(p, [&](int64_t plane) {
      const float* x = static_cast<const float*>(args.inputs[0]) + plane * p.x_size;
      float* y = static_cast<float*>(args.outputs[0]) + plane * p.y_size;
      p.for_each_window([&](int64_t at, const Triple&, auto& visit) {
        double sum = 0;
        if (power == 2)
          visit([&](int64_t from) { sum += double{x[from]} * double{x[from]}; });
        else
          visit([&](int64_t from) { sum += std::pow(std::abs(double{x[from]}), power); });
        y[at] = static_cast<float>(power == 2 ? std::sqrt(sum) : std::pow(sum, 1 / power));
      });
    });
  });
}

const KernelRegistrar kMax("cpu", "max_pool", "plain", 20, make_max);
const KernelRegistrar kNorm("cpu", "lp_pool", "plain", 20, make_norm);
const KernelRegistrar kMaxGradient("cpu", "max_pool_gradient", "plain", 10, make_max_gradient);
const KernelRegistrar kAverageGradient("cpu", "avg_pool_gradient", "plain", 10,
                                       make_average_gradient);
const KernelRegistrar kNormGradient("cpu", "lp_pool_gradient", "plain", 10, make_norm_gradient);

}  // namespace

}  // namespace anymps::cpu
