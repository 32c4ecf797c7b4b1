// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/tensor.h"
#include "support/typed_infer.h"

namespace anymps::testing {
namespace {

const Dim H = sym("H");

TEST(Reshape, NumbersAreChecked) {
  EXPECT_EQ(inferred("reshape", {f32({2, 3, 4})}, {{"shape", Ints{4, -1}}}), "f32[4, 6]");
  EXPECT_EQ(inferred("reshape", {f32({2, 3, 4})}, {{"shape", Ints{0, 12}}}), "f32[2, 12]");
  EXPECT_EQ(inferred("reshape", {f32({1})}), "f32[]");
  EXPECT_EQ(inferred("reshape", {f32({0, 3})}, {{"shape", Ints{0, -1}}}), "f32[0, 3]");
  EXPECT_EQ(inferred("reshape", {f32({0, 3})}, {{"shape", Ints{-1, 5}}}), "f32[0, 5]");
}

TEST(Reshape, HeadsOfAttentionAndBack) {
  // The way BERT takes: [N, S, 768] -> [N, S, 12, 64] -> … -> [N, S, 768].
  const ValueType split = infer("reshape", {f32({N, S, 768})}, {{"shape", Ints{0, 0, 12, 64}}});
  EXPECT_EQ(to_string(split), "f32[N, S, 12, 64]");
  EXPECT_EQ(inferred("reshape", {split}, {{"shape", Ints{0, 0, -1}}}), "f32[N, S, 768]");
  EXPECT_EQ(inferred("reshape", {split}, {{"shape", Ints{0, -1, 768}}}), "f32[N, S, 768]");
  EXPECT_EQ(inferred("reshape", {f32({N, S, 768}), vec({N, -1, 12, 64})}), "f32[N, S, 12, 64]");
  EXPECT_EQ(inferred("reshape", {split, vec({N, S, 768})}), "f32[N, S, 768]");
}

TEST(Reshape, FactorsOfAProductCancel) {
  const ValueType joined = infer("reshape", {f32({N, S, 768})}, {{"shape", Ints{-1, 768}}});
  EXPECT_EQ(to_string(joined), "f32[N*S, 768]");
  EXPECT_EQ(inferred("reshape", {joined, vec({N, -1, 768})}), "f32[N, S, 768]");
  const ValueType all = infer("reshape", {f32({S, 6, N})}, {{"shape", Ints{-1}}});
  EXPECT_EQ(inferred("reshape", {all, vec({N, -1, 2})}), "f32[N, 3*S, 2]");
  // In whichever order the factors came, the product is the same.
  EXPECT_EQ(all.shape[0], infer("reshape", {f32({6, N, S})}, {{"shape", Ints{-1}}}).shape[0]);
  const ValueType pooled = f32({N, floor_div(H + 1, 2), 4});
  EXPECT_EQ(inferred("reshape", {pooled}, {{"shape", Ints{0, -1}}}), "f32[N, ((H+1)//2)*4]");
  EXPECT_EQ(inferred("reshape", {pooled, vec({-1, floor_div(H + 1, 2)})}), "f32[4*N, (H+1)//2]");
}

TEST(Reshape, WhatIsNotKnownYet) {
  EXPECT_EQ(infer("reshape", {f32({N, 4}), i64({3})}).shape.size(), 3u);
  EXPECT_FALSE(infer("reshape", {f32({N, 4}), i64({N})}).ranked);
  EXPECT_EQ(inferred("reshape", {unranked()}, {{"shape", Ints{2, 3}}}), "f32[2, 3]");
  EXPECT_EQ(infer("reshape", {unranked()}, {{"shape", Ints{0, -1}}}).shape.size(), 2u);
}

TEST(Reshape, Errors) {
  auto error = [](const Dims& x, const Ints& shape) {
    return error_of([&] { infer("reshape", {f32(x)}, {{"shape", shape}}); });
  };
  EXPECT_EQ(error({2, 3}, {4}),
            "[reshape] an input of shape [2, 3] has 6 elements, shape [4] has 4 (node \"n\")");
  EXPECT_EQ(error({2, 3}, {4, -1}),
            "[reshape] shape [4, -1] does not divide an input of shape [2, 3] (node \"n\")");
  EXPECT_EQ(error({2, 3}, {-1, -1}), "[reshape] shape [-1, -1] has more than one -1 (node \"n\")");
  EXPECT_EQ(error({2, 3}, {-2}), "[reshape] shape [-2] has a negative extent (node \"n\")");
  EXPECT_EQ(error({6}, {6, 0}),
            "[reshape] shape [6, 0] copies axis 1 of an input of shape [6] (node \"n\")");
  EXPECT_NE(error_of([] {
              infer("reshape", {f32({2, 3})}, {{"shape", Ints{0, -1}}, {"allow_zero", true}});
            }).find("cannot be inferred beside an extent of 0"),
            std::string::npos);
}

TEST(Transpose, PermutesSymbols) {
  EXPECT_EQ(inferred("transpose", {f32({N, S, 12, 64})}, {{"perm", Ints{0, 2, 1, 3}}}),
            "f32[N, 12, S, 64]");
  EXPECT_EQ(inferred("transpose", {f32({N, 3})}), "f32[3, N]");
  auto error = [](const Ints& perm) {
    return error_of([&] { infer("transpose", {f32({2, 3})}, {{"perm", perm}}); });
  };
  EXPECT_EQ(error({0}), "[transpose] perm [0] has 1 axes for an input of rank 2 (node \"n\")");
  EXPECT_EQ(error({0, 0}), "[transpose] axis 0 is given twice (node \"n\")");
  EXPECT_EQ(error({0, 2}), "[transpose] axis 2 is out of range for rank 2 (node \"n\")");
}

TEST(Squeeze, Shapes) {
  EXPECT_EQ(inferred("squeeze", {f32({1, 3, 1})}), "f32[3]");
  EXPECT_EQ(inferred("squeeze", {f32({N, 3, 1})}, {{"axes", Ints{-1}}}), "f32[N, 3]");
  EXPECT_EQ(inferred("squeeze", {f32({N, 3})}, {{"axes", Ints{0}}}), "f32[3]");
  EXPECT_FALSE(infer("squeeze", {f32({N, 3, 1})}).ranked);
  EXPECT_EQ(error_of([] {
              infer("squeeze", {f32({2, 3})}, {{"axes", Ints{1}}});
            }),
            "[squeeze] axis 1 of [2, 3] has the extent 3, not 1 (node \"n\")");
}

TEST(Unsqueeze, Shapes) {
  EXPECT_EQ(inferred("unsqueeze", {f32({N, S})}, {{"axes", Ints{1, 2}}}), "f32[N, 1, 1, S]");
  EXPECT_EQ(inferred("unsqueeze", {f32({N})}, {{"axes", Ints{-1, 0}}}), "f32[1, N, 1]");
  EXPECT_EQ(error_of([] {
              infer("unsqueeze", {f32({2})}, {{"axes", Ints{2}}});
            }),
            "[unsqueeze] axis 2 is out of range for rank 2 (node \"n\")");
}

TEST(Flatten, Shapes) {
  EXPECT_EQ(inferred("flatten", {f32({N, 1280, 1, 1})}), "f32[N, 1280]");
  EXPECT_EQ(inferred("flatten", {f32({S, N, 4})}, {{"axis", 2}}), "f32[N*S, 4]");
  EXPECT_EQ(inferred("flatten", {f32({N, 3})}, {{"axis", 0}}), "f32[1, 3*N]");
  EXPECT_EQ(error_of([] {
              infer("flatten", {f32({2})}, {{"axis", 3}});
            }),
            "[flatten] axis 3 is out of range for rank 1 (node \"n\")");
}

TEST(Expand, Shapes) {
  EXPECT_EQ(inferred("expand", {f32({N, 1, 1, S}), vec({N, 1, S, S})}), "f32[N, 1, S, S]");
  EXPECT_EQ(inferred("expand", {f32({3, 1})}, {{"shape", Ints{2, 1, 4}}}), "f32[2, 3, 4]");
  EXPECT_EQ(inferred("expand", {f32({3, N})}, {{"shape", Ints{2, -1, -1}}}), "f32[2, 3, N]");
  EXPECT_EQ(infer("expand", {f32({3, 1}), i64({3})}).shape.size(), 3u);
  EXPECT_EQ(error_of([] {
              infer("expand", {f32({3})}, {{"shape", Ints{2}}});
            }),
            "[expand] shapes [3] and [2] do not broadcast (node \"n\")");
}

TEST(ShapeOf, ContentIsTheShape) {
  EXPECT_EQ(content("shape", {f32({N, S, 768})}), "[N, S, 768]");
  EXPECT_EQ(content("shape", {f32({N, S, 768})}, {{"start", -2}}), "[S, 768]");
  EXPECT_EQ(content("shape", {f32({N, S, 768})}, {{"start", 1}, {"end", 2}}), "[S]");
  EXPECT_EQ(content("shape", {f32({N, S})}, {{"start", 2}, {"end", 1}}), "[]");
  EXPECT_EQ(content("size", {f32({S, 2, N})}), "[2*(N*S)]");
  EXPECT_EQ(inferred("shape", {f32({N, S})}), "i64[2]");
  EXPECT_EQ(inferred("size", {unranked()}), "i64[]");
}

TEST(ViewOps, CarryContent) {
  EXPECT_EQ(content("reshape", {vec({N, S, 2})}, {{"shape", Ints{1, 3}}}), "[N, S, 2]");
  EXPECT_EQ(content("unsqueeze", {scalar(N)}, {{"axes", Ints{0}}}), "[N]");
  EXPECT_EQ(content("squeeze", {vec({N})}), "[N]");
  EXPECT_EQ(content("expand", {vec({N})}, {{"shape", Ints{3}}}), "[N, N, N]");
  ValueType matrix = i64({2, 2});
  matrix.content = Dims{1, 2, 3, N};
  EXPECT_EQ(content("transpose", {matrix}), "[1, 3, 2, N]");
  EXPECT_EQ(content("reverse", {vec({N, S, 2})}), "[2, S, N]");
  EXPECT_EQ(content("expand", {vec({N})}, {{"shape", Ints{65}}}), "-");
}

TEST(DepthToSpace, ShapesAndErrors) {
  EXPECT_EQ(inferred("depth_to_space", {f32({N, 12, H, 5})}, {{"block", 2}}), "f32[N, 3, 2*H, 10]");
  EXPECT_EQ(inferred("space_to_depth", {f32({N, 3, 4, 6})}, {{"block", 2}}), "f32[N, 12, 2, 3]");
  const ValueType wide = infer("depth_to_space", {f32({N, 12, H, 5})}, {{"block", 2}});
  EXPECT_EQ(inferred("space_to_depth", {wide}, {{"block", 2}}), "f32[N, 12, H, 5]");
  EXPECT_EQ(error_of([] {
              infer("depth_to_space", {f32({1, 6, 2, 2})}, {{"block", 2}});
            }),
            "[depth_to_space] 6 channels do not divide by 2 x 2 (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("space_to_depth", {f32({1, 6, 3, 2})}, {{"block", 2}});
            }),
            "[space_to_depth] extent 3 of axis 2 does not divide by 2 (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("space_to_depth", {f32({1, 6, 3, 2})}, {{"block", 0}});
            }),
            "[space_to_depth] block must be positive, it is 0 (node \"n\")");
}

}  // namespace
}  // namespace anymps::testing
