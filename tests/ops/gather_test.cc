// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/tensor.h"
#include "support/typed_infer.h"

namespace anymps::testing {
namespace {

TEST(Gather, Shapes) {
  EXPECT_EQ(inferred("gather", {f32({30522, 768}), i64({N, S})}), "f32[N, S, 768]");
  EXPECT_EQ(inferred("gather", {f32({N, S, 768}), scalar(0)}, {{"axis", 1}}), "f32[N, 768]");
  EXPECT_EQ(inferred("gather", {f32({N, 5, 4}), i64({N, 2})}, {{"axis", 1}, {"batch_dims", 1}}),
            "f32[N, 2, 4]");
}

TEST(Gather, Content) {
  EXPECT_EQ(content("gather", {vec({N, S, 768}), scalar(1)}), "[S]");
  EXPECT_EQ(content("gather", {vec({N, S, 768}), vec({-1, 0})}), "[768, N]");
  EXPECT_EQ(content("gather", {vec({N, S}), i64({1})}), "-");
  ValueType matrix = i64({2, 2});
  matrix.content = Dims{1, 2, 3, 4};
  EXPECT_EQ(content("gather", {matrix, scalar(1)}), "[3, 4]");
}

TEST(Gather, Errors) {
  EXPECT_EQ(error_of([] {
              infer("gather", {vec({N, S}), scalar(2)});
            }),
            "[gather] index 2 is out of range for axis 0 of extent 2 (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("gather", {f32({2}), i64({1})}, {{"axis", 1}});
            }),
            "[gather] axis 1 is out of range for rank 1 (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("gather", {f32({2, 3}), i64({2})}, {{"axis", 0}, {"batch_dims", 1}});
            }),
            "[gather] batch_dims 1 is out of range [0, 0] (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("gather", {f32({2, 3}), i64({3})}, {{"axis", 1}, {"batch_dims", 1}});
            }),
            "[gather] x and indices differ along axis 0: 2 and 3 (node \"n\")");
  EXPECT_NE(error_of([] {
              infer("gather", {f32({2, 3}), f32({3})});
            }).find("must be one of"),
            std::string::npos);
}

TEST(GatherNd, ShapesAndErrors) {
  EXPECT_EQ(inferred("gather_nd", {f32({2, 3, N}), i64({S, 2})}), "f32[S, N]");
  EXPECT_EQ(inferred("gather_nd", {f32({N, 3, 4}), i64({N, 5, 1})}, {{"batch_dims", 1}}),
            "f32[N, 5, 4]");
  EXPECT_FALSE(infer("gather_nd", {f32({2, 3}), i64({2, N})}).ranked);
  EXPECT_EQ(error_of([] {
              infer("gather_nd", {f32({2, 3}), i64({4, 3})});
            }),
            "[gather_nd] the last axis of indices has 3 entries, at most 2 are possible "
            "(node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("gather_nd", {f32({2, 3}), i64({})});
            }),
            "[gather_nd] indices must have rank 1 or more (node \"n\")");
}

TEST(GatherAlongAxis, ShapesAndErrors) {
  EXPECT_EQ(inferred("gather_along_axis", {f32({N, 5}), i64({N, 2})}, {{"axis", 1}}), "f32[N, 2]");
  EXPECT_EQ(error_of([] {
              infer("gather_along_axis", {f32({2, 3}), i64({3})});
            }),
            "[gather_along_axis] x has rank 2, indices have rank 1 (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("gather_along_axis", {f32({2, 3}), i64({2, 4})});
            }),
            "[gather_along_axis] indices have the extent 4 along axis 1, x only 3 (node \"n\")");
}

}  // namespace
}  // namespace anymps::testing
