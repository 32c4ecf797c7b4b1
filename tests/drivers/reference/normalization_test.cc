// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::run_reference;
using testing::run_reference_all;
using testing::same;
using testing::TestTensor;

TEST(ReferenceNorm, BatchNormUsesTheGivenStatistics) {
  const TestTensor x(DType::kF32, {1, 2, 2}, {1, 2, 3, 4});
  const TestTensor mean(DType::kF32, {2}, {1, 3}), variance(DType::kF32, {2}, {0.25, 4});
  const TestTensor gamma(DType::kF32, {2}, {10, 2}), beta(DType::kF32, {2}, {1, -1});
  EXPECT_TRUE(same(run_reference("batch_norm", {x, mean, variance}, {{"epsilon", 0.0}}),
                   TestTensor(DType::kF32, {1, 2, 2}, {0, 2, 0, 0.5}), 1e-6));
  EXPECT_TRUE(
      same(run_reference("batch_norm", {x, mean, variance, gamma, beta}, {{"epsilon", 0.0}}),
           TestTensor(DType::kF32, {1, 2, 2}, {1, 21, -1, 0}), 1e-6));
  EXPECT_TRUE(same(run_reference("batch_norm", {x, mean, variance, std::nullopt, beta},
                                 {{"epsilon", 0.0}, {"axis", -1}}),
                   TestTensor(DType::kF32, {1, 2, 2}, {1, -1.5, 5, -0.5}), 1e-6));
}

TEST(ReferenceNorm, LayerNormAndItsStatistics) {
  const TestTensor x(DType::kF32, {2, 2}, {1, 3, -2, 4});
  const TestTensor gamma(DType::kF32, {2}, {2, 1}), beta(DType::kF32, {2}, {0, 5});
  const auto out = run_reference_all("layer_norm", {x, gamma, beta}, {{"epsilon", 0.0}}, 3);
  EXPECT_TRUE(same(out[0], TestTensor(DType::kF32, {2, 2}, {-2, 6, -2, 6}), 1e-6));
  EXPECT_TRUE(same(out[1], TestTensor(DType::kF32, {2, 1}, {2, 1}), 1e-6));
  EXPECT_TRUE(same(out[2], TestTensor(DType::kF32, {2, 1}, {1, 1.0 / 3}), 1e-6));
  EXPECT_EQ(run_reference_all("layer_norm", {x, gamma, beta}, {}, 1).size(), 1u);
}

TEST(ReferenceNorm, LayerNormOverSeveralAxes) {
  // Mean 2.5, variance 1.25 of 1..4; epsilon brings the variance to 4.
  const TestTensor x(DType::kF64, {1, 2, 2}, {1, 2, 3, 4}), gamma(DType::kF64, {2, 1}, {2, 4});
  EXPECT_TRUE(same(run_reference("layer_norm", {x, gamma}, {{"axis", 1}, {"epsilon", 2.75}}),
                   TestTensor(DType::kF64, {1, 2, 2}, {-1.5, -0.5, 1, 3}), 1e-12));
}

TEST(ReferenceNorm, RmsNorm) {
  const TestTensor x(DType::kF32, {2, 2}, {3, 4, 0, 0}), gamma(DType::kF32, {2}, {1, 2});
  const double root = std::sqrt(12.5);
  EXPECT_TRUE(same(run_reference("rms_norm", {x, gamma}, {{"epsilon", 1e-12}}),
                   TestTensor(DType::kF32, {2, 2}, {3 / root, 8 / root, 0, 0}), 1e-6));
}

TEST(ReferenceNorm, GroupsOfChannels) {
  // Groups {1, 3, 5, 7} (mean 4, variance 5) and {0, 0, 2, 2} (mean 1, variance 1).
  const TestTensor x(DType::kF64, {1, 4, 2}, {1, 3, 5, 7, 0, 0, 2, 2});
  const TestTensor gamma(DType::kF64, {4}, {1, 2, 3, 4}), beta(DType::kF64, {4}, {0, 0, 0, 1});
  const double s = std::sqrt(5.0);
  EXPECT_TRUE(same(run_reference("group_norm", {x, gamma, beta}, {{"groups", 2}, {"epsilon", 0.0}}),
                   TestTensor(DType::kF64, {1, 4, 2}, {-3 / s, -1 / s, 2 / s, 6 / s, -3, -3, 5, 5}),
                   1e-12));
}

TEST(ReferenceNorm, InstanceNormIsGroupNormWithAGroupAChannel) {
  const TestTensor x = TestTensor(DType::kF64, {2, 3, 4, 5}).fill(1);
  const TestTensor gamma = TestTensor(DType::kF64, {3}).fill(2);
  EXPECT_TRUE(same(run_reference("instance_norm", {x.scrambled(), gamma}),
                   run_reference("group_norm", {x, gamma}, {{"groups", 3}})));
  const TestTensor two(DType::kF64, {1, 1, 2}, {1, 3});
  EXPECT_TRUE(same(run_reference("instance_norm", {two}, {{"epsilon", 0.0}}),
                   TestTensor(DType::kF64, {1, 1, 2}, {-1, 1}), 1e-12));
}

TEST(ReferenceNorm, LrnWindow) {
  // An even size takes one more channel after than before.
  const TestTensor x(DType::kF64, {1, 4}, {1, 2, 3, 4});
  EXPECT_TRUE(
      same(run_reference("lrn", {x}, {{"size", 2}, {"alpha", 2.0}, {"beta", 1.0}, {"bias", 1.0}}),
           TestTensor(DType::kF64, {1, 4}, {1.0 / 6, 2.0 / 14, 3.0 / 26, 4.0 / 17}), 1e-12));
  EXPECT_TRUE(
      same(run_reference("lrn", {x}, {{"size", 3}, {"alpha", 3.0}, {"beta", 0.5}, {"bias", 2.0}}),
           TestTensor(
               DType::kF64, {1, 4},
               {1 / std::sqrt(7.0), 2 / std::sqrt(16.0), 3 / std::sqrt(31.0), 4 / std::sqrt(27.0)}),
           1e-12));
}

}  // namespace
}  // namespace anymps
