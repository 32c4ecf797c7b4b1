// SPDX-License-Identifier: Apache-2.0
// variance, and the gradients of normalizations: groups of elements that share a mean.
#include <cmath>

#include "drivers/cpu/common/rows.h"
#include "drivers/cpu/common/widen.h"
#include "drivers/cpu/cpu_kernel.h"
#include "drivers/cpu/reduction/reduction.h"
#include "ops/shape_rules.h"

namespace anymps::cpu {

namespace {

std::vector<bool> reduced_axes(const KernelRequest& request, int64_t rank) {
  const std::vector<int64_t> axes =
      normalize_axes(request.attrs.ints("axes"), rank, request.op->name.c_str());
  std::vector<bool> reduced(rank, axes.empty());
  for (const int64_t axis : axes) reduced[axis] = true;
  return reduced;
}

CPU_KERNEL(norm_beta_gradient, "sum") {
  TensorDesc gradient = request.in(0);
  const Shape& shape = request.in(1).shape;
  gradient.strides = broadcast_strides(gradient, shape);
  gradient.shape = shape;
  return make_sum_over(request, gradient, request.out(),
                       reduced_axes(request, request.in(1).rank()), why);
}

// The strides of each operand over x's shape; zeros for those that are absent.
std::vector<Strides> operand_strides(const KernelRequest& request, std::vector<size_t> inputs,
                                     const Shape& shape) {
  std::vector<Strides> strides;
  for (const size_t i : inputs)
    strides.push_back(request.has(i) ? broadcast_strides(request.in(i), shape)
                                     : Strides(shape.size(), 0));
  strides.push_back(broadcast_strides(request.out(), shape));
  return strides;
}

template <typename T>
double number(const void* data, int64_t at) {
  return static_cast<double>(static_cast<const T*>(data)[at]);
}

template <typename T>
KernelPtr make_typed_variance(const KernelRequest& request) {
  const Shape& shape = request.in(0).shape;
  const Groups groups(shape, reduced_axes(request, request.in(0).rank()),
                      operand_strides(request, {0, 1}, shape));
  return make_kernel([groups, given = request.has(1)](const KernelArgs& args) {
    groups.run(2, [&](const Groups::Block& block) {
      double means[Groups::kMost] = {}, sums[Groups::kMost] = {};
      const auto count = static_cast<double>(groups.count());
      const void *x = args.inputs[0], *mean = given ? args.inputs[1] : nullptr;
      if (!given)
        block.each([&](const Offsets& at, const Offsets& step, int64_t n, int64_t group) {
          for (int64_t i = 0; i < n; ++i) means[i * group] += number<T>(x, at[0] + i * step[0]);
        });
      for (int64_t g = 0; g < block.size(); ++g) means[g] /= count;
      block.each([&](const Offsets& at, const Offsets& step, int64_t n, int64_t group) {
        for (int64_t i = 0; i < n; ++i) {
          const double centre = given ? number<T>(mean, at[1] + i * step[1]) : means[i * group];
          const double distance = number<T>(x, at[0] + i * step[0]) - centre;
          sums[i * group] += distance * distance;
        }
      });
      for (int64_t g = 0; g < block.size(); ++g)
        static_cast<T*>(args.outputs[0])[block.offset(2, g)] = static_cast<T>(sums[g] / count);
    });
  });
}

// Reads 1 / sqrt(variance + epsilon) along a run, computed once where it does not vary.
template <typename T>
class Factor {
 public:
  Factor(const void* variance, int64_t at, int64_t step, double epsilon)
      : variance_(variance), at_(at), step_(step), epsilon_(epsilon), first_(compute(0)) {}
  double operator()(int64_t i) const { return step_ == 0 ? first_ : compute(i); }

