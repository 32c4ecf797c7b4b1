// SPDX-License-Identifier: Apache-2.0
// Variance and the gradients of normalizations against the reference, along axes in every order of
// memory.
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TEST(CpuVariance, AlongAnyAxes) {
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{0, 2}, Ints{1, 2}, Ints{}}) {
    expect_as_reference("variance", {random_f32({30, 40, 50}, 1, 99, 101)}, {{"axes", axes}}, 1e-4);
    expect_as_reference("variance", {random_f32({30, 40, 50}).scrambled(), random_f32({40, 1}, 2)},
                        {{"axes", axes}}, 1e-4);
  }
}

TEST(CpuNormalization, Gradients) {
  struct Case {
    Shape x, statistics, gamma, gradients;
    Ints axes, parameter_axes;
  };
  // Of a batch, of rows, and of images with channels last.
  for (const Case& c :
       {Case{{6, 70, 9, 8}, {1, 70, 1, 1}, {1, 70, 1, 1}, {1, 70, 1, 1}, {0, 2, 3}, {0, 2, 3}},
        Case{{90, 130}, {90, 1}, {1, 130}, {90, 1}, {1}, {0}},
        Case{{6, 9, 8, 70}, {6, 1, 1, 70}, {70}, {6, 1, 1, 70}, {1, 2}, {0, 1, 2}}})
    for (DType dtype : {DType::kF32, DType::kF64}) {
      const auto make = [&](const Shape& shape, uint64_t seed, double low = -1) {
        return TestTensor(dtype, shape).fill(seed, low, 1);
      };
      const TestTensor dy = make(c.x, 1), x = make(c.x, 2), mean = make(c.statistics, 3),
                       variance = make(c.statistics, 4, 0.2), gamma = make(c.gamma, 5);
      const NamedAttrs parameters = {{"axes", c.parameter_axes}};
      expect_as_reference("norm_gamma_gradient", {dy, x, mean, variance}, parameters, 1e-4);
      expect_as_reference("norm_beta_gradient", {dy, x}, parameters, 1e-4);
      const NamedAttrs attrs = {{"axes", c.axes}};
      expect_as_reference("norm_gradient", {dy, x, mean, variance}, attrs, 1e-4);
      expect_as_reference("norm_gradient", {dy, x.scrambled(), mean, variance, gamma}, attrs, 1e-4);
      expect_as_reference("norm_gradient",
                          {dy, x, mean, variance, gamma, make(c.gradients, 6), std::nullopt}, attrs,
                          1e-4);
    }
}

}  // namespace
}  // namespace anymps::testing
