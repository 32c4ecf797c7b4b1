// SPDX-License-Identifier: Apache-2.0
// Linear attention over long sequences against the reference.
#include "drivers/cpu/samples.h"

namespace anymps::testing {
namespace {

TEST(CpuLinearAttention, LongSequences) {
  const NamedAttrs attrs = {{"query_heads", 4}, {"heads", 2}};
  const TestTensor q = random_f32({2, 50, 64}, 1, -1, 1), k = random_f32({2, 50, 32}, 2, -0.2, 0.2),
                   v = random_f32({2, 50, 48}, 3, -1, 1),
                   past = random_f32({2, 2, 16, 24}, 4, -1, 1);
  for (const Shape& decay : {Shape{2, 50, 2}, Shape{2, 50, 32}})
    for (const Shape& beta : {Shape{2, 50, 2}, Shape{2, 50, 1}})
      expect_as_reference("linear_attention",
                          {q, k, v, past, random_f32(decay, 5, -1, 0), random_f32(beta, 6, 0, 1)},
                          attrs, 2e-5, 2);
  expect_as_reference("linear_attention", {q, k, v}, attrs, 2e-5, 1);
}

}  // namespace
}  // namespace anymps::testing
