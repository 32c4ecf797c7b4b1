// SPDX-License-Identifier: Apache-2.0
// Convolutions by their definition. Tensors are brought to [N, C, D, H, W] first; missing spatial
// axes get extent 1.
#include <array>

#include "drivers/reference/dense.h"
#include "drivers/reference/layers/fused_tail.h"
#include "ops/layers/window.h"

namespace anymps {

namespace {

Shape tail(const Shape& shape, size_t first) { return Shape(shape.begin() + first, shape.end()); }

struct Problem {
  int64_t batch, channels, outputs, groups;
  Triple x, y, kernel, stride, dilation, pad;

  Problem(const Shape& in, const Shape& out, int64_t group_count, const Window& window)
      : batch(in[0]),
        channels(in[1]),
        outputs(out[1]),
        groups(group_count),
        x(lift(tail(in, 2), 1)),
        y(lift(tail(out, 2), 1)),
        kernel(lift(window.kernel, 1)),
        stride(lift(window.strides, 1)),
        dilation(lift(window.dilations, 1)),
        pad(lift(window.pads_begin, 0)) {}
};

int64_t volume(const Triple& triple) { return triple[0] * triple[1] * triple[2]; }

// Calls fn(flat index into the plane of `extents`, flat kernel index) for the kernel elements that
// fall into the plane when the window stands at `at`.
template <typename Fn>
void for_each_tap(const Problem& p, const Triple& extents, const Triple& at, Fn&& fn) {
  for (int64_t kd = 0, tap = 0; kd < p.kernel[0]; ++kd)
    for (int64_t kh = 0; kh < p.kernel[1]; ++kh)
      for (int64_t kw = 0; kw < p.kernel[2]; ++kw, ++tap) {
        const int64_t d = at[0] * p.stride[0] + kd * p.dilation[0] - p.pad[0];
        const int64_t h = at[1] * p.stride[1] + kh * p.dilation[1] - p.pad[1];
        const int64_t w = at[2] * p.stride[2] + kw * p.dilation[2] - p.pad[2];
        if (d < 0 || d >= extents[0] || h < 0 || h >= extents[1] || w < 0 || w >= extents[2])
          continue;
        fn((d * extents[1] + h) * extents[2] + w, tap);
      }
}

template <typename Fn>
void for_each_place(const Triple& extents, Fn&& fn) {
  int64_t flat = 0;
  for (int64_t d = 0; d < extents[0]; ++d)
    for (int64_t h = 0; h < extents[1]; ++h)
      for (int64_t w = 0; w < extents[2]; ++w) fn(Triple{d, h, w}, flat++);
}

template <typename A>
std::vector<A> convolve(const Problem& p, const std::vector<A>& x, const std::vector<A>& w) {
  const int64_t in_plane = volume(p.x), out_plane = volume(p.y), taps = volume(p.kernel);
  const int64_t per_group = p.channels / p.groups, outputs_per_group = p.outputs / p.groups;
  std::vector<A> y(p.batch * p.outputs * out_plane);
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t o = 0; o < p.outputs; ++o) {
      const int64_t first = o / outputs_per_group * per_group;
      A* out = y.data() + (n * p.outputs + o) * out_plane;
      for_each_place(p.y, [&](const Triple& at, int64_t place) {
        A sum{};
        for (int64_t c = 0; c < per_group; ++c) {
          const A* plane = x.data() + (n * p.channels + first + c) * in_plane;
          const A* weights = w.data() + (o * per_group + c) * taps;
          for_each_tap(p, p.x, at,
                       [&](int64_t from, int64_t tap) { sum += plane[from] * weights[tap]; });
        }
        out[place] = sum;
      });
    }
  return y;
}

template <typename A>
std::vector<A> convolve_transposed(const Problem& p, const std::vector<A>& x,
                                   const std::vector<A>& w) {
  const int64_t in_plane = volume(p.x), out_plane = volume(p.y), taps = volume(p.kernel);
  const int64_t per_group = p.channels / p.groups, outputs_per_group = p.outputs / p.groups;
  std::vector<A> y(p.batch * p.outputs * out_plane);
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t c = 0; c < p.channels; ++c)
      for (int64_t o = 0; o < outputs_per_group; ++o) {
        const A* plane = x.data() + (n * p.channels + c) * in_plane;
        const A* weights = w.data() + (c * outputs_per_group + o) * taps;
        A* out = y.data() + (n * p.outputs + c / per_group * outputs_per_group + o) * out_plane;
        for_each_place(p.x, [&](const Triple& at, int64_t place) {
          for_each_tap(p, p.y, at,
                       [&](int64_t to, int64_t tap) { out[to] += plane[place] * weights[tap]; });
        });
      }
  return y;
}

template <typename A>
void add_bias(const ReferenceArgs& args, const Problem& p, std::vector<A>& y) {
  if (!args.has(2)) return;
  const std::vector<A> bias = read_dense<A>(args.in[2]);
  const int64_t plane = volume(p.y);
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[static_cast<int64_t>(i) / plane % p.outputs];
}

}  // namespace

