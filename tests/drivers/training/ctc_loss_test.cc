// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification; numbers from PyTorch.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const TestTensor kLogProbs(DType::kF32, {4, 2, 3},
                           {-2.8715391, -0.3715391, -1.3715391, -2.8715391, -0.3715391,
                            -1.3715391, -1.7663679, -2.7663679, -0.2663679, -1.7663679,
                            -2.7663679, -0.2663679, -0.4076059, -1.4076059, -2.4076059,
                            -0.4076059, -1.4076059, -2.4076059, -0.4076059, -1.4076059,
                            -2.4076059, -2.8715391, -0.3715391, -1.3715391});

TEST(ReferenceCtcLoss, Loss) {
  const TestTensor padded = indices({2, 2}, {1, 2, 1, 1}), labels = indices({2}, {2, 2});
  EXPECT_TRUE(same(run_reference("ctc_loss", {kLogProbs, padded, indices({2}, {4, 3}), labels}),
                   f32s({1.23066735, 3.54551291}), 1e-5));
  const TestTensor joined = indices({4}, {1, 2, 1, 1}), frames = indices({2}, {4, 2});
  EXPECT_TRUE(same(run_reference("ctc_loss", {kLogProbs, joined, frames, labels}),
                   f32s({1.23066735, kInf}), 1e-5));
  EXPECT_TRUE(same(
      run_reference("ctc_loss", {kLogProbs, joined, frames, labels}, {{"zero_infinity", true}}),
      f32s({1.23066735, 0}), 1e-5));
}

TEST(ReferenceCtcLoss, Gradient) {
  const TestTensor dx = run_reference("ctc_loss_gradient",
                                      {f32s({1, 2}), kLogProbs, indices({2, 2}, {1, 2, 1, 1}),
                                       indices({2}, {4, 3}), indices({2}, {2, 2})},
                                      {{"through_softmax", true}});
  EXPECT_TRUE(same(
      dx, f32({4, 2, 3}, {0.0540543,  -0.3077704, 0.2537162,  0.1132235,  -0.6206559, 0.5074323,
                          0.1186018,  0.0388007,  -0.1574023, -1.6580939, 0.12578,    1.5323144,
                          -0.1691109, 0.2404583,  -0.0713473, 1.3304819,  -1.510543,  0.1800612,
                          -0.2774542, 0.2447285,  0.0327256,  0,          0,          0}),
      1e-5));
}

TEST(ReferenceCtcLoss, Errors) {
  EXPECT_EQ(error_of([] {
              run_reference("ctc_loss", {kLogProbs, indices({2, 1}, {1, 3}), indices({2}, {4, 4}),
                                         indices({2}, {1, 1})});
            }),
            "[ctc_loss] label 3 of sequence 1 is not one of 3 classes");
}

}  // namespace
}  // namespace anymps::testing
