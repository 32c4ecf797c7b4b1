// SPDX-License-Identifier: Apache-2.0
// Variance and the gradients of normalizations by their formulas.
#include <cmath>
#include <functional>

#include "drivers/reference/dense.h"
#include "ops/shape_rules.h"

namespace anymps {

namespace {

// Sums over the axes of attribute `axes`, which keep extent 1.
class Reduction {
 public:
  Reduction(const ReferenceArgs& args, const Shape& shape) : shape_(shape), small_(shape) {
    std::vector<int64_t> axes =
        normalize_axes(args.attrs.ints("axes"), std::ssize(shape), args.op.name.c_str());
    if (axes.empty())
      for (size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    for (const int64_t axis : axes) {
      count_ *= static_cast<double>(shape[axis]);
      small_[axis] = 1;
    }
    strides_ = contiguous_strides(small_);
  }
  double count() const { return count_; }
  // Where the sum that `at` belongs to lies.
  size_t place(const Shape& at) const {
    int64_t sum = 0;
    for (size_t i = 0; i < at.size(); ++i)
      if (small_[i] != 1) sum += at[i] * strides_[i];
    return sum;
  }
  template <typename Fn>
  std::vector<double> sum(Fn&& value) const {
    std::vector<double> sums(element_count(small_), 0.0);
    for_each_index(shape_, [&](const Shape& at) { sums[place(at)] += value(at); });
    return sums;
  }

 private:
  Shape shape_, small_;
  Strides strides_;
  double count_ = 1;
};

// Input i at an index of x, broadcast.
auto reader(const ReferenceArgs& args, size_t i, const Shape& shape) {
  return [&view = args.in[i], offset = BroadcastOffset(args.in[i], shape)](const Shape& at) {
    return load_double(view, offset(at));
  };
}

}  // namespace

REFERENCE(variance) {
  const Shape& shape = args.in[0].shape();
  const Reduction reduction(args, shape);
  const auto x = reader(args, 0, shape);
  std::vector<double> own;
  if (!args.has(1)) {
    own = reduction.sum(x);
    for (double& mean : own) mean /= reduction.count();
  }
  const auto mean = [&](const Shape& at) {
    return args.has(1) ? reader(args, 1, shape)(at) : own[reduction.place(at)];
  };
  std::vector<double> sums = reduction.sum([&](const Shape& at) {
    const double distance = x(at) - mean(at);
    return distance * distance;
  });
  for (double& sum : sums) sum /= reduction.count();
  write_dense(args.out[0], sums);
}

namespace {

struct Normalization {
  Normalization(const ReferenceArgs& args)
      : shape(args.in[1].shape()),
        gradient(reader(args, 0, shape)),
        x(reader(args, 1, shape)),
        mean(reader(args, 2, shape)),
        variance(reader(args, 3, shape)),
        epsilon(args.attrs.f("epsilon")) {}

  double factor(const Shape& at) const { return 1 / std::sqrt(variance(at) + epsilon); }
  double normalized(const Shape& at) const { return (x(at) - mean(at)) * factor(at); }

  using Reader = std::function<double(const Shape&)>;
  Shape shape;
  Reader gradient, x, mean, variance;
  double epsilon;
};

}  // namespace

REFERENCE(norm_gamma_gradient) {
  const Normalization norm(args);
  write_dense(args.out[0], Reduction(args, norm.shape).sum([&](const Shape& at) {
    return norm.gradient(at) * norm.normalized(at);
  }));
}

REFERENCE(norm_beta_gradient) {
  const Shape& shape = args.in[1].shape();
  write_dense(args.out[0], Reduction(args, shape).sum(reader(args, 0, shape)));
}

REFERENCE(norm_gradient) {
  const Normalization norm(args);
  const Reduction reduction(args, norm.shape);
  const auto gamma = [&](const Shape& at) {
    return args.has(4) ? reader(args, 4, norm.shape)(at) : 1.0;
  };
  // The gradients of scale and shift for x itself: with gamma inside the sums, which is the same
  // where gamma does not vary along the axes.
  const std::vector<double> scale = reduction.sum([&](const Shape&at) {
    return norm.gradient(at) * gamma(at) * norm.normalized(at);
  }),
                            shift = reduction.sum(
                                [&](const Shape&at) { return norm.gradient(at) * gamma(at); });
  std::vector<double> dx;
  for_each_index(norm.shape, [&](const Shape& at) {
    const double g = gamma(at);
    const double to_scale =
        args.has(5) ? g * reader(args, 5, norm.shape)(at) : scale[reduction.place(at)];
    const double to_shift =
        args.has(6) ? g * reader(args, 6, norm.shape)(at) : shift[reduction.place(at)];
    dx.push_back(
        norm.factor(at) *
        (norm.gradient(at) * g - (to_shift + norm.normalized(at) * to_scale) / reduction.count()));
  });
  write_dense(args.out[0], dx);
}

}  // namespace anymps
