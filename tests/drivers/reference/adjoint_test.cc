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

// One unit, two steps: h1 = 2 * 1, h2 = 2 * 5 + 3 * h1; y is both.
TEST(RnnGradient, OfOneUnitByHand) {
  const auto results = run_reference_all(
      "rnn_gradient",
      {TestTensor(DType::kF32, {2, 1, 1}, {1, 5}), TestTensor(DType::kF32, {1, 1, 1}, {2}),
       TestTensor(DType::kF32, {1, 1, 1}, {3}), std::nullopt, std::nullopt, std::nullopt,
       TestTensor(DType::kF32, {2, 1, 1, 1}, {1, 1})},
      {{"hidden_size", 1}, {"activation", "relu"}});
  EXPECT_EQ(results[0].values(), (std::vector<double>{8, 2}));  // dx = 2 * (1 + 3), 2 * 1
  EXPECT_EQ(results[1].values(), (std::vector<double>{9}));     // dw = 1 * (1 + 3) + 5 * 1
  EXPECT_EQ(results[2].values(), (std::vector<double>{2}));     // dr = h1
  EXPECT_EQ(results[3].values(), (std::vector<double>{5, 5}));  // db = (1 + 3) + 1, twice
  EXPECT_EQ(results[4].values(), (std::vector<double>{12}));    // dh0 = (1 + 3) * 3
}

}  // namespace
}  // namespace anymps::testing
