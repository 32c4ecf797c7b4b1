// SPDX-License-Identifier: Apache-2.0
// Where the formulas of the reference and of the CPU kernels differed before both took them from
// src/semantics/.
#include <cmath>

#include "drivers/cpu/against_reference.h"

namespace anymps::testing {
namespace {

TEST(SharedFormulas, RoiAlignReadsNothingForASampleOutside) {
  const TestTensor x = f32({1, 1, 2, 2}, {kInf, 1, 2, 3}), outside = f32({1, 4}, {10, 10, 12, 12});
  for (const char* mode : {"avg", "max"}) {
    const NamedAttrs attrs{{"output_height", 1}, {"output_width", 1}, {"mode", mode}};
    const TestInputs inputs{x, outside, indices({1}, {0})};
    expect_same({"roi_align", "corners", inputs, attrs}, 0);
    EXPECT_EQ(run_reference("roi_align", inputs, attrs).values()[0], 0);
  }
}

// What the state knows of a key is summed first: 1 - (1e8 - 1e8), not (1 - 1e8) + 1e8.
TEST(SharedFormulas, LinearAttentionSumsWhatIsKnownFirst) {
  expect_same({"linear_attention",
               "heads",
               {f32({1, 1, 3}, {0, 0, 1}), f32({1, 1, 3}, {1, 1, 1}), f32({1, 1, 1}, {1}),
                f32({1, 1, 3, 1}, {1e8, -1e8, 0}), std::nullopt, f32({1, 1, 1}, {1})},
               {{"query_heads", 1}, {"heads", 1}, {"scale", 1.0}},
               2},
              0);
}

// A layer without peepholes does not look at its cell: 0 * infinity would be NaN.
TEST(SharedFormulas, LstmWithoutPeepholesDoesNotSeeItsCell) {
  const TestInputs inputs{f32({1, 1, 1}, {0.5}),
                          f32({1, 4, 1}, {1, 1, 1, 1}),
                          f32({1, 4, 1}, {1, 1, 1, 1}),
                          std::nullopt,
                          std::nullopt,
                          std::nullopt,
                          f32({1, 1, 1}, {kInf})};
  const TestTensor y = run_reference("lstm", inputs, {{"hidden_size", 1}});
  EXPECT_NEAR(y.values()[0], 1 / (1 + std::exp(-0.5)), 1e-6);
  expect_same({"lstm", "steps", inputs, {{"hidden_size", 1}}}, 1e-6);
}

// The gradient's kernel has the cells of the layer's, with all that they can.
TEST(SharedFormulas, LstmGradientWithOtherActivations) {
  TestInputs inputs{random_f32({3, 2, 4}, 1, -1, 1), random_f32({1, 12, 4}, 2, -1, 1),
                    random_f32({1, 12, 3}, 3, -1, 1)};
  inputs.resize(8);
  inputs.emplace_back(random_f32({3, 1, 2, 3}, 4, -1, 1));
  expect_same(
      {"lstm_gradient",
       "steps",
       inputs,
       {{"hidden_size", 3}, {"input_forget", true}, {"activations", "hardsigmoid,softsign,elu"}},
       6},
      2e-5);
}

}  // namespace
}  // namespace anymps::testing
