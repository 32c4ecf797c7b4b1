// SPDX-License-Identifier: Apache-2.0
#include "support/infer.h"
#include "support/tensor.h"

namespace anymps {
namespace {

using testing::error_of;
using testing::inferred;
using testing::sym;

TEST(MatmulInference, Shapes) {
  EXPECT_EQ(inferred("matmul", {Dims{5, 7}, Dims{7, 9}}), "f32[5, 9]");
  EXPECT_EQ(
      inferred("matmul", {Dims{7, 5}, Dims{9, 7}}, {{"transpose_a", true}, {"transpose_b", true}}),
      "f32[5, 9]");
  EXPECT_EQ(inferred("matmul", {Dims{7}, Dims{7}}), "f32[]");
  EXPECT_EQ(inferred("matmul", {Dims{7}, Dims{3, 7, 5}}), "f32[3, 5]");
  EXPECT_EQ(inferred("matmul", {Dims{3, 5, 7}, Dims{7}}), "f32[3, 5]");
  EXPECT_EQ(inferred("matmul", {Dims{2, 1, 5, 7}, Dims{3, 7, 4}}), "f32[2, 3, 5, 4]");
  EXPECT_EQ(inferred("matmul", {Dims{sym("N"), sym("S"), 8}, Dims{8, 4}, Dims{4}}), "f32[N, S, 4]");
  EXPECT_EQ(inferred("matmul", {Dims{sym("B"), 2, sym("K")}, Dims{sym("B"), 8, 4}}),
            "f32[B, 2, 4]");
}

TEST(MatmulInference, SaysWhatIsWrong) {
  EXPECT_EQ(error_of([] {
              inferred("matmul", {Dims{5, 7}, Dims{8, 9}});
            }),
            "[matmul] cannot multiply a [5, 7] by b [8, 9]: 7 columns, 8 rows");
  EXPECT_EQ(error_of([] {
              inferred("matmul", {Dims{}, Dims{8, 9}});
            }),
            "[matmul] input 'a' is a scalar, must have rank 1 or more");
  EXPECT_EQ(error_of([] {
              inferred("matmul", {Dims{2, 5, 7}, Dims{3, 7, 9}});
            }),
            "[matmul] shapes [2] and [3] do not broadcast");
  EXPECT_EQ(error_of([] {
              inferred("matmul", {Dims{5, 7}, Dims{7, 9}, Dims{5}});
            }),
            "[matmul] input 'bias' has shape [5], which does not broadcast to [5, 9]");
  EXPECT_EQ(error_of([] {
              inferred("matmul", {Dims{5, 7}, Dims{7, 9}, std::nullopt, Dims{9}});
            }),
            "[matmul] input 'residual' has shape [9], must be [5, 9]");
  EXPECT_EQ(error_of([] {
              inferred("matmul", {Dims{5, 7}, Dims{7, 9}}, {{"alpha", 0.5}}, 1, DType::kI32);
            }),
            "[matmul] alpha is 0.5, must be 1 for integers");
  EXPECT_EQ(
      error_of([] {
        inferred("matmul", {Dims{5, 7}, Dims{7, 9}}, {{"activation", "relu"}}, 1, DType::kC64);
      }),
      "[matmul] activation 'relu' needs floats, the inputs are c64");
}

TEST(MatmulCost, CountsMultiplyAdds) {
  const Op& op = get_op("matmul");
  EXPECT_EQ(op.cost(Attrs(op, {{"transpose_a", true}}), {{7, 5}, {7, 9}}, {{5, 9}}),
            2.0 * 5 * 7 * 9);
}

}  // namespace
}  // namespace anymps
