// SPDX-License-Identifier: Apache-2.0
// Pooling by its definition, over any number of spatial axes.
#include <cmath>
#include <limits>

#include "drivers/reference/dense.h"
#include "ops/layers/pooling.h"

namespace anymps {

namespace {

// The spatial geometry of a pooling op, and a walk over its windows.
class Pool {
 public:
  // `x` is the input that is pooled.
  explicit Pool(const ReferenceArgs& args, size_t x = 0)
      : axes_(tensor_axes(args.attrs, args.in[x].shape().size())), in_(args.in[x].shape()) {
    window_ = pool_window(args.attrs, in_);
  }
  const Window& window() const { return window_; }

  // Calls fn(index into x, inside x, inside the padding, element of the window) for each element of
  // output `at`'s window.
  template <typename Fn>
  void for_each_tap(const Shape& at, Fn&& fn) const {
    Shape from = at;
    for_each_index(window_.kernel, [&](const Shape& tap) {
      bool inside = true, padded = true;
      for (size_t i = 0; i < tap.size(); ++i) {
        const size_t axis = axes_.spatial + i;
        const int64_t place =
            at[axis] * window_.strides[i] + tap[i] * window_.dilations[i] - window_.pads_begin[i];
        inside = inside && place >= 0 && place < in_[axis];
        padded = padded && place < in_[axis] + window_.pads_end[i];
        from[axis] = place;
      }
      fn(static_cast<const Shape&>(from), inside, padded, tap);
    });
  }

 private:
  TensorAxes axes_;
  const Shape& in_;
  Window window_;
};

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

template <typename T>
T store(double value) {
  return static_cast<T>(static_cast<Compute<T>>(value));
}

}  // namespace

REFERENCE(max_pool) {
  const Pool pool(args);
  const View &x = args.in[0], &y = args.out[0];
  const PoolIndex place = pool_index(args.attrs, x.shape(), pool.window());
  dispatch<kReal>(x.dtype, [&]<typename T>() {
    using C = Compute<T>;
    using Limits = std::numeric_limits<C>;
    for_each_index(y.shape(), [&](const Shape& at) {
      C best = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      int64_t index = -1;
      pool.for_each_tap(at, [&](const Shape& from, bool inside, bool, const Shape& tap) {
        if (!inside) return;
        const C value = static_cast<C>(x.at<T>(from));
        if (index >= 0 && (is_nan(best) || !(value > best || is_nan(value)))) return;
        best = value;
        index = place.encode(from, tap);
      });
      y.at<T>(at) = static_cast<T>(best);
      if (args.out.size() > 1) args.out[1].at<int64_t>(at) = index;
    });
  });
}

REFERENCE(avg_pool) {
  const Pool pool(args);
  const View &x = args.in[0], &y = args.out[0];
  const bool count_padding = args.attrs.b("count_include_pad");
  const auto divisor = static_cast<double>(args.attrs.i("divisor_override"));
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& at) {
      double sum = 0, count = 0;
      pool.for_each_tap(at, [&](const Shape& from, bool inside, bool padded, const Shape&) {
        if (inside) sum += static_cast<Compute<T>>(x.at<T>(from));
        count += count_padding ? padded : inside;
      });
      if (divisor != 0) count = divisor;
      y.at<T>(at) = store<T>(count == 0 ? 0 : sum / count);
    });
  });
}

REFERENCE(lp_pool) {
  const Pool pool(args);
  const View &x = args.in[0], &y = args.out[0];
  const auto p = static_cast<double>(args.attrs.i("p"));
  dispatch<kFloat>(x.dtype, [&]<typename T>() {
    for_each_index(y.shape(), [&](const Shape& at) {
      double sum = 0;
      pool.for_each_tap(at, [&](const Shape& from, bool inside, bool, const Shape&) {
        if (inside) sum += std::pow(std::abs(double{static_cast<Compute<T>>(x.at<T>(from))}), p);
      });
      y.at<T>(at) = store<T>(std::pow(sum, 1 / p));
    });
  });
}

