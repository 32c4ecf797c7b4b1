// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.h"

namespace anymps::testing {
namespace {

// One head, keys and values of one element: the state is a number, followed by hand.
TEST(ReferenceLinearAttention, ByHand) {
  const TestTensor q(DType::kF64, {1, 3, 1}, {1, 2, 1}), k(DType::kF64, {1, 3, 1}, {1, 1, 2}),
      v(DType::kF64, {1, 3, 1}, {3, 5, 1});
  const NamedAttrs attrs = {{"query_heads", 1}, {"heads", 1}, {"scale", 0.5}};
  // S: 3, 8, 10
  auto plain = run_reference_all("linear_attention", {q, k, v}, attrs, 2);
  EXPECT_EQ(plain[0].values(), (Row{1.5, 8, 5}));
  EXPECT_EQ(plain[1].values(), (Row{10}));
  // With a beta of 1/2 and a state of 1 before. v' = (v - S k) / 2: 1, 1.5, -3; S: 2, 3.5, -2.5
  const TestTensor past(DType::kF64, {1, 1, 1, 1}, {1}), beta(DType::kF64, {1, 3, 1}, {.5, .5, .5});
  auto delta = run_reference_all("linear_attention", {q, k, v, past, std::nullopt, beta}, attrs, 2);
  EXPECT_EQ(delta[0].values(), (Row{1, 3.5, -1.25}));
  EXPECT_EQ(delta[1].values(), (Row{-2.5}));
  // A decay of -infinity forgets all that was before.
  const double never = -std::numeric_limits<double>::infinity();
  const TestTensor decay(DType::kF64, {1, 3, 1}, {never, never, 0});
  auto gated = run_reference_all("linear_attention", {q, k, v, past, decay}, attrs, 2);
  EXPECT_EQ(gated[0].values(), (Row{1.5, 5, 3.5}));
}

// np.random.RandomState(7).random_sample(3)
TEST(ReferenceMersenne, AsInNumpy) {
  const Row y =
      run_reference("random_mersenne", {}, {{"shape", std::vector<int64_t>{3}}, {"seed", 7}})
          .values();
  EXPECT_EQ(y, (Row{0.07630828937395717, 0.7799187922401146, 0.4384092314408935}));
}

}  // namespace
}  // namespace anymps::testing
