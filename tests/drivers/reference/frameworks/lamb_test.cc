// SPDX-License-Identifier: Apache-2.0
// Two steps of LAMB, with the results of paddle.optimizer.Lamb.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

TEST(PaddleLamb, TwoSteps) {
  const NamedAttrs attrs{{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.05}};
  const Row kGradients[] = {{0.5, -1, 2, 0.25}, {-0.5, 0.3, 1, 0.2}};
  const Row kExpected[] = {{0.81688964, -1.8081698, 0.32124916, 2.7994509},
                           {0.81948757, -1.6937635, 0.11197011, 2.5507023}};
  TestTensor values = f32s({1, -2, 0.5, 3}), m = f32s({0, 0, 0, 0}), v = m;
  for (size_t step = 0; step < 2; ++step) {
    const auto results = run_reference_all("lamb_step",
                                           {values, f32s(kGradients[step]), f32({}, {0.1}),
                                            f32({}, {static_cast<double>(step + 1)}), m, v},
                                           attrs);
    EXPECT_TRUE(same(results[0], f32s(kExpected[step]), 1e-6)) << step;
    values = results[0];
    m = results[1];
    v = results[2];
  }
}

TEST(PaddleLamb, NothingToScaleBy) {  // a parameter that is 0: the ratio of the norms is 1
  const TestTensor zero = f32s({0, 0});
  const auto results = run_reference_all(
      "lamb_step", {zero, f32s({1, -1}), f32({}, {0.5}), f32({}, {1}), zero, zero}, {});
  EXPECT_TRUE(same(results[0], f32s({-0.5, 0.5}), 1e-5));
}

}  // namespace
}  // namespace anymps::testing