namespace {

// dx, as a sum over windows: calls share(at, gradient, add), where add(from, amount) adds to dx.
template <typename Share>
void pool_gradient(const ReferenceArgs& args, Share&& share) {
  const View &gradient = args.in[0], &dx = args.out[0];
  const Strides flat = contiguous_strides(dx.shape());
  std::vector<double> sums(dx.count(), 0.0);
  const auto add = [&](const Shape& from, double amount) {
    int64_t at = 0;
    for (size_t i = 0; i < from.size(); ++i) at += from[i] * flat[i];
    sums[at] += amount;
  };
  for_each_index(gradient.shape(), [&](const Shape& at) {
    share(at, load_double(gradient, gradient.offset(at)), add);
  });
  write_dense(dx, sums);
}

}  // namespace

REFERENCE(max_pool_gradient) {
  const Pool pool(args, 1);
  const View& x = args.in[1];
  pool_gradient(args, [&](const Shape& at, double gradient, auto& add) {
    double best = 0;
    Shape place;
    bool found = false;
    pool.for_each_tap(at, [&](const Shape& from, bool inside, bool, const Shape&) {
      if (!inside) return;
      const double value = load_double(x, x.offset(from));
      if (found && (std::isnan(best) || !(value > best || std::isnan(value)))) return;
      found = true;
      best = value;
      place = from;
    });
    if (found) add(place, gradient);
  });
}

REFERENCE(avg_pool_gradient) {
  const Pool pool(args, 1);
  const bool count_padding = args.attrs.b("count_include_pad");
  const auto divisor = static_cast<double>(args.attrs.i("divisor_override"));
  pool_gradient(args, [&](const Shape& at, double gradient, auto& add) {
    double count = 0;
    pool.for_each_tap(at, [&](const Shape&, bool inside, bool padded, const Shape&) {
      count += count_padding ? padded : inside;
    });
    if (divisor != 0) count = divisor;
    pool.for_each_tap(at, [&](const Shape& from, bool inside, bool, const Shape&) {
      if (inside) add(from, gradient / count);
    });
  });
}

REFERENCE(lp_pool_gradient) {
  const Pool pool(args, 1);
  const View& x = args.in[1];
  const auto p = static_cast<double>(args.attrs.i("p"));
  pool_gradient(args, [&](const Shape& at, double gradient, auto& add) {
    double sum = 0;
    pool.for_each_tap(at, [&](const Shape& from, bool inside, bool, const Shape&) {
      if (inside) sum += std::pow(std::abs(load_double(x, x.offset(from))), p);
    });
    const double norm = std::pow(sum, 1 / p);
    pool.for_each_tap(at, [&](const Shape& from, bool inside, bool, const Shape&) {
      if (!inside || norm == 0) return;
      const double value = load_double(x, x.offset(from));
      add(from, gradient * std::copysign(std::pow(std::abs(value) / norm, p - 1), value));
    });
  });
}

REFERENCE(max_unpool) {
  const View &x = args.in[0], &indices = args.in[1], &y = args.out[0];
  const bool sum = args.attrs.s("reduce") == "add";
  const PoolIndex place = pool_index(args.attrs, y.shape(), pool_window(args.attrs, y.shape()));
  const Strides flat = contiguous_strides(y.shape());
  std::vector<double> values(y.count(), 0.0);
  for_each_index(x.shape(), [&](const Shape& at) {
    const int64_t index = load_int(indices, indices.offset(at));
    Shape to;
    if (index == -1) return;  // a window of padding alone
    require(place.decode(index, at, to), "[max_unpool] index {} at {} is outside of {}", index,
            to_string(at), to_string(y.shape()));
    int64_t n = 0;
    for (size_t i = 0; i < to.size(); ++i) n += to[i] * flat[i];
    double& value = values[n];
    value = load_double(x, x.offset(at)) + (sum ? value : 0);
  });
  write_dense(y, values);
}

}  // namespace anymps
