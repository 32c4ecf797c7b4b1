// SPDX-License-Identifier: Apache-2.0
// Variance, local responses and the gradients of normalizations against the reference, along axes
// in every order of memory.
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

// Channels that fill vectors, blocks of them and neither, inside of the tensor and last in it, with
// powers that are roots and others.
TEST(CpuLrn, EveryPowerAndWindow) {
  struct Case {
    Shape x;
    int64_t axis;
  };
  const Case cases[] = {{{2, 7, 5, 9}, 1}, {{1, 40, 300}, 1}, {{2, 3, 5, 64}, 3},
                        {{3, 17}, 1},      {{4, 600}, -1},    {{1, 1}, 1},
                        {{5, 3, 2}, 0},    {{2, 0, 3}, 1},    {{2, 3, 0}, -1}};
  size_t number = 0;
  for (const Case& c : cases)
    for (const int64_t size : {1, 2, 5, 300, 5000})
      for (const double beta : {0.5, 0.75, 1.0, 0.3}) {
        const NamedAttrs attrs{{"size", size},
                               {"axis", c.axis},
                               {"beta", beta},
                               {"alpha", 0.7},
                               {"bias", ++number % 2 ? 1.5 : 0.25}};
        for (const DType dtype : {DType::kF32, DType::kBF16})
          expect_as_reference("lrn", {TestTensor(dtype, c.x).fill(number, -2, 2)}, attrs,
                              dtype == DType::kF32 ? 2e-6 : 1e-2);
      }
}

// What a root would make of a sum below 0, and of infinities.
TEST(CpuLrn, EdgesAreThoseOfPow) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const double beta : {0.5, 0.75}) {
    const NamedAttrs attrs{{"size", 1}, {"beta", beta}, {"alpha", -4.0}, {"bias", 1.0}};
    expect_as_reference("lrn", {TestTensor(DType::kF32, {1, 5}, {0.1, -0.2, 3, 1e3, inf})}, attrs,
                        1e-6);
    expect_as_reference("lrn", {TestTensor(DType::kF32, {1, 3}, {inf, NAN, -2})},
                        {{"size", 1}, {"beta", beta}, {"alpha", 4.0}}, 1e-6);
  }
}

}  // namespace
}  // namespace anymps::testing
