// SPDX-License-Identifier: Apache-2.0
// Gradients of activations; numbers by hand and from NumPy.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kDy(DType::kF64, {4}, {1, 2, 3, 4}), kPoints(DType::kF64, {4}, {-2, 0, 0.5, 3});

TEST(ReferenceActivationGradient, Elementwise) {
  EXPECT_EQ(run_reference("relu_gradient", {kDy, kPoints}).values(), (Row{0, 0, 3, 4}));
  EXPECT_EQ(
      run_reference("leaky_relu_gradient", {kDy, kPoints, TestTensor(DType::kF64, {}, {0.25})})
          .values(),
      (Row{0.25, 2, 3, 4}));
  EXPECT_TRUE(same(run_reference("sigmoid_gradient", {kDy, kPoints}),
                   TestTensor(DType::kF64, {4},
                              {0.1049935854035065, 0.5, 0.7050111366047835, 0.180706638923648}),
                   1e-12));
}

TEST(ReferenceActivationGradient, Softmax) {
  EXPECT_TRUE(same(run_reference("softmax_gradient", {kDy, kPoints}),
                   TestTensor(DType::kF64, {4},
                              {-0.016703891607385155, -0.07969981044806299, -0.0593104868857644,
                               0.1557141889412123}),
                   1e-12));
}

}  // namespace
}  // namespace anymps::testing
