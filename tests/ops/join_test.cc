// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/tensor.h"
#include "support/typed_infer.h"

namespace anymps::testing {
namespace {

const Dim P = sym("P");

TEST(Concat, Shapes) {
  EXPECT_EQ(inferred("concat", {f32({N, P, 64}), f32({N, S, 64})}, {{"axis", 1}}),
            "f32[N, P+S, 64]");
  EXPECT_EQ(inferred("concat", {f32({N, 2}), f32({3, 2}), f32({3, 1})}, {{"axis", -1}}),
            "f32[3, 5]");
  EXPECT_EQ(inferred("concat", {f32({2, 3})}), "f32[2, 3]");
}

TEST(Concat, Content) {
  EXPECT_EQ(content("concat", {vec({N}), vec({S, 12}), vec({64})}), "[N, S, 12, 64]");
  EXPECT_EQ(content("concat", {vec({N}), i64({1})}), "-");
  ValueType a = i64({2, 1}), b = i64({2, 2});
  a.content = Dims{1, 2};
  b.content = Dims{3, 4, 5, 6};
  EXPECT_EQ(content("concat", {a, b}, {{"axis", 1}}), "[1, 3, 4, 2, 5, 6]");
}

TEST(Concat, Errors) {
  EXPECT_EQ(error_of([] {
              infer("concat", {f32({2, 3}), f32({2})});
            }),
            "[concat] input 1 has rank 1, the first has rank 2 (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("concat", {f32({2, 3}), f32({2, 4})});
            }),
            "[concat] inputs differ along axis 1: 3 and 4 (node \"n\")");
  EXPECT_EQ(error_of([] { infer("concat", {f32({})}); }),
            "[concat] axis 0 is out of range for rank 0 (node \"n\")");
  EXPECT_NE(error_of([] {
              infer("concat", {f32({2}), i64({2})});
            }).find("same dtype"),
            std::string::npos);
}

TEST(Stack, ShapesAndContent) {
  EXPECT_EQ(inferred("stack", {f32({N, 2}), f32({3, 2})}, {{"axis", -1}}), "f32[3, 2, 2]");
  EXPECT_EQ(content("stack", {scalar(N), scalar(S), scalar(2)}), "[N, S, 2]");
  EXPECT_EQ(content("stack", {vec({1, 2}), vec({3, 4})}, {{"axis", 1}}), "[1, 3, 2, 4]");
  EXPECT_EQ(error_of([] {
              infer("stack", {f32({2}), f32({3})});
            }),
            "[stack] inputs differ along axis 0: 2 and 3 (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("stack", {f32({2})}, {{"axis", 2}});
            }),
            "[stack] axis 2 is out of range for rank 2 (node \"n\")");
}

TEST(Tile, ShapesAndContent) {
  EXPECT_EQ(inferred("tile", {f32({N, 3}), vec({1, S})}), "f32[N, 3*S]");
  EXPECT_EQ(inferred("tile", {f32({2, 3})}, {{"repeats", Ints{2, 0}}}), "f32[4, 0]");
  EXPECT_EQ(content("tile", {vec({N, 1})}, {{"repeats", Ints{2}}}), "[N, 1, N, 1]");
  EXPECT_EQ(error_of([] {
              infer("tile", {f32({2, 3})}, {{"repeats", Ints{2}}});
            }),
            "[tile] 1 repeats for an input of rank 2 (node \"n\")");
  EXPECT_EQ(error_of([] {
              infer("tile", {f32({2})}, {{"repeats", Ints{-1}}});
            }),
            "[tile] repeats [-1] has a negative count (node \"n\")");
}

}  // namespace
}  // namespace anymps::testing