REFERENCE(conv) {
  const size_t rank = args.in[0].shape().size();
  const bool last = args.attrs.s("layout") == "channels_last";
  const std::vector<size_t> order = channels_first_order(rank, last);
  std::vector<size_t> weights_order;
  if (args.attrs.s("weights_layout") == "*IO") weights_order = {rank - 1, rank - 2};
  for (size_t i = 0; weights_order.size() < rank; ++i) weights_order.push_back(i);
  const Permuted x(args.in[0], order), w(args.in[1], weights_order), y(args.out[0], order);
  const Problem problem(x.shape(), y.shape(), args.attrs.i("groups"),
                        resolve_window(args.attrs, tail(x.shape(), 2), tail(w.shape(), 2)));
  with_accumulator(args.out[0].dtype, [&]<typename A>() {
    std::vector<A> sums = convolve(problem, read_dense<A>(x.view()), read_dense<A>(w.view()));
    add_bias(args, problem, sums);
    if (args.has(3)) {
      const Permuted residual(args.in[3], order);
      const std::vector<A> addend = read_dense<A>(residual.view());
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += addend[i];
    }
    activate(sums, args.out[0].dtype, args.attrs, "alpha", "beta");
    write_dense(y.view(), sums);
  });
}

REFERENCE(conv_transpose) {
  const bool last = args.attrs.s("layout") == "channels_last";
  const std::vector<size_t> order = channels_first_order(args.in[0].shape().size(), last);
  const Permuted x(args.in[0], order), y(args.out[0], order);
  const Problem problem(
      x.shape(), y.shape(), args.attrs.i("groups"),
      resolve_transposed_window(args.attrs, tail(x.shape(), 2), tail(args.in[1].shape(), 2)));
  with_accumulator(args.out[0].dtype, [&]<typename A>() {
    std::vector<A> sums =
        convolve_transposed(problem, read_dense<A>(x.view()), read_dense<A>(args.in[1]));
    add_bias(args, problem, sums);
    activate(sums, args.out[0].dtype, args.attrs, "alpha", "beta");
    write_dense(y.view(), sums);
  });
}

namespace {

// The tensors of a convolution, of which one is the result: brought to [N, C, …] and [O, I, …].
struct ForwardViews {
  ForwardViews(const ReferenceArgs& args, const View& in, const View& weights, const View& out)
      : x(in, activation_order(args, in)),
        w(weights, weights_order(args, in)),
        y(out, activation_order(args, in)),
        problem(x.shape(), y.shape(), args.attrs.i("groups"),
                resolve_window(args.attrs, tail(x.shape(), 2), tail(w.shape(), 2))) {}

  // Calls fn(place in y, in x, in w) for each product of the convolution.
  template <typename Fn>
  void for_each_product(Fn&& fn) const {
    const Problem& p = problem;
    const int64_t in_plane = volume(p.x), out_plane = volume(p.y), taps = volume(p.kernel);
    const int64_t per_group = p.channels / p.groups, outputs_per_group = p.outputs / p.groups;
    for (int64_t n = 0; n < p.batch; ++n)
      for (int64_t o = 0; o < p.outputs; ++o)
        for_each_place(p.y, [&](const Triple& at, int64_t place) {
          for (int64_t c = 0; c < per_group; ++c) {
            const int64_t channel = o / outputs_per_group * per_group + c;
            for_each_tap(p, p.x, at, [&](int64_t from, int64_t tap) {
              fn((n * p.outputs + o) * out_plane + place,
                 (n * p.channels + channel) * in_plane + from, (o * per_group + c) * taps + tap);
            });
          }
        });
  }

  // Adds y * from, element by element of the convolution, to the result. `places` tells of the
  // places in x and in w which is that of `from` and which that of the result.
  template <typename Places>
  void sum_products(const Permuted& from, const Permuted& result, Places&& places) const {
    const auto gradient = read_dense<double>(y.view()), factors = read_dense<double>(from.view());
    std::vector<double> sums(result.view().count(), 0.0);
    for_each_product([&](size_t at, size_t in, size_t tap) {
      const auto [factor, sum] = places(in, tap);
      sums[sum] += gradient[at] * factors[factor];
    });
    write_dense(result.view(), sums);
  }

  Permuted x, w, y;
  Problem problem;

 private:
  static std::vector<size_t> activation_order(const ReferenceArgs& args, const View& in) {
    return channels_first_order(in.shape().size(), args.attrs.s("layout") == "channels_last");
  }
  static std::vector<size_t> weights_order(const ReferenceArgs& args, const View& in) {
    const size_t rank = in.shape().size();
    std::vector<size_t> order;
    if (args.attrs.s("weights_layout") == "*IO") order = {rank - 1, rank - 2};
    for (size_t i = 0; order.size() < rank; ++i) order.push_back(i);
    return order;
  }
};

}  // namespace

REFERENCE(conv_data_gradient) {
  const ForwardViews views(args, args.out[0], args.in[1], args.in[0]);
  views.sum_products(views.w, views.x, [](size_t x, size_t k) { return std::pair(k, x); });
}

REFERENCE(conv_weights_gradient) {
  const ForwardViews views(args, args.in[1], args.out[0], args.in[0]);
  views.sum_products(views.x, views.w, [](size_t x, size_t k) { return std::pair(x, k); });
}

}  // namespace anymps
