// SPDX-License-Identifier: Apache-2.0
// Complex numbers, division without NaN, and signs; numbers by hand.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kComplexNumbers = TestTensor::of<Complex>({3}, {{3, 4}, {0, -2}, {-1, 0}});

TEST(ReferenceComplex, Parts) {
  EXPECT_EQ(run_reference("real_part", {kComplexNumbers}).values(), (Row{3, 0, -1}));
  EXPECT_EQ(run_reference("imaginary_part", {kComplexNumbers}).values(), (Row{4, -2, 0}));
  EXPECT_EQ(run_reference("complex_abs", {kComplexNumbers}).values(), (Row{5, 2, 1}));
  EXPECT_EQ(run_reference("absolute_square", {kComplexNumbers}).values(), (Row{25, 4, 1}));
  EXPECT_TRUE(same(run_reference("conjugate", {kComplexNumbers}),
                   TestTensor::of<Complex>({3}, {{3, -4}, {0, 2}, {-1, 0}})));
}

TEST(ReferenceArithmetic, DivisionNoNanAndSignbit) {
  const TestTensor a(DType::kF32, {4}, {1, 0, -6, NAN}), b(DType::kF32, {4}, {0, -0.0, 4, 0});
  EXPECT_EQ(run_reference("div_no_nan", {a, b}).values(), (Row{0, 0, -1.5, 0}));
  EXPECT_EQ(run_reference("div_no_nan", {TestTensor::of<int32_t>({2}, {7, 7}),
                                         TestTensor::of<int32_t>({2}, {0, -2})})
                .values(),
            (Row{0, -3}));
  EXPECT_EQ(
      run_reference("signbit", {TestTensor(DType::kF16, {4}, {0, -0.0, -INFINITY, 2})}).values(),
      (Row{0, 1, 1, 0}));
  EXPECT_EQ(run_reference("signbit", {TestTensor::of<int8_t>({2}, {-3, 0})}).values(), (Row{1, 0}));
}

TEST(ReferenceComplex, FromPartsBroadcasts) {
  EXPECT_TRUE(same(run_reference("make_complex", {TestTensor(DType::kF32, {2}, {1, 2}),
                                                  TestTensor(DType::kF32, {2, 1}, {3, 4})}),
                   TestTensor::of<Complex>({2, 2}, {{1, 3}, {2, 3}, {1, 4}, {2, 4}})));
}

TEST(ReferenceComplex, PlanarPutsTheImaginaryPartsBehind) {
  const TestTensor x = TestTensor::of<Complex>({2, 2}, {{1, 2}, {3, 4}, {5, 6}, {7, 8}});
  const TestTensor y = run_reference("planar", {x});
  EXPECT_EQ(y.shape(), (Shape{2, 4}));
  EXPECT_EQ(y.values(), (Row{1, 3, 2, 4, 5, 7, 6, 8}));
}

}  // namespace
}  // namespace anymps::testing
