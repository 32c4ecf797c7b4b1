// SPDX-License-Identifier: Apache-2.0
// Ops that gradients are made of, against numbers made by hand.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TEST(SumTo, SumsWhatWasBroadcast) {
  const TestTensor x(DType::kF32, {2, 2, 3}, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60});
  const auto to = [&](const Shape& shape) {
    return run_reference("sum_to", {x, TestTensor(DType::kF32, shape)});
  };
  EXPECT_TRUE(same(to({3}), TestTensor(DType::kF32, {3}, {55, 77, 99})));
  EXPECT_TRUE(same(to({2, 1}), TestTensor(DType::kF32, {2, 1}, {66, 165})));
  EXPECT_TRUE(same(to({}), TestTensor(DType::kF32, {}, {231})));
  EXPECT_TRUE(same(to({2, 1, 1}), TestTensor(DType::kF32, {2, 1, 1}, {21, 210})));
  EXPECT_NE(error_of([&] { to({2}); }).find("does not broadcast"), std::string::npos);
}

}  // namespace
}  // namespace anymps::testing
