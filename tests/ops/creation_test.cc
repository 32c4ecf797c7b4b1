// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/tensor.h"
#include "support/typed_infer.h"

namespace anymps::testing {
namespace {

TEST(Range, ShapesAndContent) {
  EXPECT_EQ(inferred("range", {scalar(0), scalar(S), scalar(1)}), "i64[S]");
  EXPECT_EQ(inferred("range", {scalar(1), scalar(S), scalar(1)}), "i64[S-1]");
  EXPECT_EQ(inferred("range", {scalar(0), scalar(S), scalar(2)}), "i64[(S+1)//2]");
  EXPECT_EQ(content("range", {scalar(1), scalar(10), scalar(3)}), "[1, 4, 7]");
  EXPECT_EQ(content("range", {scalar(5), scalar(0), scalar(-2)}), "[5, 3, 1]");
  EXPECT_EQ(content("range", {scalar(5), scalar(0), scalar(1)}), "[]");
  EXPECT_EQ(infer("range", {f32({}), f32({}), f32({})}).shape.size(), 1u);
  EXPECT_EQ(error_of([] {
              infer("range", {scalar(0), scalar(3), scalar(0)});
            }),
            "[range] delta is 0 (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("range", {vec({0, 1}), scalar(3), scalar(0)});
            }),
            "[range] start must be a scalar, it has the shape [2] (node \"n\")");
}

TEST(Fill, ShapesAndContent) {
  EXPECT_EQ(inferred("fill", {vec({N, S})}), "f32[N, S]");
  EXPECT_EQ(inferred("fill", {vec({N, S}), scalar(1)}), "i64[N, S]");
  EXPECT_EQ(inferred("fill", TypeList{}, {{"shape", Ints{2}}, {"dtype", DType::kF16}}), "f16[2]");
  EXPECT_EQ(content("fill", {vec({3}), scalar(N)}), "[N, N, N]");
  EXPECT_EQ(content("fill", {vec({2})}, {{"value", 7.0}, {"dtype", DType::kI64}}), "[7, 7]");
  EXPECT_EQ(infer("fill", {i64({2})}).shape.size(), 2u);
  EXPECT_FALSE(infer("fill", {i64({N}), scalar(1)}).ranked);
  EXPECT_EQ(infer("fill", {i64({N}), scalar(1)}).dtype, DType::kI64);
  EXPECT_EQ(error_of([] {
              infer("fill", {}, {{"shape", Ints{-1}}});
            }),
            "[fill] shape [-1] has a negative extent (node \"n\")");
}

TEST(OneHot, Shapes) {
  EXPECT_EQ(inferred("one_hot", {i64({N, S}), scalar(10), f32({2})}), "f32[N, S, 10]");
  EXPECT_EQ(inferred("one_hot", {i64({N}), scalar(10), f32({2})}, {{"axis", 0}}), "f32[10, N]");
  EXPECT_EQ(error_of([] {
              infer("one_hot", {i64({N}), scalar(-1), f32({2})});
            }),
            "[one_hot] depth -1 is negative (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("one_hot", {i64({N}), scalar(3), f32({3})});
            }),
            "[one_hot] values must be [off, on], they have the shape [3] (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("one_hot", {i64({N}), scalar(3), f32({2})}, {{"axis", 2}});
            }),
            "[one_hot] axis 2 is out of range for rank 2 (node \"n\")");
}

}  // namespace
}  // namespace anymps::testing
