// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::run_reference;
using testing::same;
using testing::TestTensor;

TEST(ReferenceSdpa, WeighsValuesBySoftmax) {
  // Scores ln 3 and 0 (times the scale 1): weights 3/4 and 1/4.
  const TestTensor q(DType::kF64, {1, 1, 1, 1}, {std::log(3.0)}),
      k(DType::kF64, {1, 1, 2, 1}, {1, 0});
  const TestTensor v(DType::kF64, {1, 1, 2, 2}, {4, 8, 0, 4});
  EXPECT_TRUE(
      same(run_reference("sdpa", {q, k, v}), TestTensor(DType::kF64, {1, 1, 1, 2}, {3, 7}), 1e-12));
  EXPECT_TRUE(same(run_reference("sdpa", {q, k, v}, {{"scale", 2.0}}),
                   TestTensor(DType::kF64, {1, 1, 1, 2}, {3.6, 7.6}), 1e-12));
}

TEST(ReferenceSdpa, DefaultScale) {
  const TestTensor q(DType::kF64, {1, 1, 1, 4}, {2 * std::log(3.0), 0, 0, 0});
  const TestTensor k(DType::kF64, {1, 1, 2, 4}, {1, 0, 0, 0, 0, 0, 0, 0});
  const TestTensor v(DType::kF64, {1, 1, 2, 1}, {4, 0});
  EXPECT_TRUE(
      same(run_reference("sdpa", {q, k, v}), TestTensor(DType::kF64, {1, 1, 1, 1}, {3}), 1e-12));
}

TEST(ReferenceSdpa, CausalCountsFromTheFirst) {
  const TestTensor q(DType::kF64, {1, 1, 2, 1}), k(DType::kF64, {1, 1, 3, 1});
  const TestTensor v(DType::kF64, {1, 1, 3, 1}, {1, 3, 100});
  EXPECT_TRUE(same(run_reference("sdpa", {q, k, v}, {{"causal", true}}),
                   TestTensor(DType::kF64, {1, 1, 2, 1}, {1, 2}), 1e-12));
}

TEST(ReferenceSdpa, BoolMaskKeepsWhereTrue) {
  const TestTensor q(DType::kF32, {1, 2, 1, 1}), k(DType::kF32, {1, 2, 2, 1});
  const TestTensor v(DType::kF32, {1, 2, 2, 1}, {1, 3, 5, 7});
  const TestTensor mask(DType::kBool, {2, 1, 2}, {1, 0, 0, 0});
  EXPECT_TRUE(
      same(run_reference("sdpa", {q, k, v, mask}), TestTensor(DType::kF32, {1, 2, 1, 1}, {1, 0})));
}

TEST(ReferenceSdpa, FloatMaskIsAdded) {
  const TestTensor q(DType::kF32, {1, 1, 2, 1}), k(DType::kF32, {1, 1, 2, 1});
  const TestTensor v(DType::kF32, {1, 1, 2, 1}, {4, 0});
  const double low = -std::numeric_limits<double>::infinity();
  const TestTensor mask(DType::kF64, {2, 2}, {std::log(3.0), 0, low, low});
  EXPECT_TRUE(same(run_reference("sdpa", {q, k, v, mask}),
                   TestTensor(DType::kF32, {1, 1, 2, 1}, {3, 0}), 1e-6));
}

TEST(ReferenceSdpa, NaNAndLargeScores) {
  const TestTensor q(DType::kF32, {1, 1, 2, 1}, {1000, std::nan("")});
  const TestTensor k(DType::kF32, {1, 1, 2, 1}, {1000, -1000}),
      v(DType::kF32, {1, 1, 2, 1}, {4, 1});
  EXPECT_TRUE(same(run_reference("sdpa", {q, k, v}),
                   TestTensor(DType::kF32, {1, 1, 2, 1}, {4, std::nan("")})));
}

TEST(ReferenceSdpa, ReadsStridedInputs) {
  const TestTensor q = TestTensor(DType::kF32, {2, 3, 4, 5}).fill(1);
  const TestTensor k = TestTensor(DType::kF32, {2, 3, 6, 5}).fill(2);
  const TestTensor v = TestTensor(DType::kF32, {2, 3, 6, 7}).fill(3);
  const TestTensor mask = TestTensor(DType::kF32, {2, 1, 1, 6}).fill(4);
  EXPECT_TRUE(
      same(run_reference("sdpa", {q.scrambled(), k.scrambled(), v.scrambled(), mask.scrambled()}),
           run_reference("sdpa", {q, k, v, mask})));
}

}  // namespace
}  // namespace anymps