 private:
  double compute(int64_t i) const {
    return 1 / std::sqrt(number<T>(variance_, at_ + i * step_) + epsilon_);
  }
  const void* variance_;
  int64_t at_, step_;
  double epsilon_, first_;
};

// Operands: x, gradient, mean, variance, y.
template <typename T>
KernelPtr make_typed_gamma_gradient(const KernelRequest& request) {
  const Shape& shape = request.in(1).shape;
  const Groups groups(shape, reduced_axes(request, request.in(1).rank()),
                      operand_strides(request, {1, 0, 2, 3}, shape));
  return make_kernel([groups, epsilon = request.attrs.f("epsilon")](const KernelArgs& args) {
    groups.run(3, [&](const Groups::Block& block) {
      double sums[Groups::kMost] = {};
      block.each([&](const Offsets& at, const Offsets& step, int64_t n, int64_t group) {
        const Factor<T> factor(args.inputs[3], at[3], step[3], epsilon);
        for (int64_t i = 0; i < n; ++i)
          sums[i * group] += number<T>(args.inputs[0], at[1] + i * step[1]) * factor(i) *
                             (number<T>(args.inputs[1], at[0] + i * step[0]) -
                              number<T>(args.inputs[2], at[2] + i * step[2]));
      });
      for (int64_t g = 0; g < block.size(); ++g)
        static_cast<T*>(args.outputs[0])[block.offset(4, g)] = static_cast<T>(sums[g]);
    });
  });
}

// Operands: x, gradient, mean, variance, gamma, gamma_gradient, beta_gradient, y.
template <typename T>
class NormGradient {
 public:
  explicit NormGradient(const KernelRequest& request)
      : groups_(request.in(1).shape, reduced_axes(request, request.in(1).rank()),
                operand_strides(request, {1, 0, 2, 3, 4, 5, 6}, request.in(1).shape)),
        epsilon_(request.attrs.f("epsilon")),
        gamma_(request.has(4)),
        scale_(request.has(5)),
        shift_(request.has(6)) {}

  void operator()(const KernelArgs& args) const {
    groups_.run(6, [&](const Groups::Block& block) {
      double scales[Groups::kMost] = {}, shifts[Groups::kMost] = {};
      const auto normalized = [&](const Offsets& at, const Offsets& step, int64_t i) {
        return number<T>(args.inputs[1], at[0] + i * step[0]) -
               number<T>(args.inputs[2], at[2] + i * step[2]);
      };
      const auto factor_of = [&](const Offsets& at, const Offsets& step) {
        return Factor<T>(args.inputs[3], at[3], step[3], epsilon_);
      };
      const auto gamma = [&](const Offsets& at, const Offsets& step, int64_t i) {
        return gamma_ ? number<T>(args.inputs[4], at[4] + i * step[4]) : 1.0;
      };
      if (!scale_ || !shift_)
        block.each([&](const Offsets& at, const Offsets& step, int64_t n, int64_t group) {
          const Factor<T> factor = factor_of(at, step);
          for (int64_t i = 0; i < n; ++i) {
            const double part = number<T>(args.inputs[0], at[1] + i * step[1]) * gamma(at, step, i);
            scales[i * group] += part * normalized(at, step, i) * factor(i);
            shifts[i * group] += part;
          }
        });
      const auto count = static_cast<double>(groups_.count());
      block.each([&](const Offsets& at, const Offsets& step, int64_t n, int64_t group) {
        const Factor<T> factor = factor_of(at, step);
        for (int64_t i = 0; i < n; ++i) {
          const double g = gamma(at, step, i), f = factor(i);
          const double to_scale =
              scale_ ? g * number<T>(args.inputs[5], at[5] + i * step[5]) : scales[i * group];
          const double to_shift =
              shift_ ? g * number<T>(args.inputs[6], at[6] + i * step[6]) : shifts[i * group];
          static_cast<T*>(args.outputs[0])[at[7] + i * step[7]] =
              static_cast<T>(f * (number<T>(args.inputs[0], at[1] + i * step[1]) * g -
                                  (to_shift + normalized(at, step, i) * f * to_scale) / count));
        }
      });
    });
  }

 private:
  Groups groups_;
  double epsilon_;
  bool gamma_, scale_, shift_;
};

// A factory for f32 and f64 with the halves through f32.
template <typename Make>
KernelPtr by_float(const KernelRequest& request, const KernelFactory& self, Make make,
                   std::string& why) {
  if (is_half(request.in(0).dtype)) return widened(request, self, why);
  return request.in(0).dtype == DType::kF64 ? make.template operator()<double>()
                                            : make.template operator()<float>();
}

CPU_KERNEL(variance, "groups") {
  return by_float(
      request, make_variance, [&]<typename T>() { return make_typed_variance<T>(request); }, why);
}
CPU_KERNEL(norm_gamma_gradient, "groups") {
  return by_float(
      request, make_norm_gamma_gradient,
      [&]<typename T>() { return make_typed_gamma_gradient<T>(request); }, why);
}
CPU_KERNEL(norm_gradient, "groups") {
  return by_float(
      request, make_norm_gradient,
      [&]<typename T>() { return make_kernel(NormGradient<T>(request)); }, why);
}

}  // namespace

}  // namespace anymps::cpu
