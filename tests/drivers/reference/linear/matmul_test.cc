// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::run_reference;
using testing::same;
using testing::TestTensor;

TEST(ReferenceMatmul, Plain) {
  const TestTensor a(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6}),
      b(DType::kF32, {3, 2}, {1, 0, 2, 1, 3, -1});
  EXPECT_TRUE(
      same(run_reference("matmul", {a, b}), TestTensor(DType::kF32, {2, 2}, {14, -1, 32, -1})));
  EXPECT_TRUE(same(run_reference("matmul", {a, a}, {{"transpose_b", true}}),
                   TestTensor(DType::kF32, {2, 2}, {14, 32, 32, 77})));
  EXPECT_TRUE(same(run_reference("matmul", {b, b}, {{"transpose_a", true}}),
                   TestTensor(DType::kF32, {2, 2}, {14, -1, -1, 2})));
}

TEST(ReferenceMatmul, Vectors) {
  const TestTensor v(DType::kF32, {2}, {1, 10}), m(DType::kF32, {2, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(same(run_reference("matmul", {v, v}), TestTensor(DType::kF32, {}, {101})));
  EXPECT_TRUE(same(run_reference("matmul", {v, m}), TestTensor(DType::kF32, {2}, {31, 42})));
  EXPECT_TRUE(same(run_reference("matmul", {m, v}), TestTensor(DType::kF32, {2}, {21, 43})));
  EXPECT_TRUE(same(run_reference("matmul", {m, v}, {{"transpose_b", true}}),
                   TestTensor(DType::kF32, {2}, {21, 43})));
}

TEST(ReferenceMatmul, BatchesBroadcast) {
  const TestTensor a = TestTensor(DType::kF64, {2, 1, 3, 4}).fill(1);
  const TestTensor b = TestTensor(DType::kF64, {5, 4, 2}).fill(2);
  const TestTensor y = run_reference("matmul", {a.scrambled(), b.scrambled()});
  ASSERT_EQ(y.shape(), (Shape{2, 5, 3, 2}));
  for_each_index(y.shape(), [&](const Shape& at) {
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k)
      sum += a.get({at[0], 0, at[2], k}).real() * b.get({at[1], k, at[3]}).real();
    EXPECT_NEAR(y.get(at).real(), sum, 1e-12) << to_string(at);
  });
}

TEST(ReferenceMatmul, ScaleBiasResidualActivation) {
  const TestTensor a(DType::kF32, {1, 1}, {3}), b(DType::kF32, {1, 2}, {2, -2});
  const TestTensor bias(DType::kF32, {2}, {1, 1}), residual(DType::kF32, {1, 2}, {-10, 10});
  EXPECT_TRUE(same(run_reference("matmul", {a, b, bias, residual}, {{"alpha", 0.5}}),
                   TestTensor(DType::kF32, {1, 2}, {-6, 8})));
  EXPECT_TRUE(
      same(run_reference(
               "matmul", {a, b, bias, residual},
               {{"alpha", 0.5}, {"activation", "clamp"}, {"act_alpha", -1.0}, {"act_beta", 2.0}}),
           TestTensor(DType::kF32, {1, 2}, {-1, 2})));
  const TestTensor column(DType::kF32, {2, 1}, {100, 200}), two(DType::kF32, {2, 1}, {1, 2});
  EXPECT_TRUE(same(run_reference("matmul", {two, b, column}),
                   TestTensor(DType::kF32, {2, 2}, {102, 98, 204, 196})));
}

TEST(ReferenceMatmul, IntegersWrap) {
  const TestTensor a(DType::kU8, {1, 2}, {200, 100}), b(DType::kU8, {2, 1}, {2, 1});
  EXPECT_TRUE(same(run_reference("matmul", {a, b}), TestTensor(DType::kU8, {1, 1}, {500 - 256})));
  const auto big = TestTensor::of<int64_t>({1, 1}, {INT64_MAX});
  const auto two = TestTensor::of<int64_t>({1, 1}, {2});
  EXPECT_EQ(run_reference("matmul", {big, two}).data<int64_t>()[0], -2);
}

TEST(ReferenceMatmul, Complex) {
  const auto a = TestTensor::of<Complex>({1, 2}, {{1, 2}, {0, 1}});
  const auto b = TestTensor::of<Complex>({2, 1}, {{3, -1}, {2, 2}});
  EXPECT_TRUE(same(run_reference("matmul", {a, b}), TestTensor::of<Complex>({1, 1}, {{3, 7}})));
}

TEST(ReferenceMatmul, NothingToSumGivesTheBias) {
  const TestTensor a(DType::kF32, {2, 0}), b(DType::kF32, {0, 2}), bias(DType::kF32, {2}, {1, 2});
  EXPECT_TRUE(
      same(run_reference("matmul", {a, b, bias}), TestTensor(DType::kF32, {2, 2}, {1, 2, 1, 2})));
}

}  // namespace
}  // namespace anymps
