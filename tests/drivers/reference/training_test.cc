// SPDX-License-Identifier: Apache-2.0
// Losses and steps of optimizers; numbers from NumPy.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kScores = f64({2, 3}, {1, 2, 0.5, -1, 0, 3});
const TestTensor kLabels = f64({2, 3}, {0, 1, 0, 0.25, 0.25, 0.5});

TEST(ReferenceLoss, SoftmaxCrossEntropy) {
  EXPECT_TRUE(same(run_reference("softmax_cross_entropy", {kScores, kLabels}),
                   f64({2, 1}, {0.4643687841079449, 1.8158839037574293}), 1e-12));
  EXPECT_TRUE(
      same(run_reference("softmax_cross_entropy", {kScores, kLabels}, {{"reduction", "sum"}}),
           f64({}, {2.2802526878653744}), 1e-12));
  EXPECT_TRUE(
      same(run_reference("softmax_cross_entropy", {kScores, kLabels}, {{"reduction", "mean"}}),
           f64({}, {1.1401263439326872}), 1e-12));
}

TEST(ReferenceLoss, SoftmaxCrossEntropyGradient) {
  const TestTensor expected =
      f64({2, 3}, {0.23122389762214904, -0.37146828078823757, 0.14024438316608848,
                   -0.23285217445447962, -0.20338737742202612, 0.43623955187650576});
  EXPECT_TRUE(same(run_reference("softmax_cross_entropy_gradient", {f64({}, {2}), kScores, kLabels},
                                 {{"reduction", "mean"}}),
                   expected, 1e-12));
  EXPECT_TRUE(
      same(run_reference("softmax_cross_entropy_gradient", {f64({2, 1}, {1, 1}), kScores, kLabels}),
           expected, 1e-12));
}

TEST(ReferenceOptimizer, Sgd) {
  EXPECT_TRUE(same(run_reference("sgd", {f64({2}, {1, 2}), f64({2}, {10, -4}), f64({}, {0.1})}),
                   f64({2}, {0, 2.4}), 1e-15));
}

TEST(ReferenceOptimizer, Adam) {
  TestInputs inputs = {f64({3}, {1, 2, 3}),
                       f64({3}, {0.1, -0.2, 0.3}),
                       f64({3}, {0.01, 0.02, 0.03}),
                       f64({3}, {0.5, 0.4, 0.3}),
                       f64({}, {0.01}),
                       f64({}, {0.9}),
                       f64({}, {0.99}),
                       f64({}, {0.001})};
  auto results = run_reference_all("adam", inputs);
  const TestTensor velocity = f64({3}, {0.4951, 0.3964, 0.2979});
  EXPECT_TRUE(same(results[0],
                   f64({3}, {0.9997303562495883, 2.000031715672822, 2.9989575754456474}), 1e-12));
  EXPECT_TRUE(same(results[1], f64({3}, {0.019, -0.002, 0.057}), 1e-12));
  EXPECT_TRUE(same(results[2], velocity, 1e-12));
  EXPECT_TRUE(same(results[3], velocity, 1e-12));
  inputs.insert(inputs.end(), {f64({3}, {0.45, 0.6, 0.1}), f64({}, {0.81}), f64({}, {0.98})});
  results = run_reference_all("adam", inputs);
  EXPECT_TRUE(same(results[0], f64({3}, {0.999799297974294, 2.000019193556576, 2.9992240995039388}),
                   1e-12));
  EXPECT_TRUE(same(results[3], f64({3}, {0.4951, 0.6, 0.2979}), 1e-12));
}

}  // namespace
}  // namespace anymps::testing
