// SPDX-License-Identifier: Apache-2.0
// Resizing by its definition: each element is a weighted sum over the neighbours of its place, the
// weight being the product of those of the axes.
#include <cmath>
#include <functional>

#include "drivers/reference/dense.h"
#include "ops/signal/resize.h"

namespace anymps {

namespace {

std::vector<double> floats_of(const ReferenceArgs& args, size_t i, const char* attr) {
  if (i != 0 && args.has(i)) return read_dense<double>(args.in[i]);
  return args.op.attr_index(attr) < 0 ? std::vector<double>() : args.attrs.floats(attr);
}

// Walks the elements of x that make up the elements of y.
class Resampling {
 public:
  Resampling(const Attrs& attrs, const Shape& in, const Shape& out, const ResizeNumbers& numbers,
             const std::vector<int64_t>& sizes)
      : out_(out), filter_(resize_filter(attrs)) {
    for (const ResizeAxis& axis :
         resize_axes(resize_rule(attrs, in.size()), in, out, numbers, sizes)) {
      taps_.emplace_back();
      for (int64_t at = 0; at < axis.out; ++at)
        taps_.back().push_back(axis.identity() ? std::vector<ResizeTap>{{at, 1}}
                                               : axis.taps(at, filter_));
    }
  }

  // Calls begin(at), each(from, weight) for every neighbour, end(at, inside), for each `at` of y.
  template <typename Each, typename End>
  void walk(Each&& each, End&& end) const {
    Shape from(out_.size());
    for_each_index(out_, [&](const Shape& at) {
      bool inside = true;
      for (size_t i = 0; i < at.size(); ++i) inside = inside && !taps_[i][at[i]].empty();
      if (inside) mix(at, 0, 1, from, each);
      end(at, inside);
    });
  }

 private:
  template <typename Each>
  void mix(const Shape& at, size_t axis, double weight, Shape& from, Each& each) const {
    if (axis == at.size()) {
      each(at, static_cast<const Shape&>(from), weight);
      return;
    }
    for (const ResizeTap& tap : taps_[axis][at[axis]]) {
      from[axis] = tap.index;
      mix(at, axis + 1, weight * tap.weight, from, each);
    }
  }

  Shape out_;
  ResizeFilter filter_;
  std::vector<std::vector<std::vector<ResizeTap>>> taps_;  // [axis][place in y]
};

}  // namespace

REFERENCE(resize) {
  const View &x = args.in[0], &y = args.out[0];
  if (y.count() == 0) return;
  require(x.count() > 0, "[resize] cannot make {} from an empty tensor", to_string(y.shape()));
  const ResizeNumbers numbers{floats_of(args, 2, "scales"), floats_of(args, 3, "offsets"),
                              floats_of(args, 4, "roi")};
  const Resampling sampling(args.attrs, x.shape(), y.shape(), numbers, args.ints(1, "sizes"));
  const double outside = args.attrs.f("extrapolation_value");
  if (args.attrs.s("mode") == "nearest") {
    dispatch<kReal | kBoolean>(x.dtype, [&]<typename T>() {
      sampling.walk(
          [&](const Shape& at, const Shape& from, double) { y.at<T>(at) = x.at<T>(from); },
          [&](const Shape& at, bool inside) {
            if (!inside) y.at<T>(at) = static_cast<T>(static_cast<Compute<T>>(outside));
          });
    });
    return;
  }
  dispatch<kReal>(x.dtype, [&]<typename T>() {
    using C = Compute<T>;
    double sum = 0;
    sampling.walk(
        [&](const Shape&, const Shape& from, double weight) {
          sum += weight * static_cast<double>(static_cast<C>(x.at<T>(from)));
        },
        [&](const Shape& at, bool inside) {
          double value = inside ? sum : outside;
          if constexpr (std::is_integral_v<T>) {  // cubic may overshoot the type's range
            using Limits = std::numeric_limits<T>;
            const auto low = static_cast<double>(Limits::lowest());
            const auto high = static_cast<double>(Limits::max());
            y.at<T>(at) = value <= low    ? Limits::lowest()
                          : value >= high ? Limits::max()
                                          : static_cast<T>(value);
          } else {
            y.at<T>(at) = static_cast<T>(static_cast<C>(value));
          }
          sum = 0;
        });
  });
}

REFERENCE(resize_gradient) {
  const View &gradient = args.in[0], &dx = args.out[0];
  std::vector<double> sums(dx.count(), 0.0);
  if (gradient.count() > 0) {
    require(!sums.empty(), "[resize_gradient] x is empty, but the gradient is not");
    const ResizeNumbers numbers{floats_of(args, 2, "scales"), floats_of(args, 3, "offsets"),
                                floats_of(args, 4, "roi")};
    const Resampling sampling(args.attrs, dx.shape(), gradient.shape(), numbers,
                              args.attrs.ints("sizes"));
    const Strides flat = contiguous_strides(dx.shape());
    dispatch<kFloat>(gradient.dtype, [&]<typename T>() {
      sampling.walk(
          [&](const Shape& at, const Shape& from, double weight) {
            int64_t place = 0;
            for (size_t i = 0; i < from.size(); ++i) place += from[i] * flat[i];
            sums[place] +=
                weight * static_cast<double>(static_cast<Compute<T>>(gradient.at<T>(at)));
          },
          [](const Shape&, bool) {});
    });
  }
  write_dense(dx, sums);
}

}  // namespace anymps
