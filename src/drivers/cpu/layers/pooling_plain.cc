// SPDX-License-Identifier: Apache-2.0
// What oneDNN does not pool: maxima with their places, norms, f64, averages with a divisor of their
// own, and the gradients of all pools. Planes, which are an image's channels, run in parallel;
// missing spatial axes get extent 1.
#include <array>
#include <cmath>
#include <limits>

#include "drivers/cpu/common/dense.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/kernel_family.h"
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

  // Elements that an average is divided by, as a product over the axes.
  using Divisors = std::array<std::vector<double>, 3>;
  Divisors divisors(bool padding) const {
    Divisors all;
    for (size_t i = 0; i < 3; ++i)
      for (int64_t at = 0; at < y[i]; ++at) {
        const auto [first, last] = range(i, at, padding ? end[i] : 0);
        all[i].push_back(static_cast<double>(std::max<int64_t>(0, last - (padding ? 0 : first))));
      }
    return all;
  }
  static double divisor(const Divisors& divisors, const Triple& at) {
    return divisors[0][at[0]] * divisors[1][at[1]] * divisors[2][at[2]];
  }
};

bool check(const KernelRequest& request, std::string& why) {
  if (!dense(request, why)) return false;
  if (request.in(0).dtype != DType::kF32 && request.in(0).dtype != DType::kF64)
    return refuse<bool>(why, fmt::format("dtype {}", name(request.in(0).dtype)));
  if (request.attrs.s("layout") != "channels_first") return refuse<bool>(why, "channels come last");
  if (request.in(0).rank() > 5)
    return refuse<bool>(why, fmt::format("rank {}", request.in(0).rank()));
  for (const TensorDesc& desc : {request.in(0), request.out()})
    if (desc.count() / std::max<int64_t>(1, desc.shape[0] * desc.shape[1]) > INT32_MAX)
      return refuse<bool>(why, "planes of more than 2^31 elements");
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

// The largest elements of a row of windows and their places, the first of equals or of NaNs; -1:
// there is none. One element of the kernel after the other, for all windows at once.
template <typename T>
struct LargestOfRow {
  using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;  // as wide: for vectors
  std::vector<T> best;
  std::vector<Place> found;

  explicit LargestOfRow(const Planes& p) : best(p.y[2]), found(p.y[2]) {}
  void find(const Planes& p, const T* x, int64_t d, int64_t h) {
    std::fill(best.begin(), best.end(), -std::numeric_limits<T>::infinity());
    std::fill(found.begin(), found.end(), Place{-1});
    const auto [d0, d1] = p.spans[0][d];
    const auto [h0, h1] = p.spans[1][h];
    for (int64_t i = d0; i < d1; ++i)
      for (int64_t j = h0; j < h1; ++j) {
        const int64_t depth = d * p.stride[0] + i * p.dilation[0] - p.begin[0];
        const int64_t line = h * p.stride[1] + j * p.dilation[1] - p.begin[1];
        const int64_t row = (depth * p.x[1] + line) * p.x[2];
        for (int64_t k = 0; k < p.kernel[2]; ++k) {
          const int64_t shift = k * p.dilation[2] - p.begin[2];
          // The windows whose element k lies in x.
          const int64_t step = p.stride[2];
          const int64_t first = shift >= 0 ? 0 : (-shift + step - 1) / step;
          const int64_t room = p.x[2] - shift;
          const int64_t last = std::min(p.y[2], room <= 0 ? 0 : (room + step - 1) / step);
          if (step == 1)
            take<1>(x, row + shift, first, last, 1);
          else if (step == 2)
            take<2>(x, row + shift, first, last, 2);
          else
            take<0>(x, row + shift, first, last, step);
        }
      }
  }

 private:
  template <int64_t kStep>
  void take(const T* x, int64_t from, int64_t first, int64_t last, int64_t step) {
    T* top = best.data();
    Place* places = found.data();
    if constexpr (kStep != 0) step = kStep;
    for (int64_t w = first; w < last; ++w) {
      const auto at = static_cast<Place>(from + w * step);
      const T value = x[from + w * step], so_far = top[w];
      const bool better =
          (value > so_far) | (places[w] < 0) | ((value != value) & (so_far == so_far));
      top[w] = better ? value : so_far;
      places[w] = better ? at : places[w];
    }
  }
};

// Calls fn(place of the row's first output, row) for each row of a plane's windows.
template <typename T, typename Fn>
void for_each_largest(const Planes& p, const T* x, LargestOfRow<T>& row, Fn&& fn) {
  int64_t place = 0;
  for (int64_t d = 0; d < p.y[0]; ++d)
    for (int64_t h = 0; h < p.y[1]; ++h, place += p.y[2]) {
      row.find(p, x, d, h);
      fn(place);
    }
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
      LargestOfRow<T> row(p);
      for_each_largest(p, x, row, [&](int64_t at) {
        std::copy(row.best.begin(), row.best.end(), y + at);
        for (int64_t w = 0; to && w < p.y[2]; ++w)
          to[at + w] = row.found[w] < 0 ? -1 : first + row.found[w];
      });
    });
  });
}

