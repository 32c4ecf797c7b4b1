// SPDX-License-Identifier: Apache-2.0
#include "support/infer.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::inferred;
using testing::sym;

TEST(RecurrentInference, Shapes) {
  EXPECT_EQ(
      inferred("lstm", {Dims{sym("T"), sym("N"), 3}, Dims{2, 16, 3}, Dims{2, 16, 4}, Dims{2, 32}},
               {{"hidden_size", 4}, {"direction", "bidirectional"}}, 3),
      "f32[T, 2, N, 4]; f32[2, N, 4]; f32[2, N, 4]");
  EXPECT_EQ(inferred("gru", {Dims{sym("N"), 5, 3}, Dims{1, 12, 3}, Dims{1, 12, 4}},
                     {{"hidden_size", 4}, {"layout", 1}}, 2),
            "f32[N, 5, 1, 4]; f32[N, 1, 4]");
  EXPECT_EQ(inferred("rnn", {Dims{5, 2, 3}, Dims{1, 4, 3}, Dims{1, 4, 4}}, {{"hidden_size", 4}}),
            "f32[5, 1, 2, 4]");
}

TEST(RecurrentInference, SaysWhatIsWrong) {
  const auto message = [](const testing::SymbolicShapes& in, const NamedAttrs& attrs) {
    return error_of([&] { inferred("lstm", in, attrs); });
  };
  const Dims x{5, 2, 3}, w{1, 16, 3}, r{1, 16, 4};
  EXPECT_EQ(message({x, w, r}, {{"hidden_size", 5}}),
            "[lstm] input 'w' has shape [1, 16, 3], must be [1, 20, 3]");
  EXPECT_EQ(message({x, w, r}, {{"hidden_size", 4}, {"direction", "bidirectional"}}),
            "[lstm] input 'w' has shape [1, 16, 3], must be [2, 16, 3]");
  EXPECT_EQ(message({x, w, r, Dims{1, 16}}, {{"hidden_size", 4}}),
            "[lstm] input 'b' has shape [1, 16], must be [1, 32]");
  EXPECT_EQ(message({x, w, r, std::nullopt, std::nullopt, Dims{2, 1, 4}}, {{"hidden_size", 4}}),
            "[lstm] input 'h0' has shape [2, 1, 4], must be [1, 2, 4]");
  EXPECT_EQ(message({x, w, r}, {{"hidden_size", 0}}),
            "[lstm] hidden_size is 0, must be at least 1");
  EXPECT_EQ(message({x, w, r}, {{"hidden_size", 4}, {"layout", 2}}),
            "[lstm] layout is 2, must be 0 or 1");
  EXPECT_EQ(message({Dims{5, 2}, w, r}, {{"hidden_size", 4}}),
            "[lstm] input 'x' has shape [5, 2], must have rank 3");
}

}  // namespace
}  // namespace anymps
