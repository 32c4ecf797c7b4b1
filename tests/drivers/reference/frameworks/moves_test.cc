// SPDX-License-Identifier: Apache-2.0
// Moves of elements, with the results of torch.roll, repeat_interleave, Tensor.unfold, diag_embed.
#include "support/tensor.h"

namespace anymps::testing {
namespace {

const Row kTwelve = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

void expect_moved(const char* op, const TestInputs& inputs, const NamedAttrs& attrs, Shape shape,
                  const Row& expected) {
  SCOPED_TRACE(op);
  const TestTensor y = run_reference(op, inputs, attrs);
  EXPECT_EQ(y.shape(), shape);
  EXPECT_EQ(y.values(), expected);
}

TEST(TorchMoves, Roll) {
  const TestTensor x = f32({3, 4}, kTwelve);
  expect_moved("roll", {x}, {{"shifts", Ints{1, -6}}, {"axes", Ints{0, 1}}}, {3, 4},
               {10, 11, 8, 9, 2, 3, 0, 1, 6, 7, 4, 5});
  expect_moved("roll", {x.scrambled()}, {{"shifts", Ints{-5}}}, {3, 4},
               {5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4});
  EXPECT_EQ(error_of([&] {
              run_reference("roll", {x}, {{"shifts", Ints{1, 2}}});
            }),
            "[roll] there are 2 shifts for 0 axes");
}

TEST(TorchMoves, RepeatInterleave) {
  const TestTensor x = f32({3, 4}, kTwelve);
  expect_moved("repeat_interleave", {x, indices({3}, {2, 0, 1})}, {{"output_size", 3}}, {3, 4},
               {0, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11});
  expect_moved("repeat_interleave", {x}, {{"repeats", 2}, {"axis", 1}}, {3, 8},
               {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11});
}

TEST(TorchMoves, SlidingWindow) {
  expect_moved("sliding_window", {f32({3, 4}, kTwelve)}, {{"axis", 1}, {"size", 2}, {"step", 2}},
               {3, 2, 2}, kTwelve);
  expect_moved("sliding_window", {f32({4}, {1, 2, 3, 4})}, {{"size", 3}}, {2, 3},
               {1, 2, 3, 2, 3, 4});
}

TEST(TorchMoves, DiagEmbed) {
  expect_moved("diag_embed", {f32({2, 2}, {1, 2, 3, 4})},
               {{"offset", -1}, {"axis1", 0}, {"axis2", 2}}, {3, 2, 3},
               {0, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0, 0, 0, 2, 0, 0, 4, 0});
}

}  // namespace
}  // namespace anymps::testing