template <typename T>
KernelPtr make_average_typed(const KernelRequest& request) {
  const Planes planes(request.attrs, request.in(0).shape, request.out().shape);
  return make_kernel(
      [p = planes, counts = planes.divisors(request.attrs.b("count_include_pad")),
       own = static_cast<double>(request.attrs.i("divisor_override"))](const KernelArgs& args) {
        for_each_plane(p, [&](int64_t plane) {
          const T* x = static_cast<const T*>(args.inputs[0]) + plane * p.x_size;
          T* y = static_cast<T*>(args.outputs[0]) + plane * p.y_size;
          p.for_each_window([&](int64_t at, const Triple& index, auto& visit) {
            double sum = 0;
            for_each_element(visit, [&](int64_t from) { sum += double{x[from]}; });
            const double divisor = own != 0 ? own : Planes::divisor(counts, index);
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
  const Planes planes(request.attrs, request.in(1).shape, request.in(0).shape);
  return make_kernel(
      [p = planes, counts = planes.divisors(padding), own, power](const KernelArgs& args) {
        for_each_plane(p, [&](int64_t plane) {
          const T* g = static_cast<const T*>(args.inputs[0]) + plane * p.y_size;
          const T* x = static_cast<const T*>(args.inputs[1]) + plane * p.x_size;
          T* dx = static_cast<T*>(args.outputs[0]) + plane * p.x_size;
          std::fill_n(dx, p.x_size, T{0});
          if constexpr (kind == Kind::kMax) {
            LargestOfRow<T> row(p);
            return for_each_largest(p, x, row, [&](int64_t at) {
              for (int64_t w = 0; w < p.y[2]; ++w)
                if (row.found[w] >= 0) dx[row.found[w]] += g[at + w];
            });
          }
          p.for_each_window([&](int64_t at, [[maybe_unused]] const Triple& index, auto& visit) {
            if constexpr (kind == Kind::kAverage) {
              const double divisor = own != 0 ? own : Planes::divisor(counts, index);
              const auto share = static_cast<T>(double{g[at]} / divisor);
              return for_each_element(visit, [&](int64_t from) { dx[from] += share; });
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

const KernelFamily kPlainPools(
    "plain", 20,
    {{"max_pool", make_max},
     {"avg_pool", make_plain<make_average_typed<float>, make_average_typed<double>>},
     {"lp_pool", make_plain<make_norm_typed<float>, make_norm_typed<double>>}});
const KernelFamily kPoolGradients("plain", 10,
                                  {{"max_pool_gradient", make_gradient<Kind::kMax>},
                                   {"avg_pool_gradient", make_gradient<Kind::kAverage>},
                                   {"lp_pool_gradient", make_gradient<Kind::kNorm>}});

}  // namespace

}  // namespace anymps::cpu
